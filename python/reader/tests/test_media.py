"""Goal: what the program backs up, this reader restores, byte for byte, and nothing that was changed.

Method: the program backs Northwind up in every compression and algorithm, striped, differential, in clear; the reader's
database is compared with the one that went in (in clear), or with what the program itself restores of it; then each part
of small media is changed, and of two sets the last one is damaged or cut. BLAKE3 by its published vectors.
"""

from __future__ import annotations

import hashlib
import os
import unittest
from pathlib import Path
from unittest import mock

from pellucid_reader import backup, blake3, errors, media
from pellucid_reader.compression import LZ4, decompress
from pellucid_reader.protector import KeysAtHand

from .program import READER, Workshop, dump, sqlite

workshop: Workshop


def setUpModule() -> None:
    global workshop
    workshop = Workshop()
    unittest.addModuleCleanup(workshop.close)


class Hash(unittest.TestCase):
    def test_published_vectors(self) -> None:
        # BLAKE3's test_vectors.json: bytes 0 to 250, over and over.
        for length, expected in (
            (0, "af1349b9f5f9a1a6a0404dea36dcc949"),
            (1, "2d3adedff11b61f14c886e35afa03673"),
            (1023, "10108970eeda3eb932baac1428c7a216"),
            (1024, "42214739f095a406f3fc83deb889744a"),
            (1025, "d00278ae47eb27b34faecf67b4fe263f"),
            (3072, "b98cb0ff3623be03326b373de6b90952"),
        ):
            data = bytes(at % 251 for at in range(length))
            self.assertEqual(blake3._own(data)[:16].hex(), expected, length)


class Lz4(unittest.TestCase):
    def test_lengths_that_do_not_fit_are_refused(self) -> None:
        self.assertEqual(decompress(LZ4, b"\x17a\x01\x00\x10b", 13, "chunk"), b"a" * 12 + b"b")
        for block in (b"\x17a\x02\x00\x10b", b"\x17a\x00\x00\x10b", b"\x1fa\x01\x00", b"\xf0", b""):
            with self.assertRaises(errors.Corrupt):
                decompress(LZ4, block, 13, "chunk")


class Restores(unittest.TestCase):
    def restored(self, *arguments: str | Path) -> Path:
        target = workshop.path("restored")
        status = backup.main([*map(str, arguments), "--to", str(target)])
        self.assertEqual(status, 0)
        return target

    def test_in_clear_byte_for_byte(self) -> None:
        plain = workshop.path("plain")
        sqlite(plain, "CREATE TABLE t(a); INSERT INTO t VALUES (hex(randomblob(20000))), (zeroblob(90000));")
        for compression in ("none", "lz4", "zstd"):
            file = workshop.path("media")
            workshop.pellucid("backup", str(plain), "--to", str(file), "--compression", compression)
            self.assertEqual(self.restored(file).read_bytes(), plain.read_bytes(), compression)

    def test_sealed_in_every_algorithm_striped_and_differential(self) -> None:
        small = workshop.path("small")
        sqlite(small, "CREATE TABLE t(a, b); INSERT INTO t SELECT value, hex(randomblob(40)) FROM generate_series(1, 500);"
               .replace("SELECT value, hex(randomblob(40)) FROM generate_series(1, 500)",
                        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
                        "SELECT i, hex(randomblob(40)) FROM n"))
        key = ("--key-file", str(workshop.key_file))
        sealed = workshop.sealed(small, *key)
        for algorithm in ("AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"):
            one, two, more = (workshop.path(name) for name in ("one", "two", "more"))
            workshop.pellucid(
                "backup", str(sealed), "--to", str(one), str(two), "--algorithm", algorithm, "--compression", "lz4", *key
            )
            own = workshop.path("own")
            workshop.pellucid("restore", str(two), str(one), "--to", str(own), "--decrypted", *key)
            self.assertEqual(self.restored(two, one, *key).read_bytes(), own.read_bytes(), algorithm)
            sql = "UPDATE t SET b = 'x' WHERE a % 50 = 0;"
            uri = f"file:{sealed}?key_file={workshop.key_file}"
            workshop.pellucid("run", "--", "sqlite3", "-bail", "-cmd", f".open '{uri}'", sql=sql)
            differential = ("--differential", "--base", str(one), str(two))
            workshop.pellucid("backup", str(sealed), "--to", str(more), *differential, *key)
            base = ("--base", one, two)
            self.assertEqual(dump(self.restored(more, *base, *key)), dump(self.decrypted(sealed)), algorithm)

    def decrypted(self, sealed: Path) -> Path:
        return workshop.read(sealed)

    def test_under_a_certificate_of_the_keyring(self) -> None:
        plain = workshop.path("plain")
        sqlite(plain, "CREATE TABLE t(a); INSERT INTO t VALUES ('Northwind');")
        sealed = workshop.path("under")
        sealed.write_bytes(plain.read_bytes())
        workshop.pellucid("encrypt", str(sealed))
        file = workshop.path("media")
        workshop.pellucid("backup", str(sealed), "--to", str(file), "--compression", "none")
        self.assertEqual(dump(self.restored(file, "--keyring", workshop.home)), dump(plain))
        self.assertEqual(backup.main([str(file)]), 0)
        self.assertEqual(backup.main([str(file), "--to", str(workshop.path("x"))]), 1)


class Clear(unittest.TestCase):
    """A set in clear among sealed ones, or where everything has to be sealed, is somebody's who has no key."""

    def flagged(self, file: Path, sealed: bool) -> None:
        raw = bytearray(file.read_bytes())
        raw[26] = raw[26] & ~2 | (2 if sealed else 0)
        raw[4064:4096] = hashlib.sha256(raw[:4064]).digest()
        file.write_bytes(raw)

    def test_among_sealed_ones_it_is_refused_whatever_the_flag_says(self) -> None:
        plain, file = workshop.path("plain"), workshop.path("media")
        sqlite(plain, "CREATE TABLE t(a); INSERT INTO t VALUES ('mallory');")
        key = ("--key-file", str(workshop.key_file))
        workshop.pellucid("backup", str(workshop.sealed(plain, *key)), "--to", str(file), *key)
        self.flagged(file, False)
        workshop.pellucid("backup", str(plain), "--to", str(file), "--append")
        for sealed in (False, True):
            self.flagged(file, sealed)
            target = workshop.path("x")
            restore = [str(file), *key, "--to", str(target)]
            self.assertEqual(backup.main(restore), 1, sealed)
            self.assertFalse(target.exists())
            self.assertEqual(backup.main([*restore, "--position", "2"]), 1, sealed)
            self.assertEqual(backup.main([*restore, "--allow-clear"]), 0, sealed)
            self.assertEqual(backup.main([str(file), *key]), 0, "it is listed")
            self.assertEqual(backup.main([str(file), *key, "--to", str(workshop.path("y")), "--position", "1"]), 0)

    def test_where_everything_has_to_be_sealed_none_is_taken(self) -> None:
        plain, file = workshop.path("plain"), workshop.path("media")
        sqlite(plain, "CREATE TABLE t(a);")
        workshop.pellucid("backup", str(plain), "--to", str(file))
        with mock.patch.dict(os.environ, {"PELLUCID_REQUIRE": "1"}):
            self.assertEqual(backup.main([str(file), "--to", str(workshop.path("x"))]), 1)
            self.assertEqual(backup.main([str(file), "--to", str(workshop.path("x")), "--allow-clear"]), 0)


class Last(unittest.TestCase):
    """Which set is the last one, if something is wrong behind another."""

    def setUp(self) -> None:
        self.plain = workshop.path("plain")
        sqlite(self.plain, "CREATE TABLE t(a); INSERT INTO t VALUES (hex(randomblob(30000)));")
        self.first = self.plain.read_bytes()
        self.one, self.two = workshop.path("one"), workshop.path("two")
        self.backup()
        self.lengths = [path.stat().st_size for path in (self.one, self.two)]
        sqlite(self.plain, "UPDATE t SET a = hex(randomblob(30000));")
        self.backup("--append")
        self.second = self.plain.read_bytes()
        self.whole = [path.read_bytes() for path in (self.one, self.two)]

    def backup(self, *options: str) -> None:
        to = ("--to", str(self.one), str(self.two), "--compression", "none")
        workshop.pellucid("backup", str(self.plain), *to, *options)

    def check(self, expected: bytes | None, *options: str) -> None:
        """Restored is what is expected, or it and the list end with 3."""
        target = workshop.path("restored")
        status = backup.main([str(self.one), str(self.two), "--to", str(target), *options])
        self.assertEqual(status, 0 if expected else 3)
        self.assertEqual(target.read_bytes() if target.exists() else None, expected)
        if not options:
            self.assertEqual(backup.main([str(self.one), str(self.two)]), status)

    def test_damage_is_not_passed_over(self) -> None:
        self.check(self.second)
        at = self.lengths[0]
        header_bytes = int.from_bytes(self.whole[0][at + 20 : at + 24], "big")
        manifest_at = self.whole[0].rindex(b"Pellucid set end")
        for place in (at, at + 23, at + 100, at + header_bytes, manifest_at, manifest_at + 23, manifest_at + 30):
            with self.subTest(place=place - at):
                self.flip(place)
                self.check(None)
                self.check(self.first, "--position", "1")
        # A newer version of the format is no damage, and nothing to pass over.
        for place in (at + 19, manifest_at + 19):
            self.flip(place)
            self.assertEqual(backup.main([str(self.one), str(self.two), "--to", str(workshop.path("none"))]), 1)

    def flip(self, place: int) -> None:
        raw = self.whole[0]
        self.one.write_bytes(raw[:place] + bytes([raw[place] ^ 0x81]) + raw[place + 1 :])

    def test_what_was_interrupted_is(self) -> None:
        ends = [len(whole) for whole in self.whole]
        manifests = [end - (160 + 2 * 40) for end in ends]
        for behind in (1, 23, 100, 500):
            self.cut(self.lengths[0] + behind, self.lengths[1] + behind)
            self.check(self.first)
        self.cut(*manifests)
        self.check(self.first)
        # One whole manifest commits the set, in whichever family it is; but not one that is not all there.
        for one, two in ((ends[0], manifests[1]), (manifests[0] + 100, ends[1])):
            self.cut(one, two)
            self.check(self.second)
        for one, two in ((ends[0], manifests[1] - 1), (manifests[0] - 1, ends[1]), (self.lengths[0], ends[1])):
            self.cut(one, two)
            self.check(None)

    def cut(self, *lengths: int) -> None:
        for path, whole, length in zip((self.one, self.two), self.whole, lengths):
            path.write_bytes(whole[:length])

    def test_nothing_is_written_beside_another_databases_log(self) -> None:
        for suffix in ("-wal", "-journal"):
            target = workshop.path("fresh")
            workshop.write(target.name + suffix, b"")
            self.assertEqual(backup.main([str(self.one), str(self.two), "--to", str(target)]), 1)
            self.assertFalse(target.exists())


class Changed(unittest.TestCase):
    def test_every_byte_that_is_changed_is_seen(self) -> None:
        plain = workshop.path("tiny")
        sqlite(plain, "CREATE TABLE t(a); INSERT INTO t VALUES (1);", "PRAGMA page_size=512;")
        file = workshop.path("media")
        key = ("--key-file", str(workshop.key_file))
        workshop.pellucid("backup", str(plain), "--to", str(file), "--compression", "none", *key)
        whole = file.read_bytes()
        keys = KeysAtHand(key_file=workshop.key_file.read_bytes())

        def restored(raw: bytes) -> bytes:
            return media.restore([media.OpenSet([media.open_family(raw)], 1, keys)])

        self.assertEqual(restored(whole), plain.read_bytes())
        for at in range(0, len(whole), 7):
            with self.assertRaises(errors.ReaderError, msg=f"byte {at}"):
                restored(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        for length in range(0, len(whole), 61):
            with self.assertRaises(errors.ReaderError, msg=f"cut to {length}"):
                restored(whole[:length])


assert READER.is_dir()
