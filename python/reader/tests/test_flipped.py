"""Goal: no flipped byte of a container gives other content.

Method: a small container under a key file; one byte at a time is changed, at every position of sector 0 and at
positions sampled elsewhere with a printed seed (PELLUCID_SEED, 1 where none is given). Reading it has to give the same content or an error
of damage, never another error.
"""

from __future__ import annotations

import hashlib
import os
import random
import unittest
import unittest.mock

from pellucid_reader.container import read_pages
from pellucid_reader.errors import Corrupt, Unauthentic, Unsupported
from pellucid_reader.header import COPY_BYTES, COPY_OFFSETS, REGION_BYTES, ROWS_OFFSETS, SUM_OFFSET
from pellucid_reader.protector import KeysAtHand

from .program import Workshop, sqlite

SAMPLES = 1500


class Flipped(unittest.TestCase):
    def setUp(self) -> None:
        self.workshop = Workshop()
        self.addCleanup(self.workshop.close)

    def test_each_is_an_error_or_nothing(self) -> None:
        plain = self.workshop.path("plain")
        sqlite(
            plain, "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'one'), (2, zeroblob(900));", "PRAGMA page_size=512"
        )
        sealed = self.workshop.sealed(plain)
        keys = KeysAtHand(key_file=self.workshop.key_file.read_bytes())
        whole = b"".join(read_pages(sealed, keys))
        raw = sealed.read_bytes()

        seed = int(os.environ.get("PELLUCID_SEED") or 1)
        print(f"test_flipped: PELLUCID_SEED={seed}")
        chance = random.Random(seed)
        positions = {*range(512), *chance.sample(range(512, len(raw)), SAMPLES)}
        for copy in COPY_OFFSETS:
            positions.update(chance.sample(range(copy, copy + 400), 100))
        positions.update(chance.sample(range(REGION_BYTES, len(raw)), 400))

        found = 0
        with open(sealed, "r+b") as file:
            for position in sorted(positions):
                file.seek(position)
                file.write(bytes([raw[position] ^ chance.randrange(1, 256)]))
                file.flush()
                try:
                    self.assertEqual(b"".join(read_pages(sealed, keys)), whole, f"byte {position}, seed {seed}")
                    self.assertLess(position, REGION_BYTES, "a page may not change unnoticed")
                except (Corrupt, Unauthentic):
                    found += 1
                finally:
                    file.seek(position)
                    file.write(raw[position : position + 1])
                    file.flush()
        self.assertGreaterEqual(found, 400)
        self.assertEqual(sealed.read_bytes(), raw)

    def test_edited_in_both_header_copies(self) -> None:
        """The kinds of refusal that format.md states, in a header whose SHA-256 does or does not match."""
        plain = self.workshop.path("plain")
        sqlite(plain, "CREATE TABLE t (a);", "PRAGMA page_size=512")
        sealed = self.workshop.sealed(plain)
        keys = KeysAtHand(key_file=self.workshop.key_file.read_bytes())
        whole = sealed.read_bytes()
        rows = ROWS_OFFSETS[whole[COPY_OFFSETS[0] + 19]]
        flags_offset = rows + 104 + 1
        for what, offset, value, resummed, expected in (
            ("a damaged version", 19, 3, False, Corrupt),
            ("a newer version", 19, 3, True, Unsupported),
            ("the other version, whose fields are not there", 19, 2 if rows == ROWS_OFFSETS[1] else 1, True, Unsupported),
            ("state unencrypted over a key that seals", 52, 1, True, Corrupt),
            ("state protection change", 52, 6, True, Unsupported),
            ("an unknown flag of a key", rows + 9, 9, True, Unsupported),
            ("a birth that is not signed for", 67, whole[2048 + 67] ^ 1, True, Unauthentic),
            ("a key file for recovery", flags_offset, 1, True, Unsupported),
        ):
            with self.subTest(what):
                raw = bytearray(whole)
                for copy in COPY_OFFSETS:
                    raw[copy + offset] = value
                    if resummed:
                        summed = hashlib.sha256(raw[copy : copy + SUM_OFFSET]).digest()
                        raw[copy + SUM_OFFSET : copy + COPY_BYTES] = summed
                sealed.write_bytes(raw)
                with self.assertRaises(expected):
                    list(read_pages(sealed, keys))


class FlippedOfVersion2(Flipped):
    def setUp(self) -> None:
        super().setUp()
        self.workshop.environment["PELLUCID_FORMAT"] = "2"

    def test_log(self) -> None:
        """Every flip in a log whose commits were synced is told, but in the last transaction, which may have been torn."""
        plain = self.workshop.path("plain")
        sqlite(plain, "CREATE TABLE t (a); INSERT INTO t VALUES (1);", "PRAGMA page_size=512")
        sealed = self.workshop.sealed(plain)
        commits = "".join(f"INSERT INTO t VALUES (zeroblob({size}));" for size in (900, 5, 700, 9))
        self.workshop.killed(sealed, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;" + commits)
        log = sealed.with_name(sealed.name + "-wal")
        raw = log.read_bytes()
        ends = [end for end in range(32 + 536, len(raw) + 1, 536) if any(raw[end - 536 + 4 : end - 536 + 8])]
        self.assertEqual((len(ends), ends[-1]), (4, len(raw)))

        def read(content: bytes) -> bytes:
            log.write_bytes(content)
            keys = KeysAtHand(key_file=self.workshop.key_file.read_bytes())
            with unittest.mock.patch.dict(os.environ, PELLUCID_STRICT_LOG="1"):
                return b"".join(read_pages(sealed, keys))

        before_last = read(raw[: ends[-2]])
        self.assertNotEqual(read(raw), before_last)
        seed = int(os.environ.get("PELLUCID_SEED") or 1)
        print(f"test_flipped: PELLUCID_SEED={seed}")
        chance = random.Random(seed)
        for position in {*range(32), *chance.sample(range(32, len(raw)), SAMPLES // 5)}:
            flipped = raw[:position] + bytes([raw[position] ^ 1 << chance.randrange(8)]) + raw[position + 1 :]
            with self.subTest(position=position, seed=seed):
                if position >= ends[-2]:
                    self.assertEqual(read(flipped), before_last)
                else:
                    self.assertRaises((Unauthentic, Unsupported), read, flipped)
