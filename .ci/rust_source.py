"""One Rust file, as far as .ci/layers asks: what it uses of its crate, what it makes public, how long it is.

A tokenizer and no parser. It tells comments (nested ones too), strings, raw strings, characters and lifetimes apart, and
takes out what stands under `#[cfg(test)]`. What a macro makes of its arguments it does not see.
"""

import re
from bisect import bisect
from pathlib import Path
from typing import Iterator, NamedTuple

TOKEN = re.compile(
    r"""(?P<doc>///(?!/)[^\n]*|/\*\*(?![*/]))
    |(?P<inner>//![^\n]*|/\*!)
    |(?P<comment>//[^\n]*|/\*)
    |(?P<string>[bc]?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])')
    |(?P<lifetime>'\w+)
    |(?P<word>(?:r\#)?\w+)
    |(?P<mark>::|\S)""",
    re.X | re.S,
)
COMMENTS = ("doc", "inner", "comment")
TEST = re.compile(r"# \[ cfg \( (all \( )?test [,)]")
BLOCK = re.compile(r"/\*|\*/")
CLOSING = {"(": ")", "[": "]", "{": "}"}
ITEMS = {"fn", "struct", "enum", "union", "trait", "const", "static", "type", "mod"}
BEFORE_FN = {"unsafe", "async", "extern", "const"}
ROOTS = ("lib.rs", "main.rs")


class Token(NamedTuple):
    """A token: its kind (a group of `TOKEN`), its text and where it begins."""

    kind: str
    text: str
    at: int


class Named(NamedTuple):
    """Something with a name, and its first and last line."""

    name: str
    line: int
    last: int


def tokens_of(text: str) -> Iterator[Token]:
    """All tokens and comments; a block comment ends where the last one nested in it has ended."""
    at, block = 0, True
    while block:
        block = False
        for found in TOKEN.finditer(text, at):
            kind, token, begin = found.lastgroup or "", found.group(), found.start()
            if kind in COMMENTS and token.startswith("/*"):
                at, depth, block = found.end(), 1, True
                while depth and (mark := BLOCK.search(text, at)):
                    depth, at = depth + (1 if mark.group() == "/*" else -1), mark.end()
                yield Token(kind, text[begin:at], begin)
                break
            yield Token(kind, token, begin)


def closing(tokens: list[Token], at: int) -> int:
    """The place of what closes the bracket at `at`."""
    depth = 0
    for here in range(at, len(tokens)):
        if tokens[here].text in CLOSING:
            depth += 1
        elif tokens[here].text in CLOSING.values():
            depth -= 1
            if not depth:
                return here
    return len(tokens) - 1


def end_of_item(tokens: list[Token], at: int) -> int:
    """Behind the item at `at`, its attributes included; a field, a variant or an arm ends with its comma."""
    while tokens[at].text == "#" or tokens[at].kind == "doc":
        at = closing(tokens, at + 1) + 1 if tokens[at].text == "#" else at + 1
    if tokens[at].text == "pub":
        at = closing(tokens, at + 1) + 1 if tokens[at + 1].text == "(" else at + 1
    first, second = tokens[at].text, tokens[at + 1].text
    item = first in ITEMS | BEFORE_FN | {"use", "impl", "let", "macro_rules"}
    braced = first not in ("use", "let", "static", "type") and (first != "const" or second in BEFORE_FN | {"fn"})
    while at < len(tokens) and tokens[at].text not in CLOSING.values():
        text = tokens[at].text
        if text == ";" or text == "," and not item:
            return at + 1
        if text in CLOSING:
            at = closing(tokens, at)
            if text == "{" and braced:
                return at + 1
        at += 1
    return at


class Source:
    """A file, its tokens outside tests, and what can be read off them."""

    def __init__(self, path: Path, depth: int = 0):
        """`depth`: how many modules deep the file is in its crate, 0 for the root, 1 for `src/a.rs` and `src/a/mod.rs`."""
        self.path, self.depth, self.text = path, depth, path.read_text(encoding="utf-8")
        self.line_ends = [found.start() for found in re.finditer("\n", self.text)]
        everything = list(tokens_of(self.text))
        self.comments = [token for token in everything if token.kind in COMMENTS]
        self.opens_with_doc = bool(everything) and everything[0].kind == "inner"
        self.test_files: list[Path] = []
        self.test_lines: set[int] = set()
        self.tokens = self.without_tests([token for token in everything if token.kind not in ("comment", "inner")])

    def line(self, at: int) -> int:
        """The line of a place in the text, from 1."""
        return bisect(self.line_ends, at - 1) + 1

    def without_tests(self, tokens: list[Token]) -> list[Token]:
        """The tokens outside items under `#[cfg(test)]`. Notes the lines of those items, and the files of such modules."""
        kept: list[Token] = []
        at = 0
        while at < len(tokens):
            if tokens[at].text != "#" or not TEST.match(" ".join(token.text for token in tokens[at : at + 8])):
                kept.append(tokens[at])
                at += 1
                continue
            end = end_of_item(tokens, at)
            self.test_lines.update(range(self.line(tokens[at].at), self.line(tokens[end - 1].at) + 1))
            texts = [token.text for token in tokens[at:end]]
            if texts[-3:-2] == ["mod"] and texts[-1] == ";":
                path = re.search(r'# \[ path = "([^"]*)" \]', " ".join(texts))
                self.test_files.append(self.path.parent / path[1] if path else self.file_of(texts[-2]))
            at = end
        return kept

    def file_of(self, module: str) -> Path:
        """The file of a module that stands here as `mod name;`."""
        own = self.path.name in (*ROOTS, "mod.rs")
        folder = self.path.parent if own else self.path.with_suffix("")
        as_folder = folder / module / "mod.rs"
        return as_folder if as_folder.exists() else folder / f"{module}.rs"

    def code_lines(self) -> tuple[int, int]:
        """How many lines are neither blank nor comment: outside tests, and in them."""
        text = self.text
        for comment in reversed(self.comments):
            end = comment.at + len(comment.text)
            text = text[: comment.at] + re.sub(r"[^\n]", " ", comment.text) + text[end:]
        lines = [number for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        tests = sum(number in self.test_lines for number in lines)
        return len(lines) - tests, tests

    def uses(self) -> Iterator[Named]:
        """The first name of each path from the crate's root: `crate::name`, each of `crate::{..}`, and `super::` up to it."""
        depth, inline = self.depth, []
        for at, token in enumerate(self.tokens):
            if token.text == "mod" and self.tokens[at + 2].text == "{":
                inline.append(closing(self.tokens, at + 2))
            inline = [end for end in inline if end > at]
            if token.text not in ("crate", "super") or self.before(at) == "super":
                continue
            steps, here = int(token.text == "super"), at + 1
            while steps and [t.text for t in self.tokens[here : here + 2]] == ["::", "super"]:
                steps, here = steps + 1, here + 2
            if self.tokens[here].text != "::" or token.text == "super" and steps != depth + len(inline):
                continue
            yield from self.heads(here + 1)

    def before(self, at: int) -> str:
        """What stands before the `::` before `at`."""
        return self.tokens[at - 2].text if at > 1 and self.tokens[at - 1].text == "::" else ""

    def heads(self, at: int) -> Iterator[Named]:
        """The first names of the path or group at `at`."""
        if self.tokens[at].text != "{":
            yield Named(self.tokens[at].text, self.line(self.tokens[at].at), 0)
            return
        end, starts = closing(self.tokens, at), True
        at += 1
        while at < end:
            if starts:
                yield from self.heads(at)
            if self.tokens[at].text in CLOSING:
                at = closing(self.tokens, at)
            starts = self.tokens[at].text == ","
            at += 1

    def names_of(self, modules: set[str]) -> dict[str, str]:
        """Of a root: the module behind each name that it takes out of one, as `Error` in `pub use error::{Error, Result}`."""
        names: dict[str, str] = {}
        for at, token in enumerate(self.tokens):
            if token.text == "use" and self.tokens[at + 1].text in ("crate", "self"):
                at += 2
            module = self.tokens[at + 1].text if token.text == "use" else ""
            while module in modules and self.tokens[at].text != ";":
                names.setdefault(self.tokens[at].text, module)
                at += 1
        return names

    def functions(self) -> Iterator[Named]:
        """Every function with a body, from the line of its `fn` to that of its last brace."""
        for at, token in enumerate(self.tokens):
            if token.text != "fn" or self.tokens[at + 1].kind != "word":
                continue
            here = at
            while self.tokens[here].text not in ("{", ";"):
                here = closing(self.tokens, here) + 1 if self.tokens[here].text in ("(", "[") else here + 1
            if self.tokens[here].text == "{":
                last = self.line(self.tokens[closing(self.tokens, here)].at)
                yield Named(self.tokens[at + 1].text, self.line(token.at), last)

    def unsafe_blocks(self) -> int:
        """How many `unsafe {` there are."""
        return sum(a.text == "unsafe" and b.text == "{" for a, b in zip(self.tokens, self.tokens[1:]))

    def undocumented(self) -> Iterator[Named]:
        """Every `pub` item without a doc comment, outside rules of macros; a module may have it at the head of its file."""
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.text == "macro_rules":
                at = end_of_item(self.tokens, at)
                continue
            at += 1
            if token.text != "pub":
                continue
            here = at
            while self.tokens[here].kind == "string" or self.tokens[here].text in BEFORE_FN and self.follows_fn(here):
                here += 1
            kind, name = self.tokens[here].text, self.tokens[here + 1].text
            if name == "mut":
                name = self.tokens[here + 2].text
            own_file = kind == "mod" and self.tokens[here + 2].text == ";"
            documented = self.has_doc(at - 1) or own_file and Source(self.file_of(name)).opens_with_doc
            if kind in ITEMS and not documented:
                yield Named(f"{kind} {name}", self.line(token.at), 0)

    def follows_fn(self, at: int) -> bool:
        """Whether what stands at `at` is said of a function and is no constant."""
        following = self.tokens[at + 1]
        return following.kind == "string" or following.text in BEFORE_FN | {"fn", "trait"}

    def has_doc(self, at: int) -> bool:
        """Whether a doc comment, or an attribute `doc`, stands before the item at `at`."""
        while at and self.tokens[at - 1].text == "]":
            depth, at = 1, at - 2
            while depth:
                depth += {"]": 1, "[": -1}.get(self.tokens[at].text, 0)
                at -= 1
            if self.tokens[at + 2].text == "doc":
                return True
        return at > 0 and self.tokens[at - 1].kind == "doc"
