"""Encrypted SQLite databases for Python's own sqlite3 module.

    import pellucid
    db = pellucid.connect("app.db")                         # sealed or plain, as it is
    db = pellucid.connect("new.db")                         # a new one, sealed under the keyring's default certificate
    db = pellucid.connect("new.db", certificate="billing")  # or under another one

The package is the loadable extension, the program `pellucid` and these few lines. Keys: see the guide, or `pellucid init`.
"""

import functools
import json
import os
import sqlite3
import threading
import urllib.parse

__all__ = ["Connection", "Cursor", "connect", "extension", "load"]

_loading = threading.Lock()
# The connection that loaded the extension; its functions are asked what the shim said last.
_loader = None


def extension() -> str:
    """Where the loadable extension is."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpellucid.so")


def load() -> None:
    """Loads the extension into this process, once; every later call does nothing.

    Afterwards it is the default: databases opened by anybody in this process go through it.
    """
    global _loader
    with _loading:
        if _loader is not None:
            return
        loader = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            if hasattr(loader, "enable_load_extension"):
                loader.enable_load_extension(True)
                loader.load_extension(extension())
                loader.enable_load_extension(False)
            elif not _is_preloaded():
                raise sqlite3.NotSupportedError(
                    "this Python's sqlite3 was built without loadable extensions; "
                    "start the program with `python3 -m pellucid run -- python3 ...` instead"
                )
        except BaseException:
            loader.close()
            raise
        _loader = loader


def _is_preloaded() -> bool:
    """Whether `pellucid run`, this package's, has brought the extension into this process: another one may be older."""
    preloaded = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    if not any(os.path.exists(name) and os.path.samefile(name, extension()) for name in preloaded):
        return False
    try:
        sqlite3.connect("file::memory:?vfs=pellucid", uri=True).close()
    except sqlite3.OperationalError:
        return False
    return True


# SQLite's words for the codes that the shim returns (sqlite3_errstr): Python tells the code since 3.11.
_CODES = {
    "access permission denied": 3,
    "disk I/O error": 10,
    "database disk image is malformed": 11,
    "database or disk is full": 13,
    "unable to open database file": 14,
    "authorization denied": 23,
    "not authorized": 23,
    "file is not a database": 26,
}


def _said(error: sqlite3.Error) -> str:
    """The last line that the shim logged in this thread, if it has the error's code; else nothing."""
    code = getattr(error, "sqlite_errorcode", None) or _CODES.get(str(error))
    if code is None or _loader is None:
        return ""
    try:
        with _loading:
            said = _loader.execute("SELECT pellucid_last_error()").fetchone()[0]
    except sqlite3.Error:
        # The error that is told counts, not this one.
        return ""
    last = json.loads(said) if said else {"code": 0}
    return last["line"] if (code ^ last["code"]) & 0xFF == 0 else ""


def _told(work):
    """`work`, whose errors say what the shim said: which file, what is wrong, what to do."""

    @functools.wraps(work)
    def tells(*arguments, **options):
        try:
            return work(*arguments, **options)
        except sqlite3.DatabaseError as error:
            line = _said(error)
            if line:
                error.args = (f"{error}: {line}",)
            raise

    return tells


class Cursor(sqlite3.Cursor):
    """As sqlite3.Cursor; its errors say what the shim said."""

    execute = _told(sqlite3.Cursor.execute)
    executemany = _told(sqlite3.Cursor.executemany)
    executescript = _told(sqlite3.Cursor.executescript)
    fetchone = _told(sqlite3.Cursor.fetchone)
    fetchmany = _told(sqlite3.Cursor.fetchmany)
    fetchall = _told(sqlite3.Cursor.fetchall)
    __next__ = _told(sqlite3.Cursor.__next__)


class Connection(sqlite3.Connection):
    """As sqlite3.Connection; its errors say what the shim said."""

    __init__ = _told(sqlite3.Connection.__init__)
    commit = _told(sqlite3.Connection.commit)
    rollback = _told(sqlite3.Connection.rollback)
    backup = _told(sqlite3.Connection.backup)
    __exit__ = _told(sqlite3.Connection.__exit__)

    def cursor(self, factory=Cursor):
        return super().cursor(factory)

    def execute(self, *arguments):
        return self.cursor().execute(*arguments)

    def executemany(self, *arguments):
        return self.cursor().executemany(*arguments)

    def executescript(self, *arguments):
        return self.cursor().executescript(*arguments)


def connect(
    database,
    *,
    certificate: "str | None" = None,
    key_file=None,
    passphrase_file=None,
    require_sealed: bool = False,
    plain_copies: bool = False,
    **options,
) -> sqlite3.Connection:
    """As sqlite3.connect, through the VFS `pellucid`.

    certificate, key_file, passphrase_file: what opens the database, or seals a new one. Names and paths, never secrets.
    require_sealed: a plain database is an error.

    A new database is sealed, or it is an error: under the keys named here, else under those of a sealed database that
    this process has open, else under the key file or passphrase that the environment names, else under the keyring's
    default certificate. Copies that SQLite makes (VACUUM INTO, Connection.backup, ATTACH of a new file) are sealed like
    the database that they are made of.

    plain_copies: this database is plain if it is new, and copies of it may be plain.

    Errors are sqlite3's own, with the line of the shim behind SQLite's words; a `factory` of the caller's keeps SQLite's.
    """
    load()
    parameters = {"vfs": "pellucid"}
    for name, value in ("certificate", certificate), ("key_file", key_file), ("passphrase_file", passphrase_file):
        if value is not None:
            parameters[name] = os.fspath(value)
    if require_sealed:
        parameters["require"] = "sealed"
    parameters["plain_copies" if plain_copies else "encrypt_new"] = "1"
    named = [os.fsencode(database), *map(os.fsencode, parameters.values())]
    if any(b"\0" in name for name in named):
        # SQLite would end the name there.
        raise ValueError("embedded null character")
    # Behind two slashes stands a host, an empty one here: a path may begin with two itself.
    path = ("//" if named[0].startswith(b"/") else "") + urllib.parse.quote(named[0])
    query = urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote)
    options.setdefault("factory", Connection)
    return sqlite3.connect(f"file:{path}?{query}", uri=True, **options)
