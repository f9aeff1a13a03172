"""A database of which every moment can be recomputed from the number of its last transaction.

chain.py make DB PAGE_SIZE JOURNAL ROWS   makes it, with pages in it that were never written
chain.py write DB ROWS                    one transaction after the other; prints each number once it is committed
chain.py check DB ROWS                    compares every row with what it has to be, and prints the number
"""

import hashlib
import os
import sqlite3
import sys
import time

PRIME = 7919
HOLE_BYTES = 1 << 21


def body(row, changed):
    """Some of it compresses, some does not."""
    digest = hashlib.sha512(b"%d %d" % (row, changed)).hexdigest()
    return f"customer {row} bought article {digest[:12]}, version {changed}; " * 8 + digest * 3


def connect(name):
    return sqlite3.connect(name, timeout=60, isolation_level=None)


def make(name, page_size, journal, rows):
    db = connect(name)
    db.execute(f"PRAGMA page_size = {page_size}")
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.execute("CREATE TABLE big(a INTEGER PRIMARY KEY, b TEXT)")
    db.execute("CREATE TABLE done(n INTEGER)")
    db.execute("CREATE TABLE gone(b)")
    fill = "INSERT INTO big VALUES (?, ?)"
    most = rows - 100
    db.execute("BEGIN")
    db.execute("INSERT INTO done VALUES (0)")
    db.executemany(fill, ((row, body(row, 0)) for row in range(1, most + 1)))
    db.execute("COMMIT")
    # What is free again before it was ever written stays a hole in the file.
    db.execute("PRAGMA cache_spill = 0")
    db.execute("BEGIN")
    db.execute("INSERT INTO gone VALUES (zeroblob(?))", (max(HOLE_BYTES, 40 * page_size),))
    db.executemany(fill, ((row, body(row, 0)) for row in range(most + 1, rows + 1)))
    db.execute("DELETE FROM gone")
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def write(name, rows):
    db = connect(name)
    number, parent = db.execute("SELECT n FROM done").fetchone()[0], os.getppid()
    # Not longer than the test, however that ends.
    while os.getppid() == parent:
        number += 1
        row = number * PRIME % rows + 1
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE big SET b = ? WHERE a = ?", (body(row, number), row))
        db.execute("INSERT INTO big VALUES (?, ?)", (rows + number, body(rows + number, number)))
        if number % 3 == 0:
            db.execute("DELETE FROM big WHERE a = ?", (rows + number - 1,))
        db.execute("UPDATE done SET n = ?", (number,))
        db.execute("COMMIT")
        print(number, flush=True)
        time.sleep(0.002)


def check(name, rows):
    db = connect(name)
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    last = db.execute("SELECT n FROM done").fetchone()[0]
    changed = {number * PRIME % rows + 1: number for number in range(1, last + 1)}
    more = [rows + n for n in range(1, last + 1) if (n + 1) % 3 != 0 or n + 1 > last]
    expected = iter([*range(1, rows + 1), *more])
    for row, found in db.execute("SELECT a, b FROM big ORDER BY a"):
        assert row == next(expected), row
        assert found == body(row, row - rows if row > rows else changed.get(row, 0)), row
    assert next(expected, None) is None
    print(last)


what, name, *numbers = sys.argv[1:]
{"make": make, "write": write, "check": check}[what](
    name, *(int(one) if one.isdigit() else one for one in numbers)
)
