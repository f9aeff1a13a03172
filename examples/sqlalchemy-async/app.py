"""SQLAlchemy's asyncio, with aiosqlite, over an encrypted database: python app.py [DATABASE [WRITES]]

Takes the Python package `pellucid` and its keys (`pellucid init`); a new database is sealed. The URL needs `uri=true`: without
it SQLite takes all behind `sqlite:///` for the name of a file, and makes that, plain. A Python whose sqlite3 loads no
extensions, as pyenv builds it, runs it as `python -m pellucid run -- python app.py`.
"""

import asyncio
import sys

import pellucid
from alembic import command
from alembic.config import Config
from sqlalchemy import event, func, insert, select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

database = sys.argv[1] if len(sys.argv) > 1 else "app.db"
writes = int(sys.argv[2]) if len(sys.argv) > 2 else 100

pellucid.load()
url = f"sqlite+aiosqlite:///file:{database}?vfs=pellucid&encrypt_new=1&uri=true"
engine = create_async_engine(url, pool_size=20, connect_args={"timeout": 60})
Session = async_sessionmaker(engine, expire_on_commit=False)


@event.listens_for(engine.sync_engine, "connect")
def configure(connection, _):
    connection.execute("PRAGMA journal_mode=WAL")


class Base(DeclarativeBase):
    pass


class Note(Base):
    __tablename__ = "note"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str]


def migrate(connection):
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "migrations")
    command.upgrade(config, "head")


async def write(numbers):
    for number in numbers:
        async with Session() as session:
            note = Note(text=f"buy bread, {number}")
            session.add(note)
            await session.commit()
            print("stored", *(await session.execute(select(Note.id, Note.text).where(Note.id == note.id))).one(), flush=True)


async def main():
    async with engine.begin() as connection:
        await connection.run_sync(migrate)
    async with Session() as session:
        if await session.scalar(select(func.count(Note.id))) == 0:
            await session.execute(insert(Note), [{"text": f"buy bread, {number}"} for number in range(1000)])
            await session.commit()
        print("rows", await session.scalar(select(func.count(Note.id))), flush=True)
    numbers = iter(range(writes))
    await asyncio.gather(*(write(numbers) for _ in range(20)))
    await engine.dispose()


asyncio.run(main())
