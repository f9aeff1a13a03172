#!/usr/bin/env python3
"""Makes the fixtures of a release: small files in every state that people may have them in, by the release's own program.

    tests/releases/make.sh PROGRAM_DIR OUT [--with-program]

PROGRAM_DIR has the release's `pellucid` and `libpellucid.so`; with `--with-program` OUT/program-ARCH.tar.xz gets them, stripped. OUT/fixtures.tar.xz gets a directory for each case and the
instance `keys` that they share; each case says in its file `case` what it is and what has to come out, a line `key: value`
for each fact. crates/pellucid-cli/tests/cli/releases.rs reads them. States that a killed process leaves are made by killing
one (killed.c) or by a copy of its files while it lives. Content and names are fixed; keys, salts, nonces and times are not.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

ROWS = 60
KEY_FILE = bytes(range(32))
PASSPHRASE = b"of a release\n"
PASSWORD = b"Keys of a Release 1\n"
LINES = "SELECT a || '|' || b || '|' || hex(c) FROM t ORDER BY a"


class Maker:
    def __init__(self, program: Path, root: Path):
        # Events tell the path of the program: not that of whoever makes this.
        released = root.parent / "released"
        released.mkdir()
        for name in ("pellucid", "libpellucid.so"):
            shutil.copy2(program / name, released / name)
        self.pellucid = released / "pellucid"
        self.root = root
        self.library = root.parent / "killed.so"
        source = Path(__file__).resolve().parent / "killed.c"
        compile_ = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(self.library), str(source), "-ldl"]
        subprocess.run(compile_, check=True)
        (root / "keys").mkdir()
        os.chmod(root / "keys", 0o700)
        self.secret("app.key", KEY_FILE)
        self.secret("passphrase", PASSPHRASE)
        self.secret("password", PASSWORD)

    def secret(self, name: str, content: bytes) -> None:
        path = self.root / name
        path.write_bytes(content)
        os.chmod(path, 0o600)

    def environment(self, opens: str) -> dict[str, str]:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.root), "LC_ALL": "C.UTF-8"}
        environment["PELLUCID_HOME"] = str(self.root / "keys")
        if opens == "key-file":
            environment["PELLUCID_KEY_FILE"] = str(self.root / "app.key")
        elif opens == "passphrase":
            environment["PELLUCID_PASSPHRASE_FILE"] = str(self.root / "passphrase")
        elif opens == "recovery":
            environment["PELLUCID_RECOVERY"] = "1"
        return environment

    def run(
        self,
        case: str,
        *words: str,
        opens: str = "certificate",
        sql: str = "",
        status: int = 0,
        killed: Mapping[str, str] | None = None,
    ) -> str:
        """Runs the program in the directory of a case; with `killed` it has to be killed there."""
        environment = self.environment(opens)
        if killed is not None:
            environment |= {f"KILLED_{name.upper()}": value for name, value in killed.items()}
            environment["LD_PRELOAD"] = str(self.library)
            status = -9
        done = subprocess.run(
            [str(self.pellucid), *words],
            cwd=self.root / case,
            env=environment,
            input=sql.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode not in ((status, 128 + 9) if killed is not None else (status,)):
            said = (done.stdout + done.stderr).decode(errors="replace")
            raise SystemExit(f"{case}: pellucid {' '.join(words)} ended with {done.returncode}: {said}")
        return done.stdout.decode()

    def sqlite(self, case: str, sql: str, opens: str = "certificate", name: str = "app.db") -> str:
        return self.run(case, "run", "--", "sqlite3", "-batch", "-bail", name, opens=opens, sql=sql)

    def plain(self, case: str, before: str = "", name: str = "app.db", rows: int = ROWS) -> None:
        """A plain database, by the SQLite that is installed."""
        (self.root / case).mkdir(exist_ok=True)
        sql = f"""{before or 'PRAGMA page_size=1024;'}
            CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB);
            CREATE INDEX i ON t(b);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
            INSERT INTO t SELECT i, printf('row %d of %s', i, '{case}'), zeroblob(i % 50) FROM n;"""
        subprocess.run(["sqlite3", "-batch", "-bail", str(self.root / case / name)], input=sql.encode(), check=True)

    def lines(self, case: str, name: str = "app.db") -> str:
        """What a plain database holds, as the test asks for it."""
        found = subprocess.run(
            ["sqlite3", "-batch", "-bail", str(self.root / case / name), LINES], check=True, capture_output=True
        )
        return found.stdout.decode()

    def sealed(self, case: str, *options: str, before: str = "", after: str = "", opens: str = "certificate") -> str:
        """An encrypted database; gives what it holds."""
        self.plain(case, before)
        held = self.lines(case)
        self.run(case, "encrypt", *options, "app.db", opens=opens)
        if after:
            self.sqlite(case, after, opens)
        return held

    def is_left(self, case: str, begins: str = "", state: str = "", log: str = "") -> None:
        """Whether the interruption came where it was to come."""
        path = self.root / case / "app.db"
        if not path.read_bytes().startswith(begins.encode()):
            raise SystemExit(f"{case}: it does not begin with `{begins}`")
        if log and not path.with_name(path.name + log).stat().st_size:
            raise SystemExit(f"{case}: no `{log}` is there")
        if state:
            told = json.loads(self.run(case, "--json", "status", "app.db"))["databases"][0]["encryption"]
            if told["encryption_state_desc"] != state or told["encryption_scan_state_desc"] != "RUNNING":
                raise SystemExit(f"{case}: {told}")

    def says(self, case: str, what: str, held: str | None = None, **facts: object) -> None:
        lines = [f"what: {what}"]
        if held is not None:
            lines += [f"rows: {held.count(chr(10))}", f"sha256: {hashlib.sha256(held.encode()).hexdigest()}"]
        lines += [f"{key.replace('_', '-')}: {value}" for key, value in facts.items()]
        (self.root / case / "case").write_text("\n".join(lines) + "\n", "utf-8")

    # What a live process leaves if it is killed now.
    def leave(self, case: str, sql: str, opens: str = "certificate") -> None:
        """Runs statements and keeps the files as they are then; the process ends afterwards, and what it does is undone."""
        directory = self.root / case
        self.sqlite(case, f"{sql}\n.shell mkdir kept && cp app.db app.db-wal app.db-journal kept 2>/dev/null; true\n", opens)
        for path in directory.glob("app.db*"):
            path.unlink()
        for path in (directory / "kept").iterdir():
            path.rename(directory / path.name)
        (directory / "kept").rmdir()


def added(held: str, rows: int, text: str) -> str:
    """What is held once rows 1000 and on are there, too."""
    return held + "".join(f"{1000 + at}|{text}|\n" for at in range(rows))


def insert(rows: int, text: str) -> str:
    return "".join(f"INSERT INTO t VALUES ({1000 + at}, '{text}', NULL);\n" for at in range(rows)).replace(", NULL)", ", '')")


def databases(make: Maker) -> None:
    for mode in ("delete", "truncate", "persist", "wal"):
        case = f"journal-{mode}"
        held = make.sealed(case, after=f"PRAGMA journal_mode={mode};\n{insert(3, mode)}")
        make.says(case, f"journal mode {mode.upper()}", added(held, 3, mode), kind="database")

    held = make.sealed("hot-wal", after="PRAGMA journal_mode=wal;")
    make.leave("hot-wal", f"PRAGMA wal_autocheckpoint=0;\n{insert(20, 'in the log')}BEGIN;\nDELETE FROM t;")
    make.is_left("hot-wal", log="-wal")
    make.says("hot-wal", "WAL with commits, its writer killed", added(held, 20, "in the log"), kind="database")

    held = make.sealed("hot-journal")
    make.leave("hot-journal", "PRAGMA cache_size=2;\nPRAGMA cache_spill=ON;\nBEGIN;\nUPDATE t SET b = 'lost' || b, c = zeroblob(200);")
    make.is_left("hot-journal", log="-journal")
    make.says("hot-journal", "hot journal, its writer killed", held, kind="database")

    held = make.sealed("hot-journal-persist", after=f"PRAGMA journal_mode=persist;\n{insert(5, 'before')}")
    spill = "PRAGMA journal_mode=persist;\nPRAGMA cache_size=2;\nPRAGMA cache_spill=ON;\nBEGIN;\nUPDATE t SET b = 'lost' || b, c = zeroblob(200);"
    make.leave("hot-journal-persist", spill)
    make.is_left("hot-journal-persist", log="-journal")
    what = "hot journal over an ended one (PERSIST), its writer killed"
    make.says("hot-journal-persist", what, added(held, 5, "before"), kind="database")

    # Behind the second header copy, so many pages have been rewritten.
    half = {"file": "app.db", "magic": "Pellucid header", "count": "2", "more": "5"}
    held = make.sealed("rekey-half")
    make.run("rekey-half", "rekey", "app.db", killed=half)
    make.is_left("rekey-half", state="KEY_CHANGE_IN_PROGRESS")
    make.says("rekey-half", "key change, killed in its scan", held, kind="database", finish="scan resume")

    held = make.sealed("rekey-half-wal", after="PRAGMA journal_mode=wal;")
    log = {"file": "app.db", "magic": "Pellucid header", "count": "2"}
    make.run("rekey-half-wal", "rekey", "app.db", "--algorithm", "AES_128", killed=log)
    make.is_left("rekey-half-wal", state="KEY_CHANGE_IN_PROGRESS")
    what = "key change to another algorithm in WAL mode, killed before its scan"
    make.says("rekey-half-wal", what, held, kind="database", finish="scan resume")

    held = make.sealed("new-id-half")
    make.run("new-id-half", "rekey", "--new-id", "app.db", killed=half)
    make.is_left("new-id-half", state="KEY_CHANGE_IN_PROGRESS")
    make.says("new-id-half", "another file id, killed in its scan", held, kind="database", finish="scan resume")

    held = make.sealed("header-half")
    make.run("header-half", "rekey", "app.db", killed={**half, "count": "1", "more": "0"})
    make.is_left("header-half", state="KEY_CHANGE_IN_PROGRESS")
    make.says("header-half", "key change, killed between the header's copies", held, kind="database", finish="scan resume")

    held = make.sealed("off")
    make.run("off", "decrypt", "--keep-container", "app.db")
    make.says("off", "encryption switched off (state 1)", held, kind="database", state="unencrypted")
    held = make.sealed("off-half")
    make.run("off-half", "decrypt", "--keep-container", "app.db", killed=half)
    make.is_left("off-half", state="DECRYPTION_IN_PROGRESS")
    make.says("off-half", "switching off (state 5), killed in its scan", held, kind="database", finish="scan resume", state="unencrypted")
    held = make.sealed("on-half")
    make.run("on-half", "decrypt", "--keep-container", "app.db")
    make.run("on-half", "encrypt", "app.db", killed=half)
    make.is_left("on-half", state="ENCRYPTION_IN_PROGRESS")
    make.says("on-half", "switching on (state 2), killed in its scan", held, kind="database", finish="scan resume")

    make.plain("encrypt-killed")
    held = make.lines("encrypt-killed")
    laid = {"file": "app.db", "magic": "Pellucid sealed", "more": "2"}
    make.run("encrypt-killed", "encrypt", "app.db", killed=laid)
    make.is_left("encrypt-killed", begins="Pellucid sealed", log="-pellucid")
    make.says("encrypt-killed", "first encryption, killed while it was laid", held, kind="database")
    make.plain("encrypt-stale")
    make.run("encrypt-stale", "encrypt", "app.db", killed={**laid, "more": "0", "before": "1"})
    make.is_left("encrypt-stale", begins="SQLite format 3", log="-pellucid")
    what = "first encryption, killed before its commit point"
    make.says("encrypt-stale", what, make.lines("encrypt-stale"), kind="database", state="plain")
    held = make.sealed("decrypt-killed")
    make.run("decrypt-killed", "decrypt", "app.db", killed={"file": "app.db", "magic": "Pellucid laying", "more": "1"})
    make.is_left("decrypt-killed", begins="Pellucid laying", log="-pellucid")
    make.says("decrypt-killed", "decryption, killed while it was laid", held, kind="database", state="plain")
    held = make.sealed("restore-killed")
    make.run("restore-killed", "backup", "app.db", "--to", "app.bak")
    make.sqlite("restore-killed", "DELETE FROM t;")
    make.run("restore-killed", "restore", "app.bak", "--to", "app.db", "--replace", killed={"file": "app.db", "magic": "Pellucid laying", "more": "1"})
    make.is_left("restore-killed", begins="Pellucid laying", log="-pellucid")
    (make.root / "restore-killed" / "app.bak").unlink()
    make.says("restore-killed", "restore in the place of a database, killed while it was laid", held, kind="database")

    for opens, options in (
        ("key-file", ("--key-file", "../app.key")),
        ("passphrase", ("--passphrase-file", "../passphrase")),
        ("certificate", ("--certificate", "app")),
        ("recovery", ("--certificate", "app", "--recovery")),
    ):
        case = f"protector-{opens}"
        if opens == "recovery":
            held = make.sealed(case, "--certificate", "app")
            make.run(case, "protector", "add", "--recovery-certificate", "rescue", "app.db")
            make.run(case, "protector", "drop", "--number", "1", "app.db", opens="recovery")
        else:
            held = make.sealed(case, *options, opens=opens)
        what = {"key-file": "a key file", "passphrase": "a passphrase", "certificate": "a certificate", "recovery": "a recovery certificate"}
        make.says(case, f"under {what[opens]}", held, kind="database", opens=opens)

    for algorithm in ("AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"):
        case = f"algorithm-{algorithm.lower()}"
        held = make.sealed(case, "--algorithm", algorithm)
        make.says(case, algorithm, held, kind="database")
    for size in (512, 4096, 65536):
        held = make.sealed(f"page-{size}", before=f"PRAGMA page_size={size};")
        make.says(f"page-{size}", f"pages of {size} bytes", held, kind="database")
    for case, what, before in (
        ("auto-vacuum", "auto_vacuum=FULL", "PRAGMA page_size=1024; PRAGMA auto_vacuum=FULL;"),
        ("incremental", "auto_vacuum=INCREMENTAL", "PRAGMA page_size=1024; PRAGMA auto_vacuum=INCREMENTAL;"),
        ("utf-16", "UTF-16", "PRAGMA page_size=1024; PRAGMA encoding='UTF-16le';"),
    ):
        make.says(case, what, make.sealed(case, before=before), kind="database")


def media(make: Maker) -> None:
    key = ("--key-file", "../app.key")

    def backed_up(case: str, what: str, files: str, sets: int, held: str, **facts: object) -> None:
        (make.root / case / "app.db").unlink(missing_ok=True)
        make.says(case, what, held, kind="media", media=files, sets=sets, **facts)

    for how in ("none", "zstd", "lz4"):
        case = f"media-{how}"
        held = make.sealed(case)
        make.run(case, "backup", "app.db", "--to", "app.bak", "--compression", how)
        backed_up(case, f"full set under a certificate, compression {how}", "app.bak", 1, held, compression=how)
    make.plain("media-in-clear")
    held = make.lines("media-in-clear")
    make.run("media-in-clear", "backup", "app.db", "--to", "app.bak", "--no-encryption")
    backed_up("media-in-clear", "full set in clear, of a plain database", "app.bak", 1, held, plain="yes")
    make.plain("media-sealed-plain")
    held = make.lines("media-sealed-plain")
    make.run("media-sealed-plain", "backup", "app.db", "--to", "app.bak", "--certificate", "app")
    backed_up("media-sealed-plain", "sealed set of a plain database", "app.bak", 1, held, plain="yes")
    for opens, option in (("key-file", "--key-file=../app.key"), ("passphrase", "--passphrase-file=../passphrase")):
        case = f"media-{opens}"
        held = make.sealed(case, option, opens=opens)
        make.run(case, "backup", "app.db", "--to", "app.bak", opens=opens)
        backed_up(case, f"full set under a {opens.replace('-', ' ')}", "app.bak", 1, held, opens=opens)
    held = make.sealed("media-triple-des", *key, opens="key-file")
    make.run("media-triple-des", "backup", "app.db", "--to", "app.bak", "--algorithm", "TRIPLE_DES_3KEY", *key)
    backed_up("media-triple-des", "full set, TRIPLE_DES_3KEY", "app.bak", 1, held, opens="key-file")

    held = make.sealed("media-differential")
    make.run("media-differential", "backup", "app.db", "--to", "full.bak")
    make.sqlite("media-differential", insert(4, "since"))
    make.run("media-differential", "backup", "app.db", "--to", "app.bak", "--differential", "--base", "full.bak")
    backed_up("media-differential", "differential on media of its own", "app.bak", 1, added(held, 4, "since"), base="full.bak")
    held = make.sealed("media-several")
    make.run("media-several", "backup", "app.db", "--to", "app.bak")
    make.sqlite("media-several", insert(2, "since"))
    make.run("media-several", "backup", "app.db", "--to", "app.bak", "--append", "--differential")
    make.sqlite("media-several", "UPDATE t SET b = 'again' WHERE a > 1000;")
    make.run("media-several", "backup", "app.db", "--to", "app.bak", "--append", "--copy-only", "--retain-days", "9999")
    last = held + "1000|since|\n1001|again|\n"
    backed_up("media-several", "full, differential and copy-only sets in one file", "app.bak", 3, last)
    held = make.sealed("media-striped")
    make.run("media-striped", "backup", "app.db", "--to", "one.bak", "two.bak", "three.bak")
    backed_up("media-striped", "three stripes", "one.bak two.bak three.bak", 1, held)
    held = make.sealed("media-mirrored")
    make.run("media-mirrored", "backup", "app.db", "--to", "one.bak", "two.bak", "--mirror", "three.bak", "four.bak")
    backed_up("media-mirrored", "two stripes, two mirrors", "one.bak two.bak three.bak four.bak", 1, held, mirror="yes")
    held = make.sealed("media-interrupted")
    make.run("media-interrupted", "backup", "app.db", "--to", "app.bak")
    whole = (make.root / "media-interrupted" / "app.bak").stat().st_size
    make.run("media-interrupted", "backup", "app.db", "--to", "app.bak", "--append")
    os.truncate(make.root / "media-interrupted" / "app.bak", whole + 3000)
    backed_up("media-interrupted", "a set behind which another one was interrupted", "app.bak", 1, held)
    held = make.sealed("media-damaged", *key, before="PRAGMA page_size=1024;", opens="key-file")
    make.run("media-damaged", "backup", "app.db", "--to", "whole.bak", opens="key-file")
    with open(make.root / "media-damaged" / "app.db", "r+b") as file:
        file.seek(16384 + 4 * 1024 + 9)
        file.write(b"\0\1\2\3")
    make.run("media-damaged", "backup", "app.db", "--to", "app.bak", "--continue-after-error", opens="key-file", status=3)
    (make.root / "media-damaged" / "whole.bak").unlink()
    (make.root / "media-damaged" / "app.db").unlink()
    what = "full set that lacks a page (--continue-after-error)"
    make.says("media-damaged", what, kind="damaged-media", media="app.bak", sets=1, opens="key-file")


def instances(make: Maker) -> None:
    """The instance is that of all cases; these are files that came out of it, and what has to be in it."""
    (make.root / "exports").mkdir()
    password = ("--password-file", "../password")
    make.run("exports", "cert", "export", "app", "--cert-file", "app.pem", "--key-file", "app.pem.key", *password)
    make.run("exports", "key", "backup", "master", "--file", "master.backup", *password)
    make.run("exports", "key", "backup", "service", "--file", "service.backup", *password)
    make.run("exports", "key", "password", "add", *password)
    make.run("exports", "policy", "set", "rekey-after", "365d")
    held = make.sealed("exports", "--certificate", "app")
    make.says("exports", "an exported certificate, and backups of the master keys", held, kind="exports")

    # Another instance, that opens what is sealed for its certificate.
    for case, what in (("bundle-password", "a bundle under a password"), ("bundle-certificate", "a bundle for a certificate")):
        held = make.sealed(case, "--certificate", "app")
        if case == "bundle-password":
            make.run(case, "instance", "export", "--to", "keys.bundle", *password)
            make.says(case, what, held, kind="bundle", password="yes")
            continue
        elsewhere = make.root / case / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        other = {**make.environment("certificate"), "PELLUCID_HOME": str(elsewhere)}
        for words in (["cert", "create", "inbox", "--expiry", "2099-12-31"], ["cert", "export", "inbox", "--cert-file", "inbox.pem"]):
            subprocess.run([str(make.pellucid), *words], cwd=make.root / case, env=other, check=True, capture_output=True)
        make.run(case, "cert", "import", "inbox", "--cert-file", "inbox.pem")
        make.run(case, "instance", "export", "--to", "keys.bundle", "--certificate", "inbox")
        make.says(case, what, held, kind="bundle", password="no", elsewhere="elsewhere")

    (make.root / "instance").mkdir()
    make.says("instance", "an instance: master keys, certificates, policies, passwords, history", kind="instance")


CASES: tuple[Callable[[Maker], None], ...] = (databases, media, instances)


def pack(root: Path, to: Path, mode: int) -> None:
    """In one order, of nobody and of no time, so that the same files give the same archive."""

    def stripped(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o700 if entry.isdir() else mode
        return entry

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            archive.add(path, path.relative_to(root), recursive=False, filter=stripped)
    done = subprocess.run(["xz", "-9e", "-c", "-T1"], input=packed.getvalue(), check=True, capture_output=True)
    to.write_bytes(done.stdout)
    print(f"{to}: {len(done.stdout)} bytes")


def pack_program(program: Path, work: Path, out: Path) -> None:
    work.mkdir()
    for name in ("pellucid", "libpellucid.so"):
        subprocess.run(["strip", "-o", str(work / name), str(program / name)], check=True)
    pack(work, out / f"program-{platform.machine()}.tar.xz", 0o700)


def main() -> int:
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--with-program"]):
        print(__doc__, file=sys.stderr)
        return 2
    program, out = Path(sys.argv[1]), Path(sys.argv[2])
    if (out / "fixtures.tar.xz").exists():
        print(f"{out / 'fixtures.tar.xz'} is there: it is what people have, and is not made again", file=sys.stderr)
        return 1
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pellucid-release-") as work:
        root = Path(work) / "root"
        root.mkdir()
        make = Maker(program, root)
        (root / "first").mkdir()
        make.run("first", "init")
        for name in ("pellucid", "app", "rescue"):
            make.run("first", "cert", "create", name, "--expiry", "2099-12-31")
        (root / "first").rmdir()
        for cases in CASES:
            cases(make)
        # What only the process that made it has to do with: locks, and how far a scan was.
        shutil.rmtree(root / "keys" / "run", ignore_errors=True)
        for lock in (root / "keys" / "keyring").glob("lock"):
            lock.unlink()
        for stray in (path for path in root.rglob("*") if path.name.endswith("-shm")):
            stray.unlink()
        pack(root, out / "fixtures.tar.xz", 0o600)
        print(f"{sum(1 for _ in root.glob('*/case'))} cases")
        if sys.argv[3:]:
            pack_program(program, Path(work) / "program", out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
