"""What the tests share: the program under PELLUCID_BIN, stock sqlite3, Northwind, and the reader as a process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
READER = ROOT / "python" / "reader"
BINARIES = Path(os.environ.get("PELLUCID_BIN") or ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug")
PELLUCID = BINARIES / "pellucid"
PASSPHRASE = b"correct horse battery staple\n"
READY = "now kill me"


def sqlite(database: Path, sql: str | bytes, before: str = "") -> None:
    """Stock sqlite3."""
    _run(["sqlite3", "-bail", "-cmd", before or "SELECT 1", str(database)], sql)


def dump(database: Path) -> bytes:
    """What stock sqlite3 makes of it, with its own check first."""
    return _run(["sqlite3", "-bail", str(database)], "PRAGMA integrity_check;\n.dump\n")


def _run(command: list[str], sql: str | bytes, **more: object) -> bytes:
    sql = sql if isinstance(sql, bytes) else sql.encode()
    done = subprocess.run(command, input=sql, capture_output=True, timeout=600, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


class Workshop:
    """A temporary directory with keys in it, and what is done there."""

    def __init__(self) -> None:
        if not PELLUCID.exists():
            raise AssertionError(f"{PELLUCID} is missing: build it, or name its directory in PELLUCID_BIN")
        self.directory = Path(tempfile.mkdtemp(prefix="reader."))
        self.home = self.directory / "home"
        self.environment = {**os.environ, "PELLUCID_HOME": str(self.home), "HOME": str(self.directory)}
        self.key_file = self.write("key", os.urandom(32))
        self.passphrase_file = self.write("passphrase", PASSPHRASE)
        self._count = 0

    def close(self) -> None:
        shutil.rmtree(self.directory)

    def path(self, name: str = "") -> Path:
        """One that was not there before."""
        self._count += 1
        return self.directory / f"{name}{self._count}.db"

    def write(self, name: str, content: bytes) -> Path:
        path = self.directory / name
        path.write_bytes(content)
        path.chmod(0o600)
        return path

    def northwind_sql(self) -> bytes:
        return (ROOT / "demo" / "northwind.sql").read_bytes()  # its CR LF are content

    def northwind(self, page_size: int = 4096, encoding: str = "UTF-8") -> Path:
        """Plain. Made once of each kind, so treat it as read-only."""
        path = self.directory / f"northwind-{page_size}-{encoding}.db"
        if not path.exists():
            before = f"PRAGMA page_size={page_size}; PRAGMA encoding='{encoding}'; PRAGMA synchronous=OFF;"
            before += " PRAGMA journal_mode=MEMORY;"
            sqlite(path, self.northwind_sql(), before)
        return path

    def large(self) -> Path:
        """Plain, 16 MB: at 1 MB/s a scan of it is not done before it is suspended."""
        path = self.directory / "large.db"
        if not path.exists():
            sqlite(path, "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(16000000)), ('Northwind');")
        return path

    def sealed(self, plain: Path, *options: str) -> Path:
        """A sealed copy; under the key file unless the options say otherwise."""
        path = self.path("sealed")
        shutil.copy(plain, path)
        self.pellucid("encrypt", str(path), *(options or ("--key-file", str(self.key_file))))
        return path

    def pellucid(self, *arguments: str, sql: str | bytes = b"") -> bytes:
        return _run([str(PELLUCID), "--quiet", *arguments], sql, env=self.environment)

    def killed(self, database: Path, sql: str) -> None:
        """Runs SQL in a sqlite3 under the shim, and kills it with everything open."""
        uri = f"file:{database}?key_file={self.key_file}"
        process = subprocess.Popen(
            [str(PELLUCID), "--quiet", "run", "--", "sqlite3", "-bail", "-cmd", f".open '{uri}'"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment,
            start_new_session=True,
        )
        try:
            process.stdin.write(f"{sql}\n.print {READY}\n".encode())
            process.stdin.flush()
            for line in process.stdout:
                if line.decode().strip() == READY:
                    return
            raise AssertionError("sqlite3 ended before it could be killed")
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # `run` may be sqlite3 itself by now, or its parent
            except ProcessLookupError:
                pass
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def start_reader(self, *arguments: str | Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pellucid_reader", *map(str, arguments)]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(READER)},
        )

    def reader(self, *arguments: str | Path) -> tuple[int, str]:
        """Exit status and what it said."""
        process = self.start_reader(*arguments)
        said, complaints = process.communicate(timeout=900)
        return process.returncode, said + complaints

    def read(self, sealed: Path, *options: str | Path) -> Path:
        """The reader's output; has to succeed. With the key file unless the options say otherwise."""
        target = self.path("read")
        status, said = self.reader(sealed, target, *(options or ("--key-file", self.key_file)))
        if status != 0:
            raise AssertionError(f"{sealed.name}: exit {status}: {said}")
        return target
