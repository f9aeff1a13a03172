"""Goal: bytes that docs/format.md calls zero are refused by this reader, too, each of them, as of a newer version.

Method: objects are those of vectors/; one such byte after another is set, the sums and tags are made right again with the
keys of the vector, and the object is opened. Where the bytes lie is written here from the page once more.
"""

from __future__ import annotations

import hashlib
import hmac
import unittest
from collections.abc import Callable, Iterable

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pellucid_reader import errors, journal, keyring, media
from pellucid_reader.blake3 import blake3
from pellucid_reader.header import parse_header, parse_sector_0
from pellucid_reader.log_archive import parse_segment, parse_state
from pellucid_reader.log_sector import parse_log_sector
from pellucid_reader.protector import KeysAtHand
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

    def test_headers_of_version_2(self) -> None:
        for name in ("header_second", "header_second-older-dek"):
            case = vector(name)
            key = hkdf(case.bytes("dek"), case.bytes("file-id"), b"pellucid/1 header")

            def parse(raw: bytes, key: bytes = key) -> object:
                return parse_header(summed(raw[:7104] + hmac.digest(key, raw[:7104], "sha256") + bytes(32)), 0)

            rows, used = case.body[54], int.from_bytes(case.body[20:24], "big")
            current = 192 + 104 * (rows - 1)
            places = [55, 71, 126, 127, *range(current + 44, current + 104), *range(used, 7104)]
            for row in range(rows):
                places += [192 + 104 * row + 10, 192 + 104 * row + 11]
            self.each(case.body, [*places, 120, 121], parse)
            for model in (0, *range(4, 256)):
                with self.assertRaises(errors.Unsupported):
                    parse(case.body[:69] + bytes([model]) + case.body[70:])
            for marks in range(256):
                read = case.body[:70] + bytes([marks]) + case.body[71:]
                if marks & ~15:
                    with self.assertRaises(errors.Unsupported):
                        parse(read)
                else:
                    self.assertEqual(parse(read).second.marks, marks)

    def test_sector_2(self) -> None:
        case = vector("log-sector_written")
        key = hkdf(case.bytes("dek"), case.bytes("file-id"), b"pellucid/1 header")

        def parse(raw: bytes) -> object:
            mac = hmac.digest(key, (1024).to_bytes(8, "big") + raw[:96], "sha256")
            return parse_log_sector(raw[:96] + mac, [key])

        self.assertEqual(parse(case.body), parse_log_sector(case.body, [key]))
        self.each(case.body, [*range(28, 31)], parse)

    def test_log_archives(self) -> None:
        case = vector("archive-state_written")
        key = hkdf(case.bytes("dek"), case.bytes("file-id"), b"pellucid/1 header")

        def state(raw: bytes) -> object:
            mac = hmac.digest(key, bytes(8) + raw[:480], "sha256")
            return parse_state((raw[:480] + mac, raw[512:]), [key])

        self.assertEqual(state(case.body), parse_state((case.body[:512], case.body[512:]), [key]))
        self.each(case.body, [*range(12, 15), *range(256, 480)], state)
        case = vector("archive-segment_written")

        def segment(raw: bytes) -> object:
            mac = hmac.digest(key, raw[:480], "sha256")
            return parse_segment(raw[:480] + mac + raw[512:], case["name"], 512, [key])

        self.assertEqual(segment(case.body), parse_segment(case.body, case["name"], 512, [key]))
        self.each(case.body, [*range(12, 16), *range(132, 480)], segment)

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

    def parts(self, raw: bytes) -> tuple[int, int]:
        """Where the set header ends, and the manifest of the only set begins."""
        return 4096 + int.from_bytes(raw[4116:4120], "big"), raw.rindex(b"Pellucid set end")

    def restored(self, raw: bytes, key_file: bytes) -> bytes:
        return media.restore([media.OpenSet([media.open_family(raw)], 1, KeysAtHand(key_file=key_file))])

    def test_media(self) -> None:
        for name, sealed in (("media_sealed", True), ("media_in-clear", False)):
            case = vector(name)
            raw, key_file = case.body, case.bytes("key-file")
            dek = vector("header_key-file").bytes("dek")
            key = hkdf(dek, raw[4136:4152], b"pellucid/1 backup header")
            end, manifest = self.parts(raw)

            def signed(part: bytes, own: bytes = key, tag: bool = sealed) -> bytes:
                mac = hmac.digest(own, part[:-64], "sha256") if tag else part[-64:-32]
                return summed(part[:-64] + mac + bytes(32))

            self.assertEqual(signed(raw[4096:end]), raw[4096:end])
            self.assertEqual(self.restored(raw, key_file), case.bytes("database"))

            def changed_media_header(part: bytes, rest: bytes = raw[4096:]) -> bytes:
                return self.restored(summed(part) + rest, key_file)

            n = int.from_bytes(raw[56:58], "big")
            self.each(raw[:4096], [*range(27, 32), *range(n + 60, 4064)], changed_media_header)

            def changed_set_header(part: bytes, behind: bytes = raw[end:]) -> bytes:
                return self.restored(raw[:4096] + signed(part) + behind, key_file)

            header = raw[4096:end]
            used = 256 + int.from_bytes(header[232:236], "big")
            for _ in range(int.from_bytes(header[228:230], "big")):
                used += 4 + int.from_bytes(header[258:260], "big")
            own = range(196, 228) if sealed else [*range(132, 164), *range(len(header) - 64, len(header) - 32)]
            places = [*range(80, 84), 230, 231, *range(236, 238), *range(242, 256), *range(used, len(header) - 64)]
            self.each(header, [*places, *range(116, 132), *own], changed_set_header)

            def changed_manifest(part: bytes) -> bytes:
                return self.restored(raw[:manifest] + signed(part), key_file)

            own = [] if sealed else range(len(raw) - manifest - 64, len(raw) - manifest - 32)
            self.each(raw[manifest:], [*range(43, 48), *own], changed_manifest)

            def changed_chunk(part: bytes) -> bytes:
                stored = part[48 : 48 + int.from_bytes(part[28:32], "big")]
                right = part[:32] + blake3([part[:32], stored])[:16] + part[48:]
                return self.restored(raw[:end] + right, key_file)

            self.each(raw[end:], [7], changed_chunk)
            for kind in (5, 6):
                with self.assertRaises(errors.Unsupported):
                    changed_chunk(raw[end : end + 4] + bytes([kind]) + raw[end + 5 :])
                with self.assertRaises(errors.Corrupt):
                    self.restored(raw[: end + 4] + bytes([kind]) + raw[end + 5 :], key_file)

    def test_log_sets(self) -> None:
        case = vector("media_log-set")
        dek, keys = vector("header_key-file").bytes("dek"), KeysAtHand(key_file=case.bytes("key-file"))
        begin = case.body.rindex(b"Pellucid backup\0")
        header = case.body[begin : begin + int.from_bytes(case.body[begin + 20 : begin + 24], "big")]
        key = hkdf(dek, header[40:56], b"pellucid/1 backup header")

        def parsed(part: bytes) -> object:
            return media.parse_set_header(summed(part[:-64] + hmac.digest(key, part[:-64], "sha256") + bytes(32)), 2)

        self.assertEqual(parsed(header), media.OpenSet([media.open_family(case.body)], 2, keys).header)
        self.each(header, [*range(288, 296), *range(361, 384), *range(116, 132), *range(196, 228)], parsed)

    def test_index(self) -> None:
        case = vector("media_in-clear")
        raw = case.body
        end, manifest = self.parts(raw)
        begin = raw.index(b"PCHK\3", end)
        length = int.from_bytes(raw[begin + 28 : begin + 32], "big")

        def opened(index: bytes) -> bytes:
            prefix = raw[begin : begin + 32]
            prefix += blake3([prefix, index])[:16]
            place, prefixes = end, [raw[4096:end]]
            while place < manifest:
                prefixes.append(prefix if place == begin else raw[place : place + 48])
                place += 48 + int.from_bytes(raw[place + 28 : place + 32], "big")
            root = summed(raw[manifest : manifest + 104] + blake3(prefixes) + raw[manifest + 136 :])
            file = raw[:begin] + prefix + index + raw[begin + 48 + length : manifest] + root
            return self.restored(file, case.bytes("key-file"))

        index = raw[begin + 48 : begin + 48 + length]
        self.assertEqual(opened(index), case.bytes("database"))
        entries = (length - 12) // 44
        self.each(index, [12 + 44 * entry + at for entry in range(entries) for at in range(2, 8)], opened)

    def test_keyring(self) -> None:
        case = vector("keyring_master-key")
        parent = case.bytes("service-key")

        def opened(flags: int) -> bytes:
            header = case.body[:19] + bytes([flags]) + case.body[20:48]
            key = hkdf(parent, b"", b"pellucid/1 keyring\1")
            content = AESGCM(key).encrypt(header[36:48], case.bytes("database-master-key"), header)
            return keyring.open_sealed_file(header + content, parent, keyring.KeyKind.MASTER_KEY, "")

        for bit in range(8):
            if bit > 2:
                self.assertEqual(opened(1 << bit), case.bytes("database-master-key"), bit)
                continue
            with self.assertRaises(errors.Unsupported):
                opened(1 << bit)
