"""A client of the campaign `ceph`: commits, and says how long each took.

    ceph_client.py EXTENSION URI MODE commit N     N transactions (0: until it is killed); a line `COMMITTED n` for each
    ceph_client.py EXTENSION URI MODE time N       N transactions; the median of a commit in ms
    ceph_client.py EXTENSION URI MODE sql SQL...   each statement, and its first value

EXTENSION is libpellucid.so, or `-` for Ceph's VFS alone. MODE is a journal mode.
"""
import sqlite3
import statistics
import sys
import time

MARK = "MARK-in-clear-MARK"


def connect(extension, uri, mode):
    loader = sqlite3.connect(":memory:")
    loader.enable_load_extension(True)
    loader.execute("SELECT load_extension('libcephsqlite.so')")
    if extension != "-":
        loader.execute("SELECT load_extension(?)", (extension,))
    db = sqlite3.connect(uri, uri=True, isolation_level=None)
    # The VFS has no shared memory.
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    set_to = db.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0]
    assert set_to == mode, set_to
    return loader, db


def commit(db):
    db.execute("BEGIN")
    db.execute("INSERT INTO t SELECT ? || hex(randomblob(150)) FROM (VALUES (1), (2), (3))", (MARK,))
    db.execute("UPDATE n SET n = n + 1")
    db.execute("COMMIT")


def main():
    extension, uri, mode, what, *rest = sys.argv[1:]
    _loader, db = connect(extension, uri, mode)
    if what == "sql":
        for statement in rest:
            row = db.execute(statement).fetchone()
            if row:
                print(row[0])
        return
    db.execute("CREATE TABLE IF NOT EXISTS t(a)")
    db.execute("CREATE TABLE IF NOT EXISTS n(n)")
    db.execute("INSERT INTO n SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM n)")
    took = []
    while int(rest[0]) == 0 or len(took) < int(rest[0]):
        begun = time.perf_counter()
        commit(db)
        took.append(time.perf_counter() - begun)
        if what == "commit":
            print("COMMITTED", db.execute("SELECT n FROM n").fetchone()[0], flush=True)
    if what == "time":
        print(f"{statistics.median(took) * 1000:.3f}")


main()
