"""The hot rollback journal: the pages as they were before the transaction (docs/format.md, "Rollback journal").

SQLite's part of it: SQLite file format, 3.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Callable
from typing import BinaryIO

from .errors import Corrupt, Unauthentic
from .unit import TAIL_BYTES, FileKind, Opener

MAGIC = b"\0PELJRNL"
SQLITE_MAGIC = bytes.fromhex("d9d505f920a163d7")
HEADER_USED_BYTES = 332
ZEROS = ((8, 32), (108, 256), (332, 512))
COPIES = ((32, bytes(4)), (256, b"\xff" * 4))
COPY_BYTES = 76
SECTOR_BYTES_MIN = 512
LOCK_BYTE = 1 << 30
SUPER_JOURNAL_NAME = re.compile(rb"/[^\0]*[^/\0]-mj[0-9A-F]{6}9[0-9A-F]{2}", re.DOTALL)


def open_journal_header(raw: bytes, offset: int, opener: Opener) -> tuple[bytes, bytes, bool]:
    """Journal id, SQLite's 28 bytes, and whether one of the copies is damaged. The magic does not matter."""
    opened = []
    for at, mark in COPIES:
        copy = raw[at : at + COPY_BYTES]
        journal_id, unit = copy[:16], copy[16:]
        try:
            plain = opener.open(FileKind.JOURNAL, unit, offset, journal_id + mark, f"journal header at byte {offset}")
        except Unauthentic as found:
            problem = found
        else:
            opened.append((journal_id, plain))
    if not opened:
        raise problem
    return (*opened[0], len(opened) < 2)


def was_whole(header: bytes, damaged: bool) -> bool:
    """Whether its sector was once written as a whole: torn ones have a copy that does not open, or count no records."""
    return not damaged and header[8:12] != bytes(4)


def check_rest(raw: bytes, offset: int) -> None:
    """Nothing authenticates what is around the copies: of this journal's own header it is damage, or a newer version."""
    if any(any(raw[begin:end]) for begin, end in ZEROS):
        raise Corrupt(f"journal header at byte {offset}: its sector is not zero where it has zeros")


def open_record(raw: bytes, offset: int, journal_id: bytes, opener: Opener) -> bytes:
    """The record as SQLite wrote it: page number 4, page with zeros in its reserved bytes, checksum 4."""
    page = int.from_bytes(raw[:4], "big")
    thing = f"journal record of page {page} at byte {offset}"
    plaintext = opener.open(FileKind.JOURNAL, raw[4:], offset, journal_id + raw[:4], thing)
    return raw[:4] + plaintext[:-4] + bytes(TAIL_BYTES) + plaintext[-4:]


def checksum(page: bytes, start: int) -> int:
    """SQLite's: `start`, and every 200th byte from the end."""
    return (start + sum(page[at] for at in range(len(page) - 200, 0, -200))) & 0xFFFFFFFF


def super_journal_is_gone(size: int, read: Callable[[int, int], bytes]) -> bool:
    """Its removal is the commit of a transaction over several databases (SQLite, atomic commit, 5). `read` takes offset and
    length in a journal of that size."""
    end = read(max(size - 16, 0), 16)
    if len(end) < 16 or end[8:] != SQLITE_MAGIC:
        return False
    length, sum_ = struct.unpack(">II", end[:8])
    if not 0 < length <= size - 20:
        return False
    name = read(size - 16 - length, length)
    signed = sum(byte - 256 if byte > 127 else byte for byte in name) & 0xFFFFFFFF
    if sum_ not in (signed, sum(name)):  # SQLite adds `char`, which has no sign on arm64
        return False
    if not SUPER_JOURNAL_NAME.fullmatch(name):
        return False  # anybody can write one: it is not SQLite's
    try:
        found = os.lstat(name)
    except (FileNotFoundError, NotADirectoryError):
        return True
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


class Journal:
    """What playing a journal back would do; not `hot` if it would do nothing."""

    def __init__(self, file: BinaryIO, opener: Opener):
        self._file, self._opener = file, opener
        self._size = file.seek(0, 2)
        self.hot = False
        self.page_size = 0
        self.pages_total = 0
        self.records: dict[int, int] = {}
        self.note = ""
        self._journal_id = b""
        raw = self._read(0, SECTOR_BYTES_MIN)
        if self._size < SECTOR_BYTES_MIN or not any(raw[:HEADER_USED_BYTES]):
            return  # not yet begun, or ended
        try:
            self._journal_id, header, damaged = open_journal_header(raw, 0, opener)
        except Unauthentic as problem:
            # Torn, and the database whole; or damaged, and half a transaction in it. Nothing here tells which.
            raise Unauthentic(f"{problem}; without the journal beside it the database may be read as it lies") from None
        if was_whole(header, damaged):
            check_rest(raw, 0)
        if header[:8] != SQLITE_MAGIC or self._super_journal_is_gone():
            return
        self.hot = True
        self.pages_total, sector_bytes, self.page_size = struct.unpack(">III", header[16:28])
        sector_bytes = max(sector_bytes, SECTOR_BYTES_MIN)
        if self.page_size < 512 or self.page_size & (self.page_size - 1) or self.page_size > 65536:
            raise Corrupt(f"journal header at byte 0: page size {self.page_size}")
        self._play_back(header, sector_bytes)

    def page(self, number: int) -> bytes | None:
        """The page as it was, or None if the transaction had not touched it."""
        offset = self.records.get(number)
        if offset is None:
            return None
        return self._record(offset)[4:-4]

    def _play_back(self, header: bytes, sector_bytes: int) -> None:
        offset, record_bytes = sector_bytes, self.page_size + 8
        while True:
            count, start = struct.unpack(">II", header[8:16])
            if count == 0xFFFFFFFF:  # written without syncs
                count = (self._size - offset) // record_bytes
            for _ in range(count):
                if offset + record_bytes > self._size:
                    return
                try:
                    record = self._record(offset)
                except Unauthentic as problem:
                    self.note = f"{problem}; the playback ends before it"
                    return
                page = int.from_bytes(record[:4], "big")
                if page in (0, LOCK_BYTE // self.page_size + 1):
                    return
                if page <= self.pages_total:
                    if checksum(record[4:-4], start) != int.from_bytes(record[-4:], "big"):
                        return
                    self.records.setdefault(page, offset)  # the first is the oldest
                offset += record_bytes
            offset = -(-offset // sector_bytes) * sector_bytes
            raw = self._read(offset, SECTOR_BYTES_MIN)
            if offset + sector_bytes > self._size:
                return
            try:
                journal_id, header, damaged = open_journal_header(raw, offset, self._opener)
            except Unauthentic as problem:
                if raw[:8] == MAGIC:  # else it is something left over, or the end
                    self.note = f"{problem}; the playback ends before it"
                return
            if journal_id != self._journal_id or header[:8] != SQLITE_MAGIC:
                return
            if was_whole(header, damaged):
                check_rest(raw, offset)
            offset += sector_bytes

    def _super_journal_is_gone(self) -> bool:
        return super_journal_is_gone(self._size, self._read)

    def _record(self, offset: int) -> bytes:
        return open_record(self._read(offset, self.page_size + 8), offset, self._journal_id, self._opener)

    def _read(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)
