"""SQLAlchemy and Alembic over an encrypted database: python app.py [DATABASE [WRITES]]

Takes the Python package `pellucid` and its keys (`pellucid init`); a new database is sealed. A Python whose sqlite3 loads no
extensions, as pyenv builds it, runs it as `python -m pellucid run -- python app.py`.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import pellucid
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, event, func, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

database = sys.argv[1] if len(sys.argv) > 1 else "app.db"
writes = int(sys.argv[2]) if len(sys.argv) > 2 else 100

engine = create_engine(
    f"sqlite:///{database}",
    creator=lambda: pellucid.connect(database, timeout=60, check_same_thread=False),
    pool_size=20,
)


@event.listens_for(engine, "connect")
def configure(connection, _):
    connection.execute("PRAGMA journal_mode=WAL")


class Base(DeclarativeBase):
    pass


class Note(Base):
    __tablename__ = "note"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str]


def write(numbers):
    for number in numbers:
        with Session(engine) as session:
            note = Note(text=f"buy bread, {number}")
            session.add(note)
            session.commit()
            row = session.execute(select(Note.id, Note.text).where(Note.id == note.id)).one()
            print(f"stored {row.id} {row.text}\n", end="", flush=True)


with engine.begin() as connection:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "migrations")
    command.upgrade(config, "head")
with Session(engine) as session:
    if session.scalar(select(func.count(Note.id))) == 0:
        session.execute(insert(Note), [{"text": f"buy bread, {number}"} for number in range(1000)])
        session.commit()
    print("rows", session.scalar(select(func.count(Note.id))), flush=True)
with ThreadPoolExecutor(20) as threads:
    list(threads.map(write, [iter(range(writes))] * 20))
