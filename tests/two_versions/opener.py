"""A program with one connection, led line by line: `open`, `write N`, `read`, `close`. Answers `ok [rows]` or `failed REASON`."""

import sqlite3
import sys

path = sys.argv[1]
connection = None
for line in sys.stdin:
    word, *rest = line.split()
    try:
        if word == "open":
            connection = sqlite3.connect(path, isolation_level=None, timeout=10)
            connection.execute("SELECT count(*) FROM t").fetchone()
            answer = "ok"
        elif word == "write":
            connection.execute("INSERT INTO t VALUES (?, hex(randomblob(300)))", rest)
            answer = "ok"
        elif word == "read":
            answer = "ok " + " ".join(str(row) for (row,) in connection.execute("SELECT a FROM t ORDER BY a"))
        else:
            connection.close()
            answer = "ok"
    except sqlite3.Error as error:
        answer = f"failed {error}"
    print(answer, flush=True)
