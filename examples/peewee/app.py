"""Peewee over an encrypted database: pellucid run --encrypt-new -- python app.py [DATABASE [WRITES]]

Nothing here knows of Pellucid: `pellucid run` brings it into any Python that uses the system's SQLite, and `--encrypt-new`
seals a new database. Started without it, an encrypted database is "file is not a database", and a new one is plain. The class
SqlCipherDatabase of playhouse is for SQLCipher's files, not for these.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from peewee import TextField
from playhouse.migrations import run
from playhouse.pool import PooledSqliteDatabase

database = sys.argv[1] if len(sys.argv) > 1 else "app.db"
writes = int(sys.argv[2]) if len(sys.argv) > 2 else 100
pragmas = {"busy_timeout": 60000, "journal_mode": "wal"}
db = PooledSqliteDatabase(database, max_connections=20, check_same_thread=False, pragmas=pragmas)


class Note(db.Model):
    text = TextField()


def write(numbers):
    for number in numbers:
        with db.connection_context():
            note = Note.create(text=f"buy bread, {number}")
            note = Note.get_by_id(note.id)
            print(f"stored {note.id} {note.text}\n", end="", flush=True)


with db.connection_context():
    run(db, "migrations")
    if Note.select().count() == 0:
        with db.atomic():
            Note.insert_many({"text": f"buy bread, {number}"} for number in range(1000)).execute()
    print("rows", Note.select().count(), flush=True)
with ThreadPoolExecutor(20) as threads:
    list(threads.map(write, [iter(range(writes))] * 20))
