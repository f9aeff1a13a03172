"""Two releases on one database, in all orders of open, write, and close or kill, and then both again.

    orders.py OLD NEW PART PARTS     the programs `pellucid` of both, and which part of the cases

Each of both programs opens, writes a row, and closes or is killed, in each order; the database is of version 1, of version 2,
or of version 2 with its wal-index in memory; in WAL or DELETE mode; the second program has the first one's mounts and account, or
another mount namespace with a /dev/shm of its own, or another account. Before the last openings some cases go to the other
version. Whoever is refused has to be refused in words, and the file stays as it was; each row that was acknowledged has to be
read by whoever reads, and no other row but one that was being written when its writer was killed.

Needs root. Last line: RESULT cases openings commits reads refused kills. Exit: 0 all as it has to be, 1 a case was not.
"""

import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

OTHER_ACCOUNT = 65534
KEY = os.urandom(32)
# Every account may run it.
PYTHON = "/usr/bin/python3"
OPENER = Path(__file__).with_name("opener.py")
# What an opener may be refused for, and nothing else.
NEWER = "format version 2 is newer than 1"
ELSEWHERE = "another machine, container or account has this database open"
UNUSABLE = "its wal-index in memory cannot be used"
PLACES = ("together", "mounts", "accounts")
KINDS = ("first", "second", "memory")


class Wrong(Exception):
    """A case that is not as it has to be."""


class Program:
    """One release, and how it is started."""

    def __init__(self, name: str, pellucid: Path, root: Path, place: str) -> None:
        self.name, self.pellucid = name, pellucid
        self.home = root / f"home-{name}"
        self.home.mkdir()
        key = self.home / "key"
        key.write_bytes(KEY)
        key.chmod(0o600)
        self.before: list[str] = []
        if place == "mounts":
            mount = 'mount -t tmpfs -o mode=1777 none /dev/shm && exec "$@"'
            self.before = ["unshare", "--mount", "sh", "-c", mount, "sh"]
        if place == "accounts":
            for path in (self.home, key):
                os.chown(path, OTHER_ACCOUNT, OTHER_ACCOUNT)
            self.before = ["setpriv", f"--reuid={OTHER_ACCOUNT}", f"--regid={OTHER_ACCOUNT}", "--clear-groups"]
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PELLUCID_HOME": str(self.home / "keys"),
            "PELLUCID_KEY_FILE": str(key),
        }

    def start(self, path: Path, errors: Path) -> "Opener":
        command = [*self.before, str(self.pellucid), "run", "--", PYTHON, str(OPENER), str(path)]
        return Opener(command, self.environment, errors)

    def run(self, *words: str) -> subprocess.CompletedProcess:
        command = [*self.before, str(self.pellucid), *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)


class Opener:
    """A process with a connection."""

    def __init__(self, command: list[str], environment: dict[str, str], errors: Path) -> None:
        self.errors = errors
        with errors.open("wb") as to:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=to, text=True)

    def tell(self, line: str) -> str:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise Wrong(f"no answer to {line!r}: {self.said()}")
        return answer

    def said(self) -> str:
        return self.errors.read_text(errors="replace")

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe:
                    pipe.close()
            except BrokenPipeError:
                pass
        self.process.wait(60)


class Case:
    """One order of events, on one database."""

    def __init__(self, root: Path, programs: dict[str, Program], path: Path, counts: Counter) -> None:
        self.root, self.programs, self.path, self.counts = root, programs, path, counts
        self.rows: set[int] = set()
        self.openers: dict[str, Opener] = {}
        self.next = 1

    def refused(self, opener: Opener, answer: str) -> None:
        said = opener.said() + answer
        if not any(words in said for words in (NEWER, ELSEWHERE, UNUSABLE)):
            raise Wrong(f"refused without words: {answer}: {opener.said()}")
        self.counts["refused"] += 1

    def open(self, name: str) -> None:
        opener = self.programs[name].start(self.path, self.root / f"errors-{name}")
        self.openers[name] = opener
        self.counts["openings"] += 1
        before = content(self.path)
        answer = opener.tell("open")
        if not answer.startswith("ok"):
            self.refused(opener, answer)
            if name == "old" and content(self.path) != before:
                raise Wrong("who was refused has changed a file")
            opener.kill()
            del self.openers[name]

    def write(self, name: str) -> None:
        if name not in self.openers:
            return
        answer = self.openers[name].tell(f"write {self.next}")
        if answer.startswith("ok"):
            self.rows.add(self.next)
            self.counts["commits"] += 1
        else:
            self.refused(self.openers[name], answer)
        self.next += 1

    def read(self, name: str) -> None:
        if name not in self.openers:
            return
        answer = self.openers[name].tell("read")
        if not answer.startswith("ok"):
            return self.refused(self.openers[name], answer)
        self.counts["reads"] += 1
        found = {int(row) for row in answer.split()[1:]}
        if found != self.rows:
            raise Wrong(f"{name} reads {sorted(found)}, committed are {sorted(self.rows)}")

    def end(self, name: str, by: str) -> None:
        if name not in self.openers:
            return
        opener = self.openers.pop(name)
        if by == "kill":
            self.counts["kills"] += 1
            return opener.kill()
        opener.tell("close")
        opener.end()

    def run(self, order: tuple[str, ...], ends: dict[str, str], change: str) -> None:
        steps = {"old": iter(("open", "write", "end")), "new": iter(("open", "write", "end"))}
        for name in order:
            step = next(steps[name])
            if step == "end":
                self.end(name, ends[name])
            else:
                getattr(self, step)(name)
            for other in self.openers:
                self.read(other)
        if change:
            told = self.programs["new"].run("upgrade", str(self.path), "--to", change)
            if told.returncode != 0 and "index" not in told.stderr:
                raise Wrong(f"upgrade --to {change}: {told.stderr}")
        for name in ("old", "new", "old"):
            self.open(name)
            self.write(name)
            for other in self.openers:
                self.read(other)
            self.end(name, "close")
        self.open("new")
        if "new" not in self.openers:
            raise Wrong("this release does not open it at the end")
        self.read("new")
        self.end("new", "close")


def content(path: Path) -> list[bytes | None]:
    """The database and its log; who opens first may make the index anew."""
    return [other.read_bytes() if other.exists() else None for other in (path, path.with_name(path.name + "-wal"))]


def template(root: Path, new: Path, mode: str, kind: str) -> Path:
    path = root / f"{mode}-{kind}.db"
    program = Program(f"{mode}-{kind}", new, root, "together")
    program.environment |= {"PELLUCID_ENCRYPT_NEW": "1", "PELLUCID_FORMAT": "1" if kind == "first" else "2"}
    make = f"import sqlite3; d = sqlite3.connect({str(path)!r}); d.execute('PRAGMA journal_mode={mode}'); d.execute('CREATE TABLE t(a, b)')"
    told = program.run("run", "--", PYTHON, "-c", make)
    if told.returncode == 0 and kind == "memory":
        told = program.run("index", str(path), "memory")
    if told.returncode != 0:
        raise Wrong(f"no database of {kind}: {told.stderr}")
    return path


def cases() -> list[tuple]:
    orders = sorted(set(itertools.permutations(["old"] * 3 + ["new"] * 3)))
    ends = [{"old": old, "new": new} for old in ("close", "kill") for new in ("close", "kill")]
    every = itertools.product(orders, ends, ("WAL", "DELETE"), KINDS, PLACES, (0, 1))
    drawn = [case for case in every if not (case[2] == "DELETE" and case[3] == "memory")]
    random.Random(1).shuffle(drawn)
    return drawn


def main() -> int:
    old, new, part, parts = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    counts: Counter = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        root.chmod(0o755)
        for order, ends, mode, kind, place, changes in cases()[part::parts]:
            counts["cases"] += 1
            made = root / f"{mode}-{kind}.db"
            if not made.exists():
                template(root, new, mode, kind)
            work = Path(tempfile.mkdtemp(dir=root))
            work.chmod(0o755)
            path = work / "data" / "app.db"
            path.parent.mkdir()
            path.parent.chmod(0o777)
            shutil.copyfile(made, path)
            path.chmod(0o666)
            # Which of both is in the other place.
            first = order[0]
            programs = {
                name: Program(name, program, work, place if name != first else "together")
                for name, program in (("old", old), ("new", new))
            }
            case = Case(work, programs, path, counts)
            change = ("2" if kind == "first" else "1") if changes else ""
            try:
                case.run(order, ends, change)
            except (Wrong, subprocess.TimeoutExpired) as error:
                wrong += 1
                print("WRONG", order, ends, mode, kind, place, change, error, flush=True)
            for opener in case.openers.values():
                opener.kill()
            shutil.rmtree(work)
    print("RESULT", *(counts[name] for name in ("cases", "openings", "commits", "reads", "refused", "kills")))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
