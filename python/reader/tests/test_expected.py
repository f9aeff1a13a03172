"""Goal: what an instance that the program made expects at a path is what this reader refuses, and its event log is whole."""

from __future__ import annotations

import unittest

from pellucid_reader import __main__ as reader
from pellucid_reader.events import Edited
from pellucid_reader.keyring import Keyring

from tests.program import Workshop, sqlite


class Expected(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.workshop = Workshop()
        cls.addClassCleanup(cls.workshop.close)
        cls.plain = cls.workshop.path("plain")
        sqlite(cls.plain, "CREATE TABLE t(a); INSERT INTO t VALUES (1);")
        cls.sealed = cls.workshop.path("sealed")
        cls.sealed.write_bytes(cls.plain.read_bytes())
        cls.workshop.pellucid("encrypt", str(cls.sealed))
        cls.before = cls.sealed.read_bytes()
        cls.workshop.pellucid("rekey", str(cls.sealed))
        cls.now = cls.sealed.read_bytes()

    def read(self, content: bytes, *options: str, elsewhere: bool = False) -> int:
        source = self.workshop.path("copy") if elsewhere else self.sealed
        source.write_bytes(content)
        try:
            return reader.main([str(source), str(self.workshop.path("read")), *options])
        finally:
            self.sealed.write_bytes(self.now)

    def test_what_an_instance_expects(self) -> None:
        keyring = ("--keyring", str(self.workshop.home))
        self.assertEqual(self.read(self.now, *keyring), 0)
        self.assertEqual(self.read(self.now, *keyring, elsewhere=True), 0)
        for put in (self.before, self.plain.read_bytes(), b"", self.now[:16384]):
            self.assertEqual(self.read(put, *keyring), 1)
        self.assertEqual(self.read(self.before, *keyring, elsewhere=True), 1, "its key was replaced")
        # The same bytes open where nothing is known of them.
        bundle, password = self.workshop.path("bundle"), self.workshop.passphrase_file
        self.workshop.pellucid("instance", "export", "--to", str(bundle), "--password-file", str(password))
        by_bundle = ("--bundle", str(bundle), "--password-file", str(password))
        self.assertEqual(self.read(self.before, *by_bundle, elsewhere=True), 0)

    def test_the_file_id_that_is_named(self) -> None:
        keyring = ("--keyring", str(self.workshop.home))
        own, other = self.now[24:40].hex(), bytes(16).hex()
        self.assertEqual(self.read(self.now, *keyring, "--file-id", f"{other},{own}"), 0)
        self.assertEqual(self.read(self.now, *keyring, "--file-id", other), 1)

    def test_its_event_log(self) -> None:
        log = self.workshop.home / "events.log"
        whole = log.read_bytes()
        self.addCleanup(log.write_bytes, whole)
        keyring = Keyring(self.workshop.home)
        last = keyring.check_events()
        self.assertGreater(last, 1)
        lines = whole.splitlines(keepends=True)
        part = log.with_name("events.1")
        part.write_bytes(b"".join(lines[:2]))
        log.write_bytes(b"".join(lines[2:]))
        self.assertEqual(keyring.check_events(), last)
        part.unlink()
        with self.assertRaises(Edited):
            keyring.check_events()
        log.write_bytes(b"".join(lines[:-1]))
        with self.assertRaises(Edited):
            keyring.check_events()
