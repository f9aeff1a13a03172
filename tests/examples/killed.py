#!/usr/bin/env python3
"""Kills a program of examples/ while it writes, opens its database again, and holds the database to what it acknowledged.

  killed.py SEED DATABASE COMMAND...

COMMAND gets a database and how many rows to write behind its arguments. It says `rows N` when the database is open, and
`stored ID TEXT` of each row that it has committed and read again; other lines do not count. First it ends by itself; then it is killed three times, each
time when all 20 connections of its pool were open and a number of rows, which SEED draws, was stored since. `pellucid`,
`sqlite3` and a `python3` of 3.11 or newer are found in the path.

Prints `RESULT SQLITE ROWS ACKNOWLEDGED OPEN`: the SQLite that wrote, the rows at the end, how many of them were acknowledged
beyond the first thousand, and the connections that were open at once. Exit: 0 everything holds, 1 it says what does not.
"""

import atexit
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

KILLS = 3
CONNECTIONS = 20
FIRST_ROWS = 1000
ENDLESS = 1_000_000_000
# Nothing is measured by it: what hangs has to end. A piece has ten minutes.
PATIENCE_SECONDS = 150
MARKER = b"buy bread"


def holds(condition: bool, said: str) -> None:
    if not condition:
        print(f"killed: {said}")
        sys.exit(1)


class Program:
    """The program of the example, and what it has acknowledged so far: the text of each row by its id."""

    def __init__(self, command: list[str], database: Path) -> None:
        self.command, self.database = command, database
        self.acknowledged: dict[int, str] = {}
        self.most_open = 0
        self.process = None

    def start(self, writes: int) -> None:
        self.errors = open(f"{self.database.parent}/errors", "w+")
        self.process = subprocess.Popen(
            [*self.command, str(self.database), str(writes)],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            start_new_session=True,
        )
        self.watch = threading.Timer(PATIENCE_SECONDS, self.kill)
        self.watch.daemon = True
        self.watch.start()
        line = self.line("rows ")
        holds(line is not None, f"it does not open the database: {self.said()}")
        self.rows = int(line.split()[1])
        stored = FIRST_ROWS + len(self.acknowledged)
        holds(self.rows >= stored, f"it finds {self.rows} rows after {stored} were acknowledged")

    def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def line(self, begins: str) -> str | None:
        """Its next whole line that begins so: GORM logs to the same pipe."""
        for line in self.process.stdout:
            if line.startswith(begins) and line.endswith("\n"):
                return line.rstrip("\n")
        return None

    def heard(self) -> bool:
        """Takes the next row that it has stored; whether there was one."""
        line = self.line("stored ")
        if line is None:
            return False
        _, row, text = line.split(" ", 2)
        holds(int(row) not in self.acknowledged, f"it stored row {row} twice")
        self.acknowledged[int(row)] = text
        return True

    def open_now(self) -> int:
        """How many descriptors lead to the database, in the program and what started it: SQLite has one for each connection."""
        count = 0
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getpgid(int(process)) == self.process.pid:
                    descriptors = [os.readlink(name) for name in Path(f"/proc/{process}/fd").iterdir()]
                    count += descriptors.count(str(self.database))
            except OSError:  # it has ended, or a descriptor was closed meanwhile
                pass
        return count

    def ended(self) -> int:
        status = self.process.wait()
        self.watch.cancel()
        return status

    def said(self) -> str:
        self.errors.seek(0)
        return " / ".join(self.errors.read().split("\n")[-4:]) or "nothing"

    def run(self, writes: int) -> None:
        """It writes as much as it should, and ends."""
        before = len(self.acknowledged)
        self.start(writes)
        while self.heard():
            pass
        status = self.ended()
        holds(status == 0, f"it ended with {status}: {self.said()}")
        holds(len(self.acknowledged) - before == writes, f"it stored {len(self.acknowledged) - before} rows of {writes}")

    def run_and_kill(self, after: int) -> None:
        """It is killed when its pool was full and it has stored `after` rows since."""
        self.start(ENDLESS)
        most = since = 0
        while since < after and self.heard():
            if most < CONNECTIONS:
                most = max(most, self.open_now())
            else:
                since += 1
        self.kill()
        while self.heard():
            pass
        status = self.ended()
        self.most_open = max(self.most_open, most)
        holds(since == after, f"it ended with {status}, {most} connections were open: {self.said()}")


def in_clear(database: Path) -> list[str]:
    """The files of the database that have a row, or SQLite's own header, in clear."""
    files = sorted(database.parent.glob(database.name + "*"))
    return [file.name for file in files if any(text in file.read_bytes() for text in (MARKER, b"SQLite format 3"))]


def stays_sealed(database: Path) -> None:
    found = in_clear(database)
    holds(not found, f"in clear: {', '.join(found)}")


def missing(rows: dict[int, str], acknowledged: dict[int, str]) -> list[int]:
    return [row for row, text in acknowledged.items() if rows.get(row) != text]


def plain_rows(plain: Path) -> dict[int, str]:
    """The rows by id, of the one table that has texts."""
    db = sqlite3.connect(plain)
    tables = "SELECT t.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.name = 'text'"
    [[table]] = db.execute(tables).fetchall()
    holds(db.execute("PRAGMA integrity_check").fetchone() == ("ok",), "integrity_check found something")
    rows = dict(db.execute(f'SELECT id, text FROM "{table}"').fetchall())
    db.close()
    return rows


def pellucid(*arguments: str) -> None:
    done = subprocess.run(["pellucid", "--quiet", *arguments], capture_output=True, text=True)
    holds(done.returncode == 0, f"pellucid {arguments[0]} ended with {done.returncode}: {done.stderr}")


def written_by(database: Path) -> str:
    """The SQLite that wrote the first page last, as that page says."""
    code = "import sqlite3, sys; sys.stdout.buffer.write(sqlite3.connect(sys.argv[1]).serialize()[96:100])"
    done = subprocess.run(["pellucid", "run", "--", "python3", "-c", code, str(database)], capture_output=True)
    holds(done.returncode == 0, f"the stock Python does not read it: {done.stderr.decode()}")
    number = int.from_bytes(done.stdout, "big")
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"


def main() -> None:
    seed, database, *command = sys.argv[1:]
    database = Path(database).resolve()
    draw = random.Random(seed)
    program = Program(command, database)
    # What stops this one stops the program: it would write for ever.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    atexit.register(program.kill)
    program.run(200)
    for _ in range(KILLS):
        program.run_and_kill(draw.randint(1, 800))
        holds(Path(f"{database}-wal").stat().st_size > 0, "it left no log: it was not killed in the midst of writing")
        stays_sealed(database)
    # The program itself is the first to open what it left; then the others.
    program.run(0)
    stays_sealed(database)
    pellucid("check", str(database))
    # A program may end without closing what it opened: then the log is still there, and SQLite looks at that first.
    stock = subprocess.run(["sqlite3", str(database), ".tables"], capture_output=True, text=True)
    refused = ("file is not a database", "unable to open database file")
    holds(stock.returncode != 0 and any(text in stock.stderr for text in refused), f"without Pellucid: {stock}")

    version = written_by(database)
    plain = database.parent / "decrypted" / database.name
    plain.parent.mkdir()
    for file in database.parent.glob(database.name + "*"):
        shutil.copy(file, plain.parent)
    pellucid("decrypt", str(plain))
    rows = plain_rows(plain)
    lost = missing(rows, program.acknowledged)
    holds(not lost, f"{len(lost)} acknowledged rows are lost, the first is {lost[:1]}")
    holds(len(rows) == program.rows, f"{len(rows)} rows are there, and it finds {program.rows}")
    # What has just found nothing finds a row that is in clear, and one that is lost.
    holds(in_clear(plain) == [plain.name], "the search does not find a plain row")
    del rows[draw.choice(sorted(program.acknowledged))]
    holds(len(missing(rows, program.acknowledged)) == 1, "a row that is missing is not missed")
    print("RESULT", version, len(rows) + 1, len(program.acknowledged), program.most_open)


main()
