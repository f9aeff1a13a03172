"""Django over an encrypted database: python app.py [DATABASE [WRITES]]

Takes the Python package `pellucid` and its keys (`pellucid init`); a new database is sealed. In a project, `pellucid.load()`
and DATABASES stand in settings.py. Without both, and unchanged: `pellucid run --encrypt-new -- python manage.py migrate`.
A Python whose sqlite3 loads no extensions, as pyenv builds it, runs this one as `python -m pellucid run -- python app.py`.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import django
import pellucid
from django.conf import settings
from django.core.management import call_command

database = sys.argv[1] if len(sys.argv) > 1 else "app.db"
writes = int(sys.argv[2]) if len(sys.argv) > 2 else 100

pellucid.load()
settings.configure(
    INSTALLED_APPS=["notes"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": f"file:{database}?vfs=pellucid&encrypt_new=1",
            "OPTIONS": {"init_command": "PRAGMA journal_mode=WAL", "timeout": 60, "transaction_mode": "IMMEDIATE"},
        }
    },
)
django.setup()

from notes.models import Note  # noqa: E402


def write(numbers):
    for number in numbers:
        note = Note.objects.create(text=f"buy bread, {number}")
        note.refresh_from_db()
        print(f"stored {note.id} {note.text}\n", end="", flush=True)


call_command("migrate", verbosity=0)
if not Note.objects.exists():
    Note.objects.bulk_create(Note(text=f"buy bread, {number}") for number in range(1000))
print("rows", Note.objects.count(), flush=True)
with ThreadPoolExecutor(20) as threads:
    list(threads.map(write, [iter(range(writes))] * 20))
