"""Encrypted SQLite databases for Python's own sqlite3 module.

    import pellucid
    db = pellucid.connect("app.db")                         # sealed or plain, as it is
    db = pellucid.connect("new.db")                         # a new one, sealed under the keyring's default certificate
    db = pellucid.connect("new.db", certificate="billing")  # or under another one

The package is the loadable extension and these few lines. Keys: see the guide, or `pellucid init`.
"""

import os
import sqlite3
import urllib.parse

__all__ = ["connect", "extension", "load"]

_loaded = False


def extension() -> str:
    """Where the loadable extension is."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpellucid.so")


def load() -> None:
    """Loads the extension into this process, once; every later call does nothing.

    Afterwards it is the default: databases opened by anybody in this process go through it.
    """
    global _loaded
    if _loaded:
        return
    loader = sqlite3.connect(":memory:")
    try:
        if not hasattr(loader, "enable_load_extension"):
            raise sqlite3.NotSupportedError(
                "this Python's sqlite3 was built without loadable extensions; "
                "start the program with `pellucid run -- python3 ...` instead"
            )
        loader.enable_load_extension(True)
        loader.load_extension(extension())
    finally:
        loader.close()
    _loaded = True


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
    """
    load()
    parameters = {"vfs": "pellucid"}
    for name, value in ("certificate", certificate), ("key_file", key_file), ("passphrase_file", passphrase_file):
        if value is not None:
            parameters[name] = os.fspath(value)
    if require_sealed:
        parameters["require"] = "sealed"
    parameters["plain_copies" if plain_copies else "encrypt_new"] = "1"
    path = urllib.parse.quote(os.fsencode(database))
    query = urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote)
    return sqlite3.connect(f"file:{path}?{query}", uri=True, **options)
