"""Goal: what the program writes, this reader reads: every algorithm, protector, page size and encoding, and what a
killed process leaves.

Method: Northwind is sealed by the program; stock sqlite3 dumps what the reader makes of it, and what it makes of the
plain original; the two have to be equal.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import unittest
import unittest.mock
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from pellucid_reader.container import read_pages
from pellucid_reader.errors import Unauthentic, Unsupported
from pellucid_reader.header import State, choose_header
from pellucid_reader.journal import SQLITE_MAGIC
from pellucid_reader.keyring import Keyring
from pellucid_reader.protector import KeysAtHand

from .program import Workshop, dump, sqlite

ALGORITHMS = ("AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY")
CHANGES = """
UPDATE Products SET UnitPrice = UnitPrice + 1;
CREATE TABLE added AS SELECT * FROM Orders;
DELETE FROM Orders WHERE OrderID % 3 = 0;
"""
# Far more than the cache holds, so that it spills: half of it is in the file when the process dies.
UNCOMMITTED = """
PRAGMA cache_size=5;
BEGIN;
UPDATE Orders SET ShipName = 'never committed';
UPDATE Products SET ProductName = 'never committed';
CREATE TABLE never AS SELECT * FROM Orders;
"""
workshop: Workshop


def setUpModule() -> None:
    global workshop
    workshop = Workshop()
    unittest.addModuleCleanup(workshop.close)
    # Argon2id in Python takes half a minute, so it goes on beside the other tests.
    sealed = workshop.sealed(workshop.northwind(), "--passphrase-file", str(workshop.passphrase_file))
    target = workshop.path("read")
    Protectors.passphrase_target = target
    Protectors.passphrase_reader = workshop.start_reader(sealed, target, "--passphrase-file", workshop.passphrase_file)


class Same(unittest.TestCase):
    def same(self, plain: Path, sealed: Path, *options: str | Path) -> None:
        self.assertEqual(dump(workshop.read(sealed, *options)), dump(plain))


class States(Same):
    def test_key_change_that_is_suspended(self) -> None:
        key = ("--key-file", str(workshop.key_file))
        sealed = workshop.sealed(workshop.large(), *key)
        workshop.pellucid("rekey", str(sealed), *key, "--algorithm", "AES_128", "--throttle", "1", "--background")
        workshop.pellucid("scan", "suspend", str(sealed), *key)
        header = choose_header(sealed.read_bytes(), None)
        self.assertEqual((header.state, len(header.rows)), (State.KEY_CHANGE, 2))
        self.same(workshop.large(), sealed)

    def test_another_file_id_that_is_suspended(self) -> None:
        key = ("--key-file", str(workshop.key_file))
        sealed = workshop.sealed(workshop.large(), *key)
        before = choose_header(sealed.read_bytes(), None)
        workshop.pellucid("rekey", str(sealed), *key, "--new-id", "--throttle", "1", "--background")
        workshop.pellucid("scan", "suspend", str(sealed), *key)
        header = choose_header(sealed.read_bytes(), None)
        self.assertEqual((header.state, header.older_id), (State.KEY_CHANGE, before.file_id))
        self.same(workshop.large(), sealed)
        workshop.pellucid("scan", "resume", str(sealed), *key, "--throttle", "1000")
        after = choose_header(sealed.read_bytes(), header.file_id)
        self.assertEqual((after.file_id, after.older_id), (header.file_id, None))
        self.same(workshop.large(), sealed)

    def test_off_and_on_again(self) -> None:
        key = ("--key-file", str(workshop.key_file))
        sealed = workshop.sealed(workshop.northwind(), *key)
        workshop.pellucid("decrypt", "--keep-container", str(sealed), *key)
        self.assertEqual(choose_header(sealed.read_bytes(), None).state, State.UNENCRYPTED)
        self.same(workshop.northwind(), sealed)
        workshop.pellucid("encrypt", str(sealed), *key)
        self.assertEqual(choose_header(sealed.read_bytes(), None).state, State.ENCRYPTED)
        self.same(workshop.northwind(), sealed)


class Protectors(Same):
    passphrase_reader = None
    passphrase_target = None

    def test_algorithms_under_a_key_file(self) -> None:
        for algorithm in ALGORITHMS:
            with self.subTest(algorithm=algorithm):
                key_file = str(workshop.key_file)
                sealed = workshop.sealed(workshop.northwind(), "--key-file", key_file, "--algorithm", algorithm)
                self.same(workshop.northwind(), sealed)

    def test_algorithms_under_a_certificate_of_the_keyring(self) -> None:
        for algorithm in ALGORITHMS:
            with self.subTest(algorithm=algorithm):
                sealed = workshop.sealed(workshop.northwind(), "--algorithm", algorithm)
                self.same(workshop.northwind(), sealed, "--keyring", workshop.home)

    def test_certificate_that_was_exported(self) -> None:
        sealed = workshop.sealed(workshop.northwind(), "--algorithm", "AES_256")
        header = choose_header(sealed.read_bytes(), None)
        certificate = Keyring(workshop.home).find_certificate(header.protectors[0].thumbprint)
        pem = workshop.write("certificate.pem", certificate.certificate.public_bytes(Encoding.PEM))
        encryption = BestAvailableEncryption(b"pass word")
        key = certificate.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        exported = ("--cert-file", pem, "--key-file-pem", workshop.write("key.pem", key))
        password = ("--password-file", workshop.write("password", b"pass word\n"))
        self.same(workshop.northwind(), sealed, *exported, *password)
        for options in (exported, (*exported, "--password-file", workshop.write("wrong", b"password"))):
            status, said = workshop.reader(sealed, workshop.path("none"), *options)
            self.assertEqual(status, 1, said)

    def test_bundle_instead_of_the_instance(self) -> None:
        sealed = workshop.sealed(workshop.northwind(), "--algorithm", "AES_256")
        password = workshop.write("bundle-password", b"pass word\n")
        bundle = workshop.path("bundle")
        workshop.pellucid("instance", "export", "--to", str(bundle), "--password-file", str(password))
        self.same(workshop.northwind(), sealed, "--bundle", bundle, "--password-file", password)
        for wrong in (workshop.key_file, workshop.write("wrong", b"password")):
            options = ("--bundle", bundle, "--password-file", wrong)
            status, said = workshop.reader(sealed, workshop.path("none"), *options)
            self.assertEqual(status, 1, said)
        status, said = workshop.reader(sealed, workshop.path("none"), "--bundle", sealed, "--password-file", password)
        self.assertIn("not a bundle", said)

    def test_passphrase(self) -> None:
        _, said = self.passphrase_reader.communicate(timeout=1500)
        self.assertEqual(self.passphrase_reader.returncode, 0, said)
        self.assertEqual(dump(self.passphrase_target), dump(workshop.northwind()))


class Contents(Same):
    def test_page_sizes_and_encodings(self) -> None:
        for page_size, encoding in ((512, "UTF-8"), (4096, "UTF-16le"), (65536, "UTF-16be"), (1024, "UTF-16le")):
            with self.subTest(page_size=page_size, encoding=encoding):
                plain = workshop.northwind(page_size, encoding)
                self.same(plain, workshop.sealed(plain))

    def test_sealed_from_birth(self) -> None:
        born = workshop.path("born")
        before = f".open 'file:{born}?key_file={workshop.key_file}'\nPRAGMA synchronous=OFF;\n"
        sql = before.encode() + workshop.northwind_sql()
        workshop.pellucid("run", "--encrypt-new", "--", "sqlite3", "-bail", sql=sql)
        self.same(workshop.northwind(), born)

    def test_an_interrupted_birth_is_empty(self) -> None:
        born = workshop.path("born")
        born.write_bytes(bytes(2048))
        self.assertEqual(workshop.read(born).read_bytes(), b"")


class Wal(Same):
    def changed(self, sql: str) -> Path:
        plain = workshop.path("plain")
        shutil.copy(workshop.northwind(), plain)
        sqlite(plain, sql)
        return plain

    def test_committed_frames_are_applied_and_no_others(self) -> None:
        sealed = workshop.sealed(workshop.northwind())
        workshop.killed(sealed, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;" + CHANGES)
        committed = wal_of(sealed).stat().st_size
        self.same(self.changed(CHANGES), sealed)

        workshop.killed(sealed, "PRAGMA wal_autocheckpoint=0;" + UNCOMMITTED)
        self.assertGreater(wal_of(sealed).stat().st_size, committed, "the cache did not spill")
        self.same(self.changed(CHANGES), sealed)

        # Shown to be able to fail: without its log the database is the old one.
        wal_of(sealed).rename(workshop.path("wal"))
        self.same(workshop.northwind(), sealed)

    def test_frames_of_an_earlier_round_are_left(self) -> None:
        sealed = workshop.sealed(workshop.northwind(page_size=512))
        last = "UPDATE Products SET UnitsInStock = 7 WHERE ProductID = 3;"
        before = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"
        workshop.killed(sealed, before + CHANGES + "PRAGMA wal_checkpoint(RESTART);" + last)
        self.assertGreater(wal_of(sealed).stat().st_size, 100_000)
        self.same(self.changed(CHANGES + last), sealed)

    def test_a_damaged_frame_ends_the_log(self) -> None:
        sealed = workshop.sealed(workshop.northwind())
        workshop.killed(sealed, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;" + CHANGES)
        raw = bytearray(wal_of(sealed).read_bytes())
        raw[-1] ^= 1
        wal_of(sealed).write_bytes(raw)
        target = workshop.path("read")
        status, said = workshop.reader(sealed, target, "--key-file", workshop.key_file)
        self.assertEqual(status, 0, said)
        # In version 2 such a frame may as well be of an earlier round: nothing tells.
        self.assertEqual("the log ends before it" in said, choose_header(sealed.read_bytes(), None).version == 1)
        self.assertEqual(dump(target), dump(self.changed(CHANGES.rpartition("DELETE")[0])))


class OfVersion2(unittest.TestCase):
    """What is sealed is of version 2."""

    def setUp(self) -> None:
        super().setUp()
        workshop.environment["PELLUCID_FORMAT"] = "2"
        self.addCleanup(workshop.environment.pop, "PELLUCID_FORMAT")


class ContentsOfVersion2(OfVersion2, Contents):
    pass


class StatesOfVersion2(OfVersion2, States):
    pass


class WalOfVersion2(OfVersion2, Wal):
    COMMITS = "".join(f"UPDATE Orders SET ShipCity = 'city {number}';" for number in range(3))

    def strict(self, sealed: Path) -> None:
        with unittest.mock.patch.dict(os.environ, PELLUCID_STRICT_LOG="1"):
            list(read_pages(sealed, KeysAtHand(key_file=workshop.key_file.read_bytes())))

    def test_commits_behind_the_end_are_told(self) -> None:
        for synced, place, says in (
            ("FULL", 40 + 24, "it was synced"),
            ("NORMAL", 40 + 24, "a power cut or somebody"),
            ("NORMAL", 17, "WAL header: damaged"),
        ):
            with self.subTest(synced=synced, place=place):
                sealed = workshop.sealed(workshop.northwind())
                before = f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synced}; PRAGMA wal_autocheckpoint=0;"
                workshop.killed(sealed, before + self.COMMITS)
                self.assertEqual(choose_header(sealed.read_bytes(), None).version, 2)
                self.strict(sealed)
                self.same(self.changed(self.COMMITS), sealed)
                raw = bytearray(wal_of(sealed).read_bytes())
                raw[place] ^= 1
                wal_of(sealed).write_bytes(raw)
                with self.assertRaises(Unauthentic) as raised:
                    self.strict(sealed)
                self.assertIn(says, str(raised.exception))
                self.same(workshop.northwind(), sealed)

    def test_a_log_of_another_version_is_refused(self) -> None:
        second = workshop.sealed(workshop.northwind())
        workshop.environment["PELLUCID_FORMAT"] = "1"
        first = workshop.sealed(workshop.northwind())
        for sealed in (first, second):
            workshop.killed(sealed, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;" + CHANGES)
        logs = [wal_of(first).read_bytes(), wal_of(second).read_bytes()]
        for sealed, log, refused in ((first, logs[1], Unsupported), (second, logs[0], Unauthentic)):
            wal_of(sealed).write_bytes(log)
            with self.assertRaises(refused):
                list(read_pages(sealed, KeysAtHand(key_file=workshop.key_file.read_bytes())))


class Journal(Same):
    def hot(self, before: str = "", page_size: int = 4096) -> Path:
        sealed = workshop.sealed(workshop.northwind(page_size))
        workshop.killed(sealed, before + UNCOMMITTED)
        self.assertGreater(journal_of(sealed).stat().st_size, 4096, "the cache did not spill")
        return sealed

    def test_hot_journal_is_played_back(self) -> None:
        for page_size in (512, 4096):
            with self.subTest(page_size=page_size):
                sealed = self.hot(page_size=page_size)
                self.same(workshop.northwind(page_size), sealed)
                # Shown to be able to fail: without its journal it is half a transaction.
                journal_of(sealed).rename(workshop.path("journal"))
                self.assertIn(b"never committed", workshop.read(sealed).read_bytes())

    def test_without_syncs(self) -> None:
        self.same(workshop.northwind(), self.hot("PRAGMA synchronous=OFF;"))

    def test_journal_that_was_used_before(self) -> None:
        """PERSIST leaves records of the earlier transaction behind the new ones."""
        committed = "UPDATE Orders SET ShipCity = 'committed';"
        sealed = workshop.sealed(workshop.northwind())
        plain = workshop.path("plain")
        shutil.copy(workshop.northwind(), plain)
        sqlite(plain, committed)

        workshop.killed(sealed, "PRAGMA journal_mode=PERSIST;" + committed)
        self.assertGreater(journal_of(sealed).stat().st_size, 4096)
        self.same(plain, sealed)
        workshop.killed(sealed, "PRAGMA journal_mode=PERSIST; PRAGMA synchronous=OFF;" + UNCOMMITTED)
        self.same(plain, sealed)

    def test_super_journal_decides(self) -> None:
        sealed = self.hot()
        hot = journal_of(sealed).read_bytes()

        def name_it(super_journal: Path) -> None:
            name = str(super_journal).encode()
            record = struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + SQLITE_MAGIC
            journal_of(sealed).write_bytes(hot + record)

        name_it(workshop.path("super"))  # none of SQLite's names
        self.same(workshop.northwind(), sealed)
        super_journal = workshop.directory / "main.db-mj0123AF9F0"
        name_it(super_journal)
        self.assertIn(b"never committed", workshop.read(sealed).read_bytes())  # gone: the transaction is committed
        super_journal.write_bytes(str(journal_of(sealed)).encode() + b"\0")
        self.same(workshop.northwind(), sealed)

    def test_a_header_that_does_not_open_is_damage(self) -> None:
        sealed = self.hot()
        raw = bytearray(journal_of(sealed).read_bytes())
        raw[100] ^= 1
        journal_of(sealed).write_bytes(raw)
        self.same(workshop.northwind(), sealed)  # by the second copy
        raw[300] ^= 1
        journal_of(sealed).write_bytes(raw)
        target = workshop.path("none")
        status, said = workshop.reader(sealed, target, "--key-file", workshop.key_file)
        self.assertEqual(status, 3, said)
        self.assertFalse(target.exists())


class Laying(Same):
    """Both ways stopped right after their commit point, made by hand from what the page says."""

    def setUp(self) -> None:
        self.plain = workshop.northwind()
        self.container = workshop.sealed(self.plain).read_bytes()
        self.laid = workshop.path("laid")
        self.copy = self.laid.with_name(self.laid.name + "-pellucid")

    def test_unfinished_encryption(self) -> None:
        self.laid.write_bytes(self.container[:512] + self.plain.read_bytes()[512:])
        self.copy.write_bytes(self.container)
        self.same(self.plain, self.laid)
        self.program_agrees("--key-file", str(workshop.key_file))

    def test_unfinished_decryption(self) -> None:
        copy = self.plain.read_bytes()
        sector = bytearray(480)
        sector[:16] = b"Pellucid laying\0"
        sector[16:19] = b"\0\1\1"
        sector[24:40] = self.container[24:40]
        sector[48:56] = len(copy).to_bytes(8, "big")
        sector[56:88] = hashlib.sha256(copy).digest()
        sector += hashlib.sha256(sector).digest()
        self.laid.write_bytes(sector + self.container[512:])
        self.copy.write_bytes(copy[:-1] + b"\1")
        status, said = workshop.reader(self.laid, workshop.path("none"), "--key-file", workshop.key_file)
        self.assertEqual(status, 3, said)
        self.copy.write_bytes(copy)
        self.same(self.plain, self.laid)
        self.program_agrees()

    def program_agrees(self, *options: str) -> None:
        """It finishes the same work to the same content, so the state made by hand is a real one."""
        uri = f"file:{self.laid}" + (f"?key_file={options[1]}" if options else "")
        sql = f".open '{uri}'\nPRAGMA integrity_check;\n.dump\n"
        finished = workshop.pellucid("run", "--", "sqlite3", "-bail", sql=sql)
        self.assertEqual(finished, dump(self.plain))
        self.assertFalse(self.copy.exists())


class CommandLine(unittest.TestCase):
    def status(self, expected: int, *arguments: str | Path) -> str:
        status, said = workshop.reader(*arguments)
        self.assertEqual(status, expected, said)
        return said

    def test_usage(self) -> None:
        self.status(2)
        self.status(2, "in.db", "out.db")
        self.status(2, "in.db", "out.db", "--cert-file", "certificate.pem")
        self.status(2, "in.db", "out.db", "--key-file", "key", "--no-such-option")

    def test_failures_leave_no_output(self) -> None:
        sealed, target = workshop.sealed(workshop.northwind()), workshop.path("none")
        wrong = workshop.write("wrong-key", bytes(32))
        key = ("--key-file", workshop.key_file)
        self.assertIn("wrong key", self.status(1, sealed, target, "--key-file", wrong))
        self.status(1, sealed, target, "--key-file", workshop.path("no-key"))
        self.assertIn("key file", self.status(1, sealed, target, "--keyring", workshop.home))
        self.assertIn("not sealed", self.status(1, workshop.northwind(), target, *key))
        self.status(1, workshop.path("no-source"), target, *key)
        raw = bytearray(sealed.read_bytes())
        raw[100_000] ^= 0x80
        sealed.write_bytes(raw)
        self.assertIn("page 21", self.status(3, sealed, target, *key))
        sealed.write_bytes(sealed.read_bytes()[:-4096])
        self.status(3, sealed, target, *key)
        self.assertFalse(target.exists())

    def test_certificate_of_another_keyring(self) -> None:
        sealed, target = workshop.sealed(workshop.northwind(), "--algorithm", "AES_256"), workshop.path("none")
        other = workshop.directory / "other"
        said = self.status(1, sealed, target, "--keyring", other)
        self.assertIn("not in the keyring", said)
        shutil.copytree(workshop.home, other)
        (other / "service.key").write_bytes(bytes(32))
        self.assertIn("sealed under another key", self.status(1, sealed, target, "--keyring", other))

    def test_nothing_is_overwritten(self) -> None:
        sealed, target = workshop.sealed(workshop.northwind()), workshop.write("precious.db", b"precious")
        self.status(1, sealed, target, "--key-file", workshop.key_file)
        self.assertEqual(target.read_bytes(), b"precious")
        workshop.write("fresh.db-wal", b"")
        self.status(1, sealed, target.with_name("fresh.db"), "--key-file", workshop.key_file)
        self.assertFalse(target.with_name("fresh.db").exists())


def wal_of(database: Path) -> Path:
    return database.with_name(database.name + "-wal")


def journal_of(database: Path) -> Path:
    return database.with_name(database.name + "-journal")
