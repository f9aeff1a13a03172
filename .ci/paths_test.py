"""Tests .ci/paths on small sources: each kind of call that it has to find, and what is none.

The last line has the shape of cargo's, which .ci/steps sums.
"""

import tempfile
from pathlib import Path
from typing import Callable

Check = Callable[[Path], list[str]]

RULES = """free = ["files"]
descriptors = ["file", "found"]

[[allowed]]
path = "crates/a/src/known.rs"
calls = 1
reason = "the caller's own directory"
"""
KNOWN = "fn own() { let _ = std::fs::read(own_path()); }\n"
# A source, and how many of its calls have to be found.
CASES: list[tuple[str, str, int]] = [
    ("no call", "fn f(file: &File) { file.metadata(); file.sync_all(); }", 0),
    ("a function of std", 'fn f() { std::fs::remove_file("a"); }', 1),
    ("by its module", 'use std::fs;\nfn f() { fs::rename("a", "b"); fs::read("a"); }', 2),
    ("by its name", 'use std::fs::{remove_file, File};\nfn f() { remove_file("a"); File::open("b"); }', 2),
    ("under another name", 'use std::fs::remove_file as gone;\nfn f() { gone("a"); }', 1),
    ("handed on as a function", "fn f(paths: &[&str]) { paths.iter().map(std::fs::metadata); }", 1),
    ("options", "use std::fs::OpenOptions;\nfn f() { OpenOptions::new().read(true).open(p); }", 1),
    ("options of a file", "fn f() { File::options().open(p); }", 1),
    ("a look", "fn f(path: &Path) { path.exists(); path.symlink_metadata(); path.canonicalize(); }", 3),
    ("a look by a path", "fn f(path: &Path) { path.metadata(); path.is_file(); }", 2),
    ("a look at what was returned", "fn f() { copy_path(a, (b)).is_file(); self.file().metadata()?.is_file(); }", 2),
    ("a look handed on", "fn f(p: Option<&Path>) { p.is_some_and(Path::is_dir); }", 1),
    ("what is open", "fn f() { found.is_file(); self.file.metadata(); handle.file().metadata(); }", 0),
    ("rustix", "use rustix::fs::{openat, unlinkat};\nfn f() { openat(d, n, f, m); unlinkat(d, n, f); }", 2),
    ("the retried openat", "use pellucid_files::open_at::open_at;\nfn f() { open_at(d, n, f, m); }", 1),
    ("rustix by descriptor", "use rustix::fs::{flock, fstat};\nfn f() { flock(&f, o); fstat(&f); rustix::fs::fcntl_getfl(f); }", 0),
    ("nix", "use nix::sys::stat::stat;\nfn f() { stat(p); nix::fcntl::open(p, f, m); }", 2),
    ("libc", "fn f() { unsafe { libc::unlink(p); libc::fstat(d, s); } }", 1),
    ("a symbolic link", "fn f() { std::os::unix::fs::symlink(a, b); std::os::unix::fs::fchown(f, u, g); }", 1),
    ("a socket", "use std::os::unix::net::UnixListener;\nfn f() { UnixListener::bind(p); }", 1),
    ("types, constants and comments", "use std::fs::Metadata;\n// std::fs::read(a)\nfn f(m: &std::fs::Metadata) { s(\"fs::read(a)\") }", 0),
    ("tests", '#[cfg(test)]\nmod tests {\n fn f() { std::fs::read("a"); }\n}', 0),
]


def workspace(root: Path, source: str, rules: str = RULES, known: str = KNOWN) -> Path:
    """Writes the small workspace."""
    files = {".ci/paths.toml": rules, "crates/a/src/known.rs": known, "crates/a/src/lib.rs": source, "crates/files/src/lib.rs": KNOWN}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def run(check: Check) -> int:
    """Runs all cases; 1 if one of them failed."""
    passed = failed = 0

    def judge(name: str, found: list[str], ok: bool) -> None:
        nonlocal passed, failed
        passed, failed = passed + ok, failed + (not ok)
        print(f"test {name} ... {'ok' if ok else 'FAILED'}")
        if not ok:
            print("  found:", *(found or ["nothing"]), sep="\n    ")

    for name, source, count in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = check(workspace(Path(folder), source))
        judge(name, found, len(found) == count and all(one.startswith("crates/a/src/lib.rs:") for one in found))
    for name, rules, known, begins in (
        ("a call more than its rule says", RULES, KNOWN + KNOWN, "crates/a/src/known.rs: 2 calls"),
        ("a call fewer than its rule says", RULES.replace("calls = 1", "calls = 2"), KNOWN, ".ci/paths.toml: `crates/a/src/known.rs` has 1 calls"),
        ("a rule for a file without calls", RULES, "", ".ci/paths.toml: `crates/a/src/known.rs` has 0 calls"),
        ("a rule for no file", RULES.replace("known", "gone"), "", ".ci/paths.toml: `crates/a/src/gone.rs` has 0 calls"),
        ("a rule without a reason", RULES.replace("the caller's own directory", " "), KNOWN, ".ci/paths.toml: `crates/a/src/known.rs` has no reason"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            found = check(workspace(Path(folder), "", rules, known))
        judge(name, found, len(found) == 1 and found[0].startswith(begins))
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed; 0 ignored;")
    return 1 if failed else 0
