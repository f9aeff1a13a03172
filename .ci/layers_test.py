"""Tests .ci/layers on a small clean workspace and on one change of it for each kind of breach.

The clean workspace has paths in comments, strings and tests, and circles that the rules allow: none of them is a breach.
The last line has the shape of cargo's, which .ci/steps sums.
"""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Mapping

Check = Callable[[Path], tuple[list[str], list[str]]]
Numbers = Callable[[Path], list[dict[str, Any]]]

PACKAGE = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n'
CORE, SHIM = "crates/pellucid", "crates/pellucid-vfs"
CLEAN = {
    "Cargo.toml": f'[workspace]\nresolver = "2"\nmembers = ["{CORE}", "{SHIM}"]\n',
    "Cargo.lock": """version = 3

[[package]]
name = "pellucid"
version = "0.1.0"

[[package]]
name = "pellucid-vfs"
version = "0.1.0"
dependencies = ["pellucid"]
""",
    "CONTRIBUTING.md": f"""# Contributing

## Layout

```
{CORE}          core
{SHIM}   shim
.ci/                     checks
```

| | |
|---|---|
| `crates` | all of them |

## Commands

```
crates/none is not meant here
```
""",
    ".ci/layers.toml": """[crates]
pellucid = []
pellucid-vfs = ["pellucid"]

[undocumented]
pellucid-vfs = 1

[[circle]]
crate = "pellucid-vfs"
modules = ["p", "q", "r", "s", "t"]
""",
    # The core has a circle of three, a b c. Nothing here uses `d`, which would make it one of four.
    f"{CORE}/Cargo.toml": PACKAGE.format("pellucid"),
    f"{CORE}/src/lib.rs": """//! Core.
mod a;
mod b;
mod c;
mod d;
pub use d::{Deep, other as renamed};
""",
    f"{CORE}/src/a.rs": r"""//! A.
use crate::b::Thing;

/// Documented.
pub struct One;

#[derive(Debug)]
#[doc = "Documented, too."]
pub enum Two {}

pub(crate) fn inner() {
    let _ = (r#""; use crate::d;"#, 'x', '"', "\"crate::d::x", b'\'', '\u{1F600}');
}
""",
    f"{CORE}/src/b.rs": """//! B.
/* use crate::d; /* nested */ use crate::d::x; */
// use crate::d;
use crate::{c::{d, e as f}, std::d};
fn life<'d>(of: &'d str) -> &'d str { 'd: loop { break 'd of } }
#[cfg(test)]
mod tests {
    use crate::d;
    pub fn none() {}
}
""",
    f"{CORE}/src/c.rs": """//! C.
mod deep;
use super::a::One;
#[cfg(test)]
use crate::d::{Deep};
#[cfg(test)]
mod tests;
""",
    f"{CORE}/src/c/deep.rs": """//! Deep.
use super::d;
/// Documented.
pub mod within {
    use super::super::d;
}
""",
    f"{CORE}/src/c/tests.rs": "use crate::d;\nuse super::super::d;\npub fn none() {}\n",
    f"{CORE}/src/d.rs": "//! D.\nuse crate::a;\nmacro_rules! made { ($name:ident) => { pub struct $name; } }\n",
    # The shim has a circle of five, which the rules name, and a public item without a doc comment, which they allow.
    f"{SHIM}/Cargo.toml": PACKAGE.format("pellucid-vfs") + '\n[dependencies]\npellucid = { path = "../pellucid" }\n',
    f"{SHIM}/src/lib.rs": "//! Shim.\npub mod p;\nmod q;\nmod r;\nmod s;\nmod t;\n",
    f"{SHIM}/src/p.rs": """//! P.
use crate::q;
pub fn undocumented() {
    // SAFETY: nothing is done.
    unsafe {}
}
""",
    f"{SHIM}/src/q/mod.rs": "//! Q.\nuse super::r;\n",
    f"{SHIM}/src/r.rs": "//! R.\nuse crate::s;\n",
    f"{SHIM}/src/s.rs": "//! S.\nfn call() { crate::t::call() }\n",
    f"{SHIM}/src/t.rs": "//! T.\nuse crate::p;\n",
    f"{SHIM}/tests/all.rs": "//! Tests.\n\n#[test]\nfn nothing() {}\n",
}
CORE_TOML, SHIM_TOML, ROOT = f"{CORE}/Cargo.toml", f"{SHIM}/Cargo.toml", f"{CORE}/src/lib.rs"
B, C, DEEP, D = (f"{CORE}/src/{name}.rs" for name in ("b", "c", "c/deep", "d"))
R, S, T = (f"{SHIM}/src/{name}.rs" for name in "rst")
UP = '\n[{}]\npellucid-vfs = {{ path = "../pellucid-vfs" }}\n'
REFUSED = rf"{CORE}/Cargo.toml:7: `pellucid` may not depend on `pellucid-vfs`"
FOUR = rf"{CORE}/src/\w.rs:\d+: `pellucid`: a new circle: a b c d: "
RULES, PAGE = ".ci/layers.toml", "CONTRIBUTING.md"
ROW = "\n## Layout\n| `crates/x` | x |\n"
OTHER_RULE = CLEAN[RULES].replace("\n", "\nother = []\n", 1)
TWO_ALLOWED = CLEAN[RULES].replace("= 1", "= 2")
NO_RULE = CLEAN[RULES].replace('pellucid-vfs = ["pellucid"]\n', "")
LONG = "fn long() {\n" + "\n" * 69 + "}\nfn not_long() {\n" + "\n" * 68 + "}\n"

# For each case: its name; the text that is added to files of the clean workspace, or replaces them where it begins with `=`;
# and the beginning of the only message that is expected, or nothing.
CASES: list[tuple[str, Mapping[str, str], str]] = [
    ("a clean workspace", {}, ""),
    ("a dependency upwards", {CORE_TOML: UP.format("dependencies")}, REFUSED),
    ("a build dependency upwards", {CORE_TOML: UP.format("build-dependencies")}, REFUSED),
    ("a dependency of one system", {CORE_TOML: UP.format("target.'cfg(unix)'.dependencies")}, REFUSED),
    ("tests may depend upwards", {CORE_TOML: UP.format("dev-dependencies")}, ""),
    ("a crate without a rule", {RULES: "=" + NO_RULE}, rf"{SHIM}/Cargo.toml:1: no rule for `pellucid-vfs`"),
    ("a rule without a crate", {RULES: "=" + OTHER_RULE}, rf"{RULES}:2: the workspace has no crate `other`"),
    ("a circle by `use`", {C: "use crate::d;\n"}, FOUR),
    ("a circle by a group", {C: "use crate::{std, a::{self, b}, d::x};\n"}, FOUR),
    ("a circle by `pub(crate) use`", {C: "pub(crate) use crate::d::x;\n"}, FOUR),
    ("a circle by `super`", {C: "use super::d;\n"}, FOUR),
    ("a circle by `super` from below", {DEEP: "use super::super::d;\n"}, FOUR),
    ("a circle by a path", {C: "fn call() { crate::d::call() }\n"}, FOUR),
    ("a circle by a name of the root", {C: "use crate::Deep;\n"}, FOUR),
    ("a circle by another name of the root", {C: "use crate::renamed;\n"}, FOUR),
    ("a circle between characters", {C: "const Q: [char; 2] = ['\"', '{'];\nuse crate::d;\nconst R: char = '\"';\n"}, FOUR),
    ("a circle behind a test", {B: "use crate::d;\n"}, FOUR),
    (
        "a circle that grew",
        {f"{SHIM}/src/lib.rs": "mod u;\n", f"{SHIM}/src/u.rs": "use crate::p;\n", T: "use crate::u;\n"},
        rf"{SHIM}/src/t.rs:3: `pellucid-vfs`: u joined the circle p q r s t: ",
    ),
    ("a circle may shrink", {S: "=use crate::p;\n"}, ""),
    ("a circle that is small", {R: "=use crate::p;\n"}, rf"{RULES}:8: `pellucid-vfs` no longer has this circle"),
    ("a crate without a row", {PAGE: f"=## Layout\n```\n{CORE} core\n```\n"}, rf"{PAGE}:1: the layout does not name `{SHIM}`"),
    ("a row for nothing", {PAGE: ROW}, rf"{PAGE}:\d+: the layout names `crates/x`"),
    ("a row for no crate", {PAGE: ROW, "crates/x/x": ""}, rf"{PAGE}:\d+: `crates/x` is no crate"),
    ("one more without a doc comment", {T: "pub unsafe fn x() {}\n"}, rf"{SHIM}/src/p.rs:3: `pellucid-vfs` has 2 "),
    ("a module that says it at its head", {ROOT: "pub mod e;\n", f"{CORE}/src/e.rs": "//! E.\n"}, ""),
    ("a module that does not", {ROOT: "pub mod e;\n", f"{CORE}/src/e.rs": "// E.\n"}, rf"{CORE}/src/lib.rs:7: "),
    ("unsafe code in the core", {D: "// SAFETY: none.\nfn x() { unsafe {} }\n"}, rf"{CORE}/src/d.rs: unsafe code does"),
    ("unsafe code without a reason", {T: "fn x() { unsafe {} }\n"}, rf"{SHIM}/src/t.rs:3: unsafe block without"),
]
CASES += [
    (f"no doc comment: {item}", {D: f"// No doc.\n#[inline]\n{item}\n"}, rf"{CORE}/src/d.rs:6: `pellucid` has 1 public")
    for item in (
        "pub fn x() {}", "pub const fn x() {}", 'pub async extern "C" fn x() {}', "pub struct X;", "pub enum X {}",
        "pub trait X {}", "pub const X: u8 = 0;", "pub static mut X: u8 = 0;", "pub type X = u8;", "pub mod x {}",
    )
]
# The same for notes: rules that can be tightened.
NOTES = [
    ("a circle that shrank is noted", {S: "=use crate::p;\n"}, rf"{RULES}:8: t left this circle"),
    ("a number that can go down is noted", {RULES: "=" + TWO_ALLOWED}, rf"{RULES}:6: `pellucid-vfs` has 1"),
    ("a rule without need is noted", {SHIM_TOML: "=" + PACKAGE.format("pellucid-vfs")}, rf"{RULES}:3: `pellucid-vfs` no"),
]
COUNTED = {
    "crate": "pellucid-vfs", "code": 17, "tests": 2, "modules": 5, "circle": 5, "long": 1, "functions": 4, "undocumented": 1,
    "unsafe": 1, "direct": 0, "packages": 2,
}


def workspace(root: Path, changes: Mapping[str, str]) -> Path:
    """Writes the clean workspace with its changes."""
    for name in CLEAN.keys() | changes.keys():
        change = changes.get(name, "")
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(change[1:] if change.startswith("=") else CLEAN.get(name, "") + change, encoding="utf-8")
    shutil.copy(Path(__file__).parent / "unsafe", root / ".ci/unsafe")
    return root


def run(check: Check, numbers: Numbers) -> int:
    """Runs all cases; 1 if one of them failed."""
    passed = failed = 0
    for name, changes, expected in CASES + NOTES:
        with tempfile.TemporaryDirectory() as folder:
            breaches, notes = check(workspace(Path(folder).resolve(), changes))
        found = notes if (name, changes, expected) in NOTES else breaches
        ok = len(found) == 1 and re.match(expected, found[0]) is not None if expected else not found
        passed, failed = passed + ok, failed + (not ok)
        print(f"test {name} ... {'ok' if ok else 'FAILED'}")
        if not ok:
            print(f"  expected: {expected or 'nothing'}\n  found:", *(found or ["nothing"]), sep="\n    ")
    with tempfile.TemporaryDirectory() as folder:
        row = numbers(workspace(Path(folder).resolve(), {T: LONG}))[1]
    ok = row == COUNTED
    passed, failed = passed + ok, failed + (not ok)
    print(f"test the numbers ... {'ok' if ok else f'FAILED: {row}'}")
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed; 0 ignored;")
    return 1 if failed else 0
