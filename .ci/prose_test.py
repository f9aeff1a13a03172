"""Tests .ci/prose on a small clean set of pages and on one change of it for each kind of breach.

The clean pages have long code blocks, quoted clauses, long descriptions of pictures and links of every kind: none of them is
a breach. The last line has the shape of cargo's, which .ci/steps sums.
"""

import re
import tempfile
from pathlib import Path
from typing import Callable

Check = Callable[[Path], list[str]]

SIXTY = " ".join(["word"] * 60)
MORE = SIXTY + " word"
LESS = SIXTY.removesuffix(" word")
RULES = """words = 60
pages = ["README.md", "docs/*.md"]
exempt = ["docs/format.md"]
links = ["README.md", "docs/*.md"]
clauses = ["what is not whole", "whoever", "(is|are) told"]
whole = { "docs/page.md" = 135 }
"""
CLEAN = {
    ".ci/prose.toml": RULES,
    "README.md": f"""# Title

{SIXTY}

- {SIXTY}
  - {SIXTY}
1. {SIXTY}

| {SIXTY} | [a page](docs/page.md#the-second-heading-1) |
|---|---|
| "whoever reads" | `what is not whole` |

{LESS} ![{MORE}](docs/page.md) `{MORE}`

```
{MORE} whoever [gone](gone.md)
```

[here](#title) · [out](https://example.org/gone) · [a folder](docs) · [name](docs/page.md#a_name-and-b) · +3.5 % (+0.5 to +6.5 %)
""",
    "docs/page.md": "# A page\n\n## The *second* heading\n\n## The second heading\n\n### `a_name` and B\n",
    "docs/format.md": f"# Format\n\nwhoever {MORE}\n",
}
README, PAGE = "README.md", "docs/page.md"
# What a case adds to a page, and the breach that it has to find; None: no breach.
CASES: list[tuple[str, str, str, str | None]] = [
    ("the clean pages", README, "", None),
    ("a paragraph that is too long", README, f"\n{MORE}\n", r"README.md:\d+: an item of 61 words, 60 are allowed"),
    ("a paragraph over two lines", README, f"\n{SIXTY}\nword\n", r"README.md:\d+: an item of 61 words"),
    ("a list item that is too long", README, f"\n- {SIXTY}\n  word\n", r"README.md:\d+: an item of 61 words"),
    ("a numbered item that is too long", README, f"\n2. {MORE}\n", r"README.md:\d+: an item of 61 words"),
    ("a cell that is too long", README, f"\n| a | {MORE} |\n", r"README.md:\d+: an item of 61 words"),
    ("a link's words count", README, f"\n{SIXTY} [word](docs)\n", r"README.md:\d+: an item of 61 words"),
    ("a clause without its noun", PAGE, "\nIt skips what is\nnot whole.\n", r'docs/page.md:9: "what is not whole": name the noun'),
    ("a clause at the beginning", PAGE, "\nWhoever reads it\n", r'docs/page.md:9: "whoever"'),
    ("a clause by a pattern", PAGE, "\n| SQLite is told |\n", r'docs/page.md:9: "is told"'),
    ("a part of a word is none", PAGE, "\nthis told\n", None),
    ("a ratio with an interval", PAGE, "\nIt takes 0.967 (0.946..0.989)\n", r"docs/page.md:9: `.*`: write the change in percent"),
    ("a file that is not there", README, "\n[a](docs/gone.md)\n", r"README.md:\d+: there is no `docs/gone.md`"),
    ("a picture that is not there", README, "\n![a](gone.svg)\n", r"README.md:\d+: there is no `gone.svg`"),
    ("a picture in HTML that is not there", README, '\n<img src="gone.png">\n', r"README.md:\d+: there is no `gone.png`"),
    ("a page of as many words as it may have", PAGE, f"\n{SIXTY}\n\n{SIXTY}\n", None),
    ("a page of too many words", PAGE, f"\n{SIXTY}\n\n{SIXTY}\n\nword\n", r"docs/page.md:1: 136 words, 135 are allowed"),
    ("a link from another folder", PAGE, "\n[a](docs/page.md)\n", r"docs/page.md:9: there is no `docs/page.md`"),
    ("a heading that is not there", README, "\n[a](docs/page.md#gone)\n", r"README.md:\d+: `docs/page.md` has no heading `#gone`"),
    ("a heading of this page", PAGE, "\n[a](#gone)\n", r"docs/page.md:9: `docs/page.md` has no heading `#gone`"),
    ("a link to an exempt page", "docs/format.md", "\n[a](gone.md)\n", r"docs/format.md:5: there is no `gone.md`"),
    ("a page that no rule finds", ".ci/prose.toml", 'exempt_too = []\nlinks = ["gone/*.md"]\n', r".ci/prose.toml:1: no page is `gone/\*.md`"),
]


# What of a directory of installed documents is wrong; None: nothing.
INSTALLED: list[tuple[str, dict[str, str], str | None]] = [
    ("installed: links that hold", {"a.md": "[b](docs/b.md#b) [out](https://example.org)", "docs/b.md": "# B\n[a](../a.md)"}, None),
    ("installed: a page that is not there", {"a.md": "[b](docs/b.md)"}, r"a.md:1: there is no `docs/b.md`"),
    ("installed: a page outside", {"a.md": "[tmp](../..)"}, r"a.md:1: `../..` is outside of the directory"),
    ("installed: no page", {"a.txt": ""}, r".*: there is no document"),
]


def pages(root: Path, changed: str, addition: str) -> Path:
    """Writes the clean pages with one change."""
    for name, text in CLEAN.items():
        if name == changed:
            text = text.replace('links = ["README.md", "docs/*.md"]\n', "") if "links = " in addition else text
            text += addition
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def run(check: Check, installed: Check) -> int:
    """Runs all cases; 1 if one of them failed."""
    passed = failed = 0
    for name, changed, addition, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = check(pages(Path(folder).resolve(), changed, addition))
        ok = len(found) == 1 and re.match(expected, found[0]) is not None if expected else not found
        passed, failed = passed + ok, failed + (not ok)
        print(f"test {name} ... {'ok' if ok else 'FAILED'}")
        if not ok:
            print(f"  expected: {expected or 'nothing'}\n  found:", *(found or ["nothing"]), sep="\n    ")
    for name, files, expected in INSTALLED:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for file, text in files.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(text, encoding="utf-8")
            found = installed(root)
        ok = len(found) == 1 and re.match(expected, found[0]) is not None if expected else not found
        passed, failed = passed + ok, failed + (not ok)
        print(f"test {name} ... {'ok' if ok else 'FAILED'}")
        if not ok:
            print(f"  expected: {expected or 'nothing'}\n  found:", *(found or ["nothing"]), sep="\n    ")
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed; 0 ignored;")
    return 1 if failed else 0
