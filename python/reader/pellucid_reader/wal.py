"""The write-ahead log: which pages its committed frames hold (docs/format.md, "WAL"; SQLite file format, 4)."""

from __future__ import annotations

import struct
from typing import BinaryIO

from .errors import Corrupt, Unauthentic, Unsupported
from .unit import TAIL_BYTES, FileKind, Opener

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
SEALED_VERSION = 0x50454C01
RESERVED_VERSION = 0x50454C02
SQLITE_VERSION = 3007000
BIG_ENDIAN_MAGIC, LITTLE_ENDIAN_MAGIC = 0x377F0683, 0x377F0682


def open_wal_header(raw: bytes) -> bytes:
    """SQLite's header. The frames' checksums go on from *its* checksum, not from the one on disk."""
    magic, version = struct.unpack(">II", raw[:8])
    big_endian = magic == BIG_ENDIAN_MAGIC
    ours = magic in (BIG_ENDIAN_MAGIC, LITTLE_ENDIAN_MAGIC)
    whole = struct.pack(">II", *checksum(raw[:24], (0, 0), big_endian)) == raw[24:32]
    if ours and SEALED_VERSION < version <= SEALED_VERSION | 0xFF and (whole or version == RESERVED_VERSION):
        raise Unsupported(f"WAL header: version {version:#x} is newer than {SEALED_VERSION:#x}")
    if not ours or version != SEALED_VERSION:
        raise Corrupt("WAL header: not of a sealed WAL")
    if not whole:
        raise Corrupt("WAL header: its checksum does not match")
    plain = raw[:4] + SQLITE_VERSION.to_bytes(4, "big") + raw[8:24]
    return plain + struct.pack(">II", *checksum(plain, (0, 0), big_endian))


def open_frame(raw: bytes, number: int, opener: Opener) -> bytes:
    """The frame as SQLite wrote it: 24 bytes, then the page with zeros in its reserved bytes."""
    plaintext = opener.open(FileKind.WAL, raw[16:], number, raw[:16], f"WAL frame {number}")
    return raw[:16] + plaintext + bytes(TAIL_BYTES)


def checksum(data: bytes, start: tuple[int, int], big_endian: bool) -> tuple[int, int]:
    """SQLite's, 4.2 of its file format."""
    s0, s1 = start
    words = iter(struct.unpack(f"{'>' if big_endian else '<'}{len(data) // 4}I", data))
    for x0 in words:
        s0 = (s0 + x0 + s1) & 0xFFFFFFFF
        s1 = (s1 + next(words) + s0) & 0xFFFFFFFF
    return s0, s1


class Wal:
    """The committed frames of a log: `pages_total` after the last commit, 0 if there is none."""

    def __init__(self, file: BinaryIO, opener: Opener, page_size: int):
        self._file, self._opener = file, opener
        self._frame_bytes = FRAME_HEADER_BYTES + page_size
        self.pages_total = 0
        self.frames: dict[int, int] = {}
        self.note = ""
        self._find_commits(page_size)

    def page(self, number: int) -> bytes | None:
        """The newest committed content, or None if the log has none."""
        frame = self.frames.get(number)
        if frame is None:
            return None
        return open_frame(self._raw_frame(frame), frame, self._opener)[FRAME_HEADER_BYTES:]

    def _find_commits(self, page_size: int) -> None:
        """As SQLite recovers a log: up to the first frame that is not of it."""
        self._file.seek(0)
        raw = self._file.read(HEADER_BYTES)
        if len(raw) < HEADER_BYTES:
            return
        try:
            header = open_wal_header(raw)
        except Corrupt as problem:
            # To SQLite such a log is empty: it is what a power cut leaves of a log that begins anew.
            self.note = f"{problem}; the log is taken as empty"
            return
        if int.from_bytes(header[8:12], "big") != page_size:
            raise Corrupt("WAL header: another page size than the database's")
        big_endian = header[3] & 1 == 1
        salts = header[16:24]
        sums = struct.unpack(">II", header[24:32])
        uncommitted: dict[int, int] = {}
        number = 0
        while True:
            number += 1
            raw = self._raw_frame(number)
            if len(raw) < self._frame_bytes or raw[8:16] != salts:
                return
            try:
                frame = open_frame(raw, number, self._opener)
            except Unauthentic as problem:
                self.note = f"{problem}; the log ends before it"
                return
            sums = checksum(frame[FRAME_HEADER_BYTES:], checksum(frame[:8], sums, big_endian), big_endian)
            page, commit = struct.unpack(">II", frame[:8])
            if page == 0 or struct.pack(">II", *sums) != frame[16:24]:
                return
            uncommitted[page] = number
            if commit:
                self.pages_total = commit
                self.frames.update(uncommitted)
                uncommitted.clear()

    def _raw_frame(self, number: int) -> bytes:
        self._file.seek(HEADER_BYTES + (number - 1) * self._frame_bytes)
        return self._file.read(self._frame_bytes)
