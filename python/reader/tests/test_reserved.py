"""Goal: bytes that docs/format.md calls zero are refused by this reader, too, each of them, as of a newer version.

Method: objects are those of vectors/; one such byte after another is set, the sums and tags are made right again with the
keys of the vector, and the object is opened. Where the bytes lie is written here from the page once more.
"""

from __future__ import annotations

import hashlib
import hmac
import unittest
from collections.abc import Callable, Iterable

from pellucid_reader import errors, journal
from pellucid_reader.header import parse_header, parse_sector_0
from pellucid_reader.unit import hkdf

from .test_vectors import VECTORS, Case


def vector(name: str) -> Case:
    return Case(VECTORS / name)


def summed(raw: bytes) -> bytes:
    """With the SHA-256 of what is before it in the last 32 bytes."""
    return raw[:-32] + hashlib.sha256(raw[:-32]).digest()


class Reserved(unittest.TestCase):
    def each(self, raw: bytes, at: Iterable[int], opened: Callable[[bytes], object], kind: type = errors.Unsupported) -> None:
        count = 0
        for place in at:
            self.assertEqual(raw[place], 0, place)
            with self.assertRaises(errors.ReaderError, msg=f"byte {place}") as raised:
                opened(raw[:place] + bytes([1 << place % 8]) + raw[place + 1 :])
            self.assertIs(type(raised.exception), kind, f"byte {place}: {raised.exception}")
            count += 1
        self.assertGreater(count, 0)

    def test_headers(self) -> None:
        for name in ("header_key-file", "header_older-dek"):
            case = vector(name)
            key = hkdf(case.bytes("dek"), case.bytes("file-id"), b"pellucid/1 header")

            def parse(raw: bytes, key: bytes = key) -> object:
                return parse_header(summed(raw[:7104] + hmac.digest(key, raw[:7104], "sha256") + bytes(32)), 0)

            parse(case.body)
            rows, used = case.body[54], int.from_bytes(case.body[20:24], "big")
            current = 128 + 104 * (rows - 1)
            places = [55, *range(69, 72), 126, 127, *range(current + 44, current + 104), *range(used, 7104)]
            for row in range(rows):
                places += [128 + 104 * row + 10, 128 + 104 * row + 11]
            self.each(case.body, [*places, 120, 121], parse)
            for place in range(122, 126):  # read-only and compatible flags are nothing to a reader
                parse(case.body[:place] + b"\x40" + case.body[place + 1 :])

    def test_sector_0(self) -> None:
        for name, free in (("sector-0_sealed", 48), ("sector-0_laying", 88)):
            case = vector(name)
            places = [*range(19, 24), *range(40, 48), *range(free, 480)]
            self.each(case.body, places, lambda raw: parse_sector_0(summed(raw)))

    def test_journal_headers(self) -> None:
        case = vector("journal-header_sealed")
        sector = case.body + bytes(512 - len(case.body))
        opener = case.opener()

        def opened(raw: bytes) -> None:
            journal.open_journal_header(raw, 512, opener)
            journal.check_rest(raw, 512)

        opened(sector)
        # No sum covers them: it may be damage.
        self.each(sector, [*range(8, 32), *range(108, 256), *range(332, 512)], opened, errors.Corrupt)
