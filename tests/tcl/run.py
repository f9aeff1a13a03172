#!/usr/bin/env python3
"""SQLite's own TCL suite over the shim, every database sealed from birth.

usage: run.py [--plain] [--suite NAME] [--jobs N] [--timeout SECONDS] [--keep] [PATTERN...]
       run.py --build    builds only, and prints the directories of the build and of SQLite's source

PATTERNs choose test files (`wal*.test`); without any, all of the suite (default: veryquick). Each file runs in a process
and a directory of its own: where a script error would end SQLite's all-in-one run, one file aborts here. A test that
fails has to be in expected.tsv, with its reason; one that is there and passes is told. The last line counts like
Cargo's; failed are the unexpected ones, ignored the expected ones. Exit: 0 none failed, 1 some, 2 it could not be run.

The suite is Debian's source package of the SQLite that is installed; it is built once, in target/tcl. The library under
test is the one in PELLUCID_BIN (default: target/debug).
"""

import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "tcl"
BUILT = Path(os.environ.get("PELLUCID_BIN") or ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug")
NOBODY = 65534

SUMMARY = re.compile(rb"^(\d+) errors out of (\d+) tests", re.M)
FAILURE = re.compile(rb"^! (\S+) (?:expected|error|got)", re.M)


def build() -> tuple[Path, Path]:
    """The testfixture and SQLite's source."""
    WORK.mkdir(parents=True, exist_ok=True)
    fixture = WORK / "build" / "testfixture"
    init = WORK / "build" / "init.c"
    if not list(WORK.glob("sqlite3-3*/configure")):
        log(f"SQLite's source: {fetch()}")
    source = next(WORK.glob("sqlite3-3*/configure")).parent
    mended = mend_crash(source / "src" / "test6.c")
    if fixture.exists() and init.exists() and init.read_bytes() == (HERE / "init.c").read_bytes() and not mended:
        return fixture, source
    log("building testfixture (about a minute)")
    fixture.parent.mkdir(exist_ok=True)
    fixture.unlink(missing_ok=True)
    shutil.copy(HERE / "init.c", init)
    makefile = fixture.parent / "Makefile"
    # A build directory that was moved or copied names another source than the one that is mended here.
    if not makefile.exists() or f"TOP = {source}\n" not in makefile.read_text():
        run_logged([f"{source}/configure", "--enable-all", "--disable-static", "--with-tcl=/usr/lib/tcl8.6"])
    run_logged(
        ["make", f"-j{os.cpu_count()}", "testfixture", "OPTS=-DSQLITE_EXTRA_INIT=pellucid_extra_init",
         "TLIBS=init.c -lm -lz -ldl"]
    )
    return fixture, source


def mend_crash(test6: Path) -> bool:
    """The suite's crash VFS writes sectors of garbage when power fails, and where the VFS below refuses one, as the shim
    does with what is no page, it lives on over a half-destroyed database. Power fails all the same. True if changed."""
    text = test6.read_text()
    step = "    if( pWrite==pFinal ) break;\n"
    mended = "    if( isCrash ) rc = SQLITE_OK;\n" + step
    if mended in text:
        return False
    if text.count(step) != 1:
        log(f"run.py: {test6} is not the crash VFS it knows")
        sys.exit(2)
    test6.write_text(text.replace(step, mended))
    return True


def fetch() -> str:
    """Debian's source package; needs a deb-src line, which a root adds."""
    sources = list(Path("/etc/apt/sources.list.d").glob("*")) + [Path("/etc/apt/sources.list")]
    if not any("deb-src" in path.read_text() for path in sources if path.is_file()):
        debian = Path("/etc/apt/sources.list.d/debian.sources").read_text()
        ours = Path("/etc/apt/sources.list.d/pellucid-source.sources")
        ours.write_text(re.sub(r"^Types: deb$", "Types: deb-src", debian, flags=re.M))
    # The line may be there and what it names not yet, or not any more.
    known = ["apt-get", "source", "-qq", "--print-uris", "sqlite3"]
    if subprocess.run(known, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        run_logged(["apt-get", "update", "-qq"], WORK)
    run_logged(["apt-get", "source", "-qq", "sqlite3"], WORK)
    return next(WORK.glob("sqlite3-3*/configure")).parent.name


def run_logged(command: list[str], directory: Path = WORK / "build") -> None:
    with open(WORK / "build.log", "ab") as out:
        done = subprocess.run(command, cwd=directory, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    if done.returncode:
        log(f"run.py: `{' '.join(command)}` failed; see {WORK}/build.log")
        sys.exit(2)


class Place:
    """A directory that nobody else's permissions matter in: the suite wants an ordinary user, who has to reach all."""

    def __init__(self, fixture: Path, source: Path, plain: bool):
        self.path = Path(tempfile.mkdtemp(prefix="pellucid-tcl-"))
        self.fixture = self.path / "testfixture"
        self.tests = self.path / "sqlite" / "test"
        shutil.copy(fixture, self.fixture)
        for name in ("test", "ext", "src"):
            shutil.copytree(source / name, self.path / "sqlite" / name)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.path), "LC_ALL": "C.UTF-8"}
        if not plain:
            self._seal()
        self.user = {}
        if os.geteuid() == 0:
            for directory, _, files in os.walk(self.path):
                for name in (directory, *(os.path.join(directory, file) for file in files)):
                    os.chown(name, NOBODY, NOBODY)
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def _seal(self) -> None:
        """Every new database is sealed under a key file. There is no keyring: the suite takes databases away, cuts them and
        puts plain ones in their place all the time, which a keyring refuses at a path that it has pinned."""
        extension = self.path / "libpellucid.so"
        shutil.copy(BUILT / "libpellucid.so", extension)
        key = self.path / "database.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(32))
        sealing = {"PELLUCID_KEY_FILE": str(key), "PELLUCID_ENCRYPT_NEW": "1"}
        self.environment |= sealing | {"PELLUCID_TCL_EXTENSION": str(extension)}

    def files(self, suite: str) -> list[str]:
        """The test files of a suite, as SQLite's permutations.test names them."""
        script = self.path / "list.tcl"
        script.write_text(
            f"set argv0 {self.tests}/list.test; set argv {{}}; source {self.tests}/permutations.test\n"
            f"array set chosen $::testspec({suite}); foreach file [lsort $chosen(-files)] {{puts [file tail $file]}}; exit\n"
        )
        environment = {name: value for name, value in self.environment.items() if name != "PELLUCID_TCL_EXTENSION"}
        listed = subprocess.run(
            [self.fixture, script], cwd=self.path, env=environment, check=True, capture_output=True, **self.user
        )
        return [line for line in listed.stdout.decode().splitlines() if line.endswith(".test")]

    def run(self, suite: str, file: str, seconds: int) -> "Result":
        directory = self.path / "run" / file
        directory.mkdir(parents=True)
        os.chown(directory, self.user.get("user", -1), self.user.get("group", -1))
        words = [self.fixture, self.tests / "permutations.test", suite, file, "--maxerror=1000000"]
        with open(self.path / f"{file}.log", "w+b") as out:
            process = subprocess.Popen(
                words, cwd=directory, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, **self.user,
            )
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            process.wait()
            out.seek(0)
            said = out.read()
        shutil.rmtree(directory, ignore_errors=True)
        return Result(file, status, said)


class Result:
    def __init__(self, file: str, status: int | None, said: bytes):
        self.file = file
        self.failures = sorted({name.decode(errors="replace") for name in FAILURE.findall(said)})
        summary = SUMMARY.findall(said)
        self.tests = int(summary[-1][1]) if summary else len(re.findall(rb" Ok$", said, re.M))
        self.abort = ""
        if status is None:
            self.abort = "TIMEOUT"
        elif not summary:
            lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
            self.abort = f"ABORT status {status}: {lines[-1] if lines else ''}"[:150]


def expected() -> dict[str, dict[str, str]]:
    """By file: pattern of a test's name (`ABORT` and `TIMEOUT`: how the file ends) to class."""
    known: dict[str, dict[str, str]] = defaultdict(dict)
    for line in (HERE / "expected.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            file, test, kind = line.split("\t")[:3]
            known[file][test] = kind
    return known


def log(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="test files; default: all of the suite")
    parser.add_argument("--plain", action="store_true", help="plain SQLite, for comparison")
    parser.add_argument("--suite", default="veryquick", help="one of permutations.test's (default: veryquick)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files at a time (default: one a core)")
    parser.add_argument("--timeout", type=int, default=1200, help="seconds for one file (default: 1200)")
    parser.add_argument("--keep", action="store_true", help="keep the logs, and say where")
    parser.add_argument("--build", action="store_true", help="build only; print the build's directory and the source's")
    options = parser.parse_args()

    os.umask(0o022)
    fixture, source = build()
    if options.build:
        log(f"{fixture.parent}\n{source}")
        return 0
    place = Place(fixture, source, options.plain)
    files = place.files(options.suite)
    if options.patterns:
        files = [file for file in files if any(fnmatch.fnmatch(file, pattern) for pattern in options.patterns)]
    log(f"{len(files)} files of {options.suite} on {'plain SQLite' if options.plain else 'sealed databases'}")
    started = time.monotonic()
    listed = {} if options.plain else expected()

    def run(file: str) -> Result:
        # One that never ends: `while {[file size test.db] > 512*3}`.
        return place.run(options.suite, file, 20 if "TIMEOUT" in listed.get(file, {}) else options.timeout)

    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(run, files))
    failed, known = judge(results, listed)
    log(f"{time.monotonic() - started:.0f} s" + (f"; logs: {place.path}" if options.keep or failed else ""))
    if not options.keep and not failed:
        shutil.rmtree(place.path, ignore_errors=True)
    tests = sum(result.tests for result in results)
    verdict = "FAILED" if failed or not tests else "ok"
    log(f"test result: {verdict}. {max(tests - failed - known, 0)} passed; {failed} failed; {known} ignored;")
    return 1 if failed or not tests else 0


def judge(results: list[Result], known: dict[str, dict[str, str]]) -> tuple[int, int]:
    """Prints what was not expected; counts that, and what was."""
    unexpected, met = 0, defaultdict(int)
    for result in results:
        patterns = known.get(result.file, {})
        seen = set()
        for name in result.failures + ([result.abort] if result.abort else []):
            word = name.split()[0]
            found = next((pattern for pattern in patterns if fnmatch.fnmatchcase(word, pattern)), None)
            if found is None:
                unexpected += 1
                log(f"UNEXPECTED {result.file} {name}")
                continue
            seen.add(found)
            met[patterns[found]] += 1
        for pattern in patterns.keys() - seen:
            log(f"passed although listed: {result.file} {pattern}")
    log(f"{len(results)} files, {sum(result.tests for result in results)} tests, expected failures: "
        + (", ".join(f"{kind} {count}" for kind, count in sorted(met.items())) or "none"))
    return unexpected, sum(met.values())


if __name__ == "__main__":
    sys.exit(main())
