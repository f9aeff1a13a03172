"""What a later version may say of an object (docs/format.md, "Later versions")."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import Unsupported

FLAGS_BYTES = 6


def check_flags(words: bytes, thing: str) -> None:
    """Incompatible flags are refused. Read-only and compatible ones are nothing to a reader."""
    if any(words[:2]):
        raise Unsupported(f"{thing}: incompatible flags {words[:2].hex()} are not known")


def check_flags_byte(byte: int, thing: str) -> None:
    """The same of a file of the keyring, which has all three in a byte."""
    if byte & 7:
        raise Unsupported(f"{thing}: incompatible flags {byte & 7} are not known")


def check_zeros(raw: bytes, ranges: Iterable[tuple[int, int]], thing: str) -> None:
    """Of an object whose sums are right."""
    for begin, end in ranges:
        if any(raw[begin:end]):
            raise Unsupported(f"{thing}: bytes {begin} to {end} are not zero")
