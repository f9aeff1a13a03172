"""Goal: what vectors/ states is what this reader makes of each object, success and failure.

Method: one test for each file. A failure has to be of the kind stated; the message is the program's own and is not
compared. Resealing (`nonce`) is left out: a reader seals nothing.

| object | met by the reader |
|---|---|
| `header`, `expected`, `sector-0`, `keyring`, `password-file`, `event-log`, `bundle`, `media`, `page`, `unit` | yes |
| `archive-state`, `archive-segment`, `archive-header`, `archive-mark`, `archive-changed`, `log-archive` | yes |
| `log-sector`, `wal`, `wal-header`, `wal-frame`, `journal-header`, `journal-record`, `super-journal` | yes |
| `temporary-block` | no: its key is gone with its process. Opened here as a unit, because the page says how |
| `index-object` | no: it is gone with the connections. Its name and its head are compared here, because the page says how |
| `wear` | no: it counts writes, and a reader makes none. Its HMAC is computed here, because the page says how |
"""

from __future__ import annotations

import hashlib
import hmac
import io
import tempfile
import unittest
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key

from pellucid_reader import errors, journal, keyring, log_archive, media, wal
from pellucid_reader.bundle import EntryKind, open_bundle
from pellucid_reader.container import open_page
from pellucid_reader.events import Edited
from pellucid_reader.expected import Expected, Memory, Pin, parse_check, parse_file_ids, parse_memory, parse_pin, parse_witness, pin_names
from pellucid_reader.flags import check_zeros
from pellucid_reader.header import Marks, State, parse_header, parse_sector_0
from pellucid_reader.log_end import stamp_of
from pellucid_reader.log_sector import header_keys, parse_log_sector
from pellucid_reader.protector import Certificate, Companion, KeysAtHand, unwrap
from pellucid_reader.unit import (
    Algorithm,
    Dek,
    FileKind,
    Opener,
    associated_data,
    generation_key,
    hkdf,
    open_unit,
)

VECTORS = Path(__file__).resolve().parents[3] / "vectors"
FAILURES = {
    "unauthentic": errors.Unauthentic,
    "corrupt": errors.Corrupt,
    "wrong-kind": errors.WrongKind,
    "unsupported": errors.Unsupported,
    "missing-key": errors.MissingKey,
    "limit": errors.LimitReached,
    "misuse": errors.NotSealed,
    "replaced": errors.Replaced,
}
FOREVER = 2**32 - 1


class Case:
    """One file: its lines by key, and the object's bytes."""

    def __init__(self, path: Path):
        head, _, body = path.read_text("utf-8").partition("\n\n")
        self.lines: dict[str, str] = {}
        key = ""
        for line in head.split("\n"):
            if line.startswith("  "):
                self.lines[key] += line[2:]
            else:
                key, _, value = line.partition(":")
                self.lines[key] = value.strip()
        self.body = bytes.fromhex("".join(body.split()))

    def __getitem__(self, key: str) -> str:
        return self.lines[key]

    def bytes(self, key: str) -> bytes:
        return bytes.fromhex(self.lines.get(key, ""))

    def number(self, key: str) -> int:
        return int(self.lines[key])

    def version(self) -> int:
        """Of the database that it is of."""
        return int(self.lines.get("database-version", "1"))

    def opener(self) -> Opener:
        dek = Dek(1, FOREVER, Algorithm[self["algorithm"]], self.bytes("dek"))
        return Opener(self.bytes("file-id"), self.number("generation"), [dek])


def marks_of(case: Case, key: str) -> list[str]:
    return sorted(mark.replace("-", "_") for mark in case[key].split() if mark != "nothing")


class Vectors(unittest.TestCase):
    def check(self, path: Path) -> None:
        case = Case(path)
        self.assertEqual(path.name, f"{case['object']}_{case['kind']}")
        open_object = getattr(self, "open_" + case["object"].replace("-", "_"))
        if case["expect"] == "success":
            open_object(case)
        else:
            with self.assertRaises(FAILURES[case["expect"]]) as raised:
                open_object(case)
            self.assertIs(type(raised.exception), FAILURES[case["expect"]])

    def open_unit(self, case: Case) -> None:
        algorithm, generation = Algorithm[case["algorithm"]], case.number("generation")
        file_id = case.bytes("file-id")
        key = generation_key(case.bytes("dek"), file_id, generation, algorithm, FileKind.DATABASE)
        self.assertEqual(key, case.bytes("generation-key"))
        aad = associated_data(FileKind.DATABASE, generation, file_id, case.number("position"))
        self.assertEqual(aad, case.bytes("aad"))
        self.assertEqual(open_unit(algorithm, key, aad, case.body), case.bytes("plaintext"))

    def open_page(self, case: Case) -> None:
        page = open_page(case.body, case.number("position"), case.opener())
        self.assertEqual(page, case.bytes("plaintext") + bytes(32))

    def open_wal_header(self, case: Case) -> None:
        self.assertEqual(wal.open_wal_header(case.body, case.version()), case.bytes("sqlite"))

    def open_wal(self, case: Case) -> None:
        opener, sector = case.opener(), None
        if case.bytes("sector"):
            sector = parse_log_sector(case.bytes("sector"), header_keys(opener))
        file, in_file = io.BytesIO(case.body), case.lines.get("in-file") == "yes"
        log = wal.Wal(file, opener, case.number("page-size"), case.version(), sector, lambda *page: in_file)
        if log.lost:  # as PELLUCID_STRICT_LOG=1 has it
            if log.found:
                self.assertEqual((log.found.commits, log.found.attacked), (case.number("lost"), case["sure"] == "yes"))
                where = f"frame {log.found.frame}:" if log.found.frame else "WAL header: damaged"
                self.assertIn(where, case["error"])
            raise errors.Unauthentic(log.lost)
        self.assertEqual((log.last_commit, log.pages_total), (case.number("frames"), case.number("pages")))

    def open_super_journal(self, case: Case) -> None:
        gone = journal.super_journal_is_gone(len(case.body), lambda at, length: case.body[at : at + length])
        self.assertEqual(gone, case["says"] == "committed")

    def open_wal_frame(self, case: Case) -> None:
        frame = wal.open_frame(case.body, case.number("frame"), case.opener(), case.bytes("run"))
        self.assertEqual(frame, case.bytes("sqlite"))
        if case.bytes("run"):
            stamp = stamp_of(case.body)
            self.assertEqual((stamp.time, stamp.count), (case.number("time"), case.number("recoveries")))
            marks = [name for name, value in vars(stamp).items() if value is True]
            self.assertEqual(sorted(marks), marks_of(case, "stamp"))

    def open_log_sector(self, case: Case) -> None:
        deks = [bytes for bytes in (case.bytes("dek"), case.bytes("older-dek")) if bytes]
        keys = [hkdf(dek, case.bytes("file-id"), b"pellucid/1 header") for dek in deks]
        sector = parse_log_sector(case.body, keys)
        self.assertEqual(sector.under_way, case["under-way"] == "yes")
        self.assertEqual(sector.has_ended, case["has-ended"] == "yes")
        self.assertEqual(sector.is_lost, case["is-lost"] == "yes")
        self.assertEqual((sector.run, sector.run_before), (case.bytes("run"), case.bytes("run-before")))
        for field in ("generation", "reserved", "recoveries", "counted", "ended", "epoch", "kept"):
            self.assertEqual(getattr(sector, field), case.number(field), field)

    def archive_keys(self, case: Case) -> list[bytes]:
        deks = [bytes for bytes in (case.bytes("dek"), case.bytes("older-dek")) if bytes]
        return [hkdf(dek, case.bytes("file-id"), b"pellucid/1 header") for dek in deks]

    def archive_state(self, case: Case) -> log_archive.ArchiveState:
        at = log_archive.SECTOR_BYTES
        return log_archive.parse_state((case.body[:at], case.body[at:]), self.archive_keys(case))

    def open_archive_state(self, case: Case) -> None:
        state = self.archive_state(case)
        for name in ("sequence", "highest", "broken-epoch"):
            self.assertEqual(getattr(state, name.replace("-", "_")), case.number(name), name)
        self.assertEqual(state.has_ended, case["has-ended"] == "yes")
        for name in ("backed-up", "broken-at", "base"):
            lsn = getattr(state, name.replace("-", "_"))
            self.assertEqual((lsn.numeric(), lsn), (case.number(name), log_archive.Lsn.of_numeric(case.number(name))))
        self.assertEqual((state.file_id, state.fork), (case.bytes("file-id"), case.bytes("fork")))
        self.assertEqual((state.has_base, state.last_set), (case["has-base"] == "yes", case.bytes("last-set")))
        for name, run in (("live", state.live), ("before", state.before)):
            numbers = [run.epoch, run.first, run.kept, run.handed_out, run.count, run.behind.epoch, run.behind.frame]
            self.assertEqual(" ".join(map(str, numbers)), case[name])
            self.assertEqual((run.salts, run.tail), (case.bytes(f"{name}-salts"), case.bytes(f"{name}-tail")))

    def open_archive_segment(self, case: Case) -> None:
        keys, page_size = self.archive_keys(case), case.number("page-size")
        segment = log_archive.parse_segment(case.body, case["name"], page_size, keys)
        for at in range(len(segment.frames)):
            log_archive.open_kept(segment, segment.first + at, case.opener())
        self.assertEqual((segment.file_id, segment.fork), (case.bytes("file-id"), case.bytes("fork")))
        self.assertEqual((segment.behind.numeric(), len(segment.frames)), (case.number("behind"), case.number("frames")))
        self.assertEqual(segment.header, case.bytes("log-header"))

    def open_archive_changed(self, case: Case) -> None:
        changed = log_archive.parse_changed_pages(case.body, self.archive_keys(case))
        self.assertEqual((changed.file_id, changed.fork), (case.bytes("file-id"), case.bytes("fork")))
        self.assertEqual((changed.base, changed.least), (case.bytes("base"), case.number("least")))
        self.assertEqual(changed.upto.numeric(), case.number("upto"))
        self.assertEqual(changed.begins.numeric(), case.number("from"))
        self.assertEqual(" ".join(str(page) for page in changed.pages), case["pages"])

    def open_archive_header(self, case: Case) -> None:
        raw, at = case.bytes("sectors"), log_archive.SECTOR_BYTES
        header, _ = log_archive.parse_header_copy(case.body, case.bytes("dek"), (raw[:at], raw[at:]))
        self.assertEqual(header.second.fork if header.second else None, case.bytes("fork"))

    def open_archive_mark(self, case: Case) -> None:
        mark = log_archive.open_mark(case.body, case["name"], case.bytes("log-header"), case.opener())
        self.assertEqual(mark.name.encode(), case.bytes("mark"))
        self.assertEqual(mark.description.encode(), case.bytes("description"))

    def open_log_archive(self, case: Case) -> None:
        state, keys, segments = self.archive_state(case), self.archive_keys(case), []
        log_archive.check_owner(state, [case.bytes("file-id")], case.bytes("fork"))
        while raw := case.bytes(f"segment-{len(segments) + 1}"):
            name = f"{raw[48:52].hex()}-{raw[52:56].hex()}.frames"
            segments.append(log_archive.parse_segment(raw, name, case.number("page-size"), keys))
        behind, found = log_archive.way(state, segments)
        commits = list(log_archive.commits(found, case.opener()))
        said = ", ".join(f"{one.lsn.numeric()} {one.time} {one.pages_total}" for one in commits)
        self.assertEqual(said or "nothing", case["commits"])
        self.assertEqual(behind.numeric(), case.number("behind"))
        self.assertEqual(state.live.lsn(state.live.kept).numeric(), case.number("last"))
        for one in commits:
            for page, content in one.pages.items():
                self.assertEqual(content[:-32], bytes([page]) * (len(content) - 32))

    def open_journal_header(self, case: Case) -> None:
        opened = journal.open_journal_header(case.body, case.number("offset"), case.opener())
        journal.check_rest(case.body, case.number("offset"))
        self.assertEqual(opened, (case.bytes("journal-id"), case.bytes("sqlite"), case["damaged"] == "yes"))

    def open_journal_record(self, case: Case) -> None:
        record = journal.open_record(case.body, case.number("offset"), case.bytes("journal-id"), case.opener())
        self.assertEqual(record, case.bytes("sqlite"))

    def open_temporary_block(self, case: Case) -> None:
        algorithm = Algorithm[case.lines.get("algorithm", "AES_256")]
        generation = 2 if algorithm == Algorithm.AEGIS_256 else 1
        aad = associated_data(FileKind.TEMPORARY, generation, bytes(16), case.number("position"))
        plaintext = open_unit(algorithm, case.bytes("key"), aad, case.body)
        if plaintext is None:
            raise errors.Unauthentic
        self.assertEqual(plaintext, case.bytes("plaintext"))

    def open_sector_0(self, case: Case) -> None:
        sector = parse_sector_0(case.body)
        if case["says"] == "nothing":
            self.assertIsNone(sector)
            return
        self.assertEqual(sector.laying, case["says"] == "laying")
        self.assertEqual(sector.file_id, case.bytes("file-id"))
        decoy = 32768 if case.number("page-size") == 65536 else 1
        self.assertEqual(int.from_bytes(case.body[16:18], "big"), decoy)
        if sector.laying:
            self.assertEqual(sector.copy_bytes, case.number("copy-bytes"))
            self.assertEqual(sector.copy_sha256, case.bytes("copy-sha256"))

    def open_wear(self, case: Case) -> None:
        self.assertEqual(case.body[:8], b"PELWEAR\0")
        key = hkdf(case.bytes("dek"), case.bytes("file-id"), b"pellucid/1 header")
        mac = hmac.digest(key, case.number("offset").to_bytes(8, "big") + case.body[:32], "sha256")
        if mac != case.body[32:64]:
            raise errors.Unauthentic
        check_zeros(case.body, [(12, 16), (24, 32)], "wear")
        self.assertEqual(int.from_bytes(case.body[8:12], "big"), case.number("generation"))
        self.assertEqual(int.from_bytes(case.body[16:24], "big"), case.number("reserved"))

    def open_index_object(self, case: Case) -> None:
        if case.body[:8] != b"PELINDEX":
            raise errors.Corrupt("no head of an object")
        places = [case.number(name).to_bytes(8, "big") for name in ("device", "inode", "index-device", "index-inode")]
        token, boot = case.bytes("token"), case.bytes("boot-id")
        self.assertEqual(case.body[8:], token + boot + b"".join(places))
        digest = hashlib.sha256(b"pellucid/2 index" + places[0] + places[1] + boot).hexdigest()
        self.assertEqual(case["name"], "pellucid-index-" + digest)
        self.assertEqual(case.bytes("record"), b"PELINDEX" + token)

    def keys_of(self, case: Case) -> KeysAtHand:
        at_hand = None
        if case.bytes("certificate") or case.bytes("public-key"):
            at_hand = Certificate(
                x509.load_der_x509_certificate(case.bytes("certificate")) if case.bytes("certificate") else None,
                load_der_private_key(case.bytes("private-key"), None),
            )
            if case.lines.get("companion-added", "none") != "none":
                companion = Companion(case.number("companion-added"), case.bytes("companion"), b"")
                signature, private_key = case.bytes("companion-signature"), case.bytes("companion-private-key")
                at_hand = keyring.with_companion(at_hand, companion, signature, private_key)

        def find_certificate(thumbprint: bytes) -> Certificate:
            if at_hand is None or at_hand.thumbprint != thumbprint:
                raise errors.MissingKey("is not in the keyring")
            return at_hand

        return KeysAtHand(
            key_file=case.bytes("key-file") or None,
            passphrase=case.lines["passphrase"].encode() if case.lines.get("passphrase") else None,
            find_certificate=find_certificate,
            allow_recovery=case.lines.get("allow-recovery") == "yes",
        )

    def open_expected(self, case: Case) -> None:
        header = parse_header(case.body, 0)
        opener = header.opener(unwrap(header, self.keys_of(case)))
        pins = []
        if "pin" in case.lines:
            ids = {key: case.bytes(f"pin-{key}") or None for key in ("next", "former", "retired")}
            pins.append(Pin(case.bytes("pin"), case.number("pin-sequence"), case["pin-sealed"] == "yes", **ids))
        known = {}
        if "known-sequence" in case.lines:
            known[case.bytes("file-id")] = Memory(case.number("known-sequence"), True)
        expected = Expected(
            file_ids=parse_file_ids(case.lines.get("file-ids", "")),
            pins=pins,
            retired=[case.bytes("retired")] if "retired" in case.lines else [],
            recall=known.get,
            strict=case.lines.get("strict") == "yes",
        )
        expected.check(header)
        self.assertEqual(open_page(case.bytes("page"), 1, opener)[:16], b"SQLite format 3\0")

    def open_password_file(self, case: Case) -> None:
        kind = keyring.MasterKey[case["key"].upper()]
        key = keyring.open_password_file(case.body, kind, case["passphrase"].encode())
        self.assertEqual(key, case.bytes("master-key"))

    def open_event_log(self, case: Case) -> None:
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        for name, content in (
            ("service.key", case.bytes("service-key")),
            ("keyring/master.key", case.bytes("master-key-file")),
            ("keyring/events", case.bytes("keyring-events")),
            ("events.log", case.body),
        ):
            path = Path(home.name, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        try:
            last = keyring.Keyring(Path(home.name)).check_events()
        except Edited as edited:
            self.assertEqual(edited.line, case.number("line"))
            raise errors.Unauthentic from edited
        self.assertEqual(last, case.number("last"))

    def open_header(self, case: Case) -> None:
        header = parse_header(case.body, case.number("copy"))
        header.check_readable()
        dek = unwrap(header, self.keys_of(case))
        opener = header.opener(dek)
        self.assertEqual(dek, case.bytes("dek"))
        self.assertEqual(header.file_id, case.bytes("file-id"))
        self.assertEqual(header.older_id, case.bytes("older-file-id") or None)
        self.assertEqual(case.body[120:126], case.bytes("flags") or bytes(6))
        self.assertEqual(header.current_row.algorithm, Algorithm[case["algorithm"]])
        self.assertEqual(header.state, State[case["state"].upper().replace(" ", "_").replace("-", "_")])
        self.assertEqual(
            [header.generation, header.sequence, header.page_size, header.birth],
            [case.number(key) for key in ("generation", "sequence", "page-size", "created")],
        )
        self.assertEqual(header.second is not None, "recovery-model" in case.lines)
        if header.second:
            second = header.second
            self.assertEqual(second.model.name, case["recovery-model"])
            marks = sorted(mark.name.lower() for mark in Marks if mark in second.marks)
            self.assertEqual(marks, marks_of(case, "marks"))
            self.assertEqual((second.fork, second.witness), (case.bytes("fork"), case.bytes("witness")))
            numbers = (case.number("chain-begins"), case.number("handed-out"))
            self.assertEqual((second.chain_begins, second.handed_out), numbers)
        if "older-dek" in case.lines:
            self.assertIn(case.bytes("older-dek"), [row.key for row in opener.deks])
            self.assertEqual(open_page(case.bytes("older-page"), 7, opener), case.bytes("plaintext") + bytes(32))

    def open_bundle(self, case: Case) -> None:
        bundle = open_bundle(case.body, self.keys_of(case))
        self.assertEqual(bundle.made, case.number("made"))
        self.assertEqual(bundle.entries[EntryKind.MASTER_KEY, ""], case.bytes("database-master-key"))
        certificate = bundle.entries[EntryKind.CERTIFICATE, "app"]
        der, private_key = case.bytes("app-certificate"), case.bytes("app-private-key")
        found = keyring.parse_certificate(certificate)
        self.assertEqual(certificate[-len(private_key) :], private_key)
        self.assertEqual(found.certificate, x509.load_der_x509_certificate(der))
        if "companion" not in case.lines:
            self.assertEqual(certificate[12 : 12 + len(der)], der)
            self.assertEqual(certificate[12 + len(der) :], private_key)
        self.assertEqual(bundle.find_certificate(found.thumbprint).thumbprint, found.thumbprint)
        database = bundle.entries[EntryKind.DATABASE, case["file-id"]]
        self.assertEqual(int.from_bytes(database[:8], "big"), case.number("sequence"))
        self.assertEqual(database[9:42], b"\1" + found.thumbprint)
        self.assertEqual(database[42:].decode(), case["database-path"])

    def open_media(self, case: Case) -> None:
        families = [media.open_family(case.body)]
        while case.bytes(f"family-{len(families) + 1}"):
            families.append(media.open_family(case.bytes(f"family-{len(families) + 1}")))
        keys = self.keys_of(case)
        positions = sorted({1, case.number("position")})
        sets = [media.OpenSet(families, position, keys) for position in positions]
        self.assertEqual([own.description["database"] for own in sets], ["vectors"] * len(sets))
        if sets[-1].header.kind == media.Kind.LOG:
            stop = case.number("stop") if "stop" in case.lines else None
            restored = media.restore_log(sets[:1], sets[-1], stop)
        else:
            restored = media.restore(sets)
        self.assertEqual(restored, case.bytes("database"))

    def open_keyring(self, case: Case) -> None:
        folder, _, name = case["path"].rpartition("/")
        dmk = case.bytes("database-master-key")
        master_key_file = case.body if name == "master.key" else case.bytes("master-key-file")
        opened = keyring.open_sealed_file(master_key_file, case.bytes("service-key"), keyring.KeyKind.MASTER_KEY, "")
        self.assertEqual(opened, dmk)
        if folder.endswith("certificates"):
            content = keyring.open_sealed_file(case.body, dmk, keyring.KeyKind.CERTIFICATE, name)
            certificate = keyring.parse_certificate(content)
            self.assertEqual(int.from_bytes(content[:8], "big"), case.number("backed-up"))
            der = case.bytes("certificate")
            self.assertEqual(certificate.certificate, x509.load_der_x509_certificate(der))
            keys = case.bytes("companion-private-key") + case.bytes("private-key")
            self.assertEqual(content[content.index(der) + len(der) :], keys)
            companion = certificate.companion
            self.assertEqual(companion.key if companion else b"", case.bytes("companion"))
        elif folder.endswith("databases"):
            content = keyring.open_sealed_file(case.body, dmk, keyring.KeyKind.DATABASE, name)
            known = parse_memory(content)
            self.assertEqual((known.sequence, known.sealed), (case.number("sequence"), case["sealed"] == "yes"))
        elif folder.endswith("paths"):
            content = keyring.open_sealed_file(case.body, dmk, keyring.KeyKind.PIN, name)
            pin, path = parse_pin(content)
            self.assertEqual((pin.file_id, pin.sequence), (case.bytes("file-id"), case.number("sequence")))
            self.assertEqual((content[26:58], path.decode()), (case.bytes("commitment"), case["pinned-path"]))
            self.assertEqual(pin_names(Path(path.decode()))[0], name)
        elif folder.endswith("retired"):
            content = keyring.open_sealed_file(case.body, dmk, keyring.KeyKind.RETIRED, name)
            self.assertEqual((content, name), (case.bytes("commitment"), content.hex()[:32]))
        elif folder.endswith("checks"):
            check = parse_check(keyring.open_sealed_file(case.body, dmk, keyring.KeyKind.CHECK, name))
            self.assertEqual((check.file_id, check.path.decode()), (case.bytes("file-id"), case["checked-path"]))
            self.assertEqual((check.at, check.good_at), (case.number("at"), case.number("good-at")))
            self.assertEqual((check.findings, check.pages), (case.number("findings"), (3, 17)))
            self.assertEqual(pin_names(Path(check.path.decode()))[0], name)
        elif folder.endswith("witnesses"):
            witness = parse_witness(keyring.open_sealed_file(case.body, dmk, keyring.KeyKind.WITNESS, name))
            self.assertEqual((witness.file_id, witness.fork), (case.bytes("file-id"), case.bytes("fork")))
            self.assertEqual((witness.last_set, witness.path.decode()), (case.bytes("last-set"), case["witness-path"]))
            for field in ("header-sequence", "archive-sequence", "lsn", "at", "base"):
                self.assertEqual(getattr(witness, field.replace("-", "_")), case.number(field), field)
            self.assertEqual(pin_names(Path(witness.path.decode()))[0], name)


def _add(path: Path) -> None:
    setattr(Vectors, "test_" + path.name.replace("-", "_"), lambda self: self.check(path))


for _path in sorted(VECTORS.glob("*_*")):
    _add(_path)


class Complete(unittest.TestCase):
    def test_every_vector_is_run(self) -> None:
        files = [path for path in VECTORS.iterdir() if path.name != "README.md"]
        self.assertGreaterEqual(len(files), 243)
        self.assertEqual(len(files), sum(name.startswith("test_") for name in vars(Vectors)))
