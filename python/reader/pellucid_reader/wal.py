"""The write-ahead log: which pages its committed frames hold (docs/format.md, "WAL", "WAL of version 2"; SQLite file format, 4)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from .errors import Corrupt, Unauthentic, Unsupported
from .log_sector import LogSector
from .unit import TAIL_BYTES, FileKind, Opener

if TYPE_CHECKING:
    from .log_end import Lost

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
VERSIONS = {1: 0x50454C01, 2: 0x50454C02}
"""Of a log, by that of its database."""
RESERVED_VERSION = 0x50454C04
LATER_VERSIONS = range(VERSIONS[2] + 1, 0x50454D00)
SQLITE_VERSION = 3007000
BIG_ENDIAN_MAGIC, LITTLE_ENDIAN_MAGIC = MAGICS = (0x377F0683, 0x377F0682)


def open_wal_header(raw: bytes, of_database: int = 1) -> bytes:
    """SQLite's header. The frames' checksums go on from *its* checksum, not from the one on disk."""
    magic, version = struct.unpack(">II", raw[:8])
    big_endian = magic == BIG_ENDIAN_MAGIC
    ours = magic in MAGICS
    own = VERSIONS[of_database]
    whole = struct.pack(">II", *checksum(raw[:24], (0, 0), big_endian)) == raw[24:32]
    if ours and version in LATER_VERSIONS and (whole or version == RESERVED_VERSION):
        raise Unsupported(f"WAL header: version {version:#x} is newer than {VERSIONS[2]:#x}")
    if ours and version in VERSIONS.values() and version > own:
        raise Unsupported(f"WAL header: version {version:#x} is newer than {own:#x}, that of its database")
    if ours and version in VERSIONS.values() and version < own and whole:
        raise Unauthentic(f"WAL header: version {version:#x} is older than {own:#x}, that of its database: it was put back")
    if not ours or version != own:
        raise Corrupt("WAL header: not of a sealed WAL")
    if not whole:
        raise Corrupt("WAL header: its checksum does not match")
    plain = raw[:4] + SQLITE_VERSION.to_bytes(4, "big") + raw[8:24]
    return plain + struct.pack(">II", *checksum(plain, (0, 0), big_endian))


def open_frame(raw: bytes, number: int, opener: Opener, run: bytes = b"") -> bytes:
    """The frame as SQLite wrote it: 24 bytes, then the page with zeros in its reserved bytes.

    In version 2 `run` is bytes 8 to 31 of the log's header on disk; the frame's salts are in it.
    """
    plaintext = opener.open(FileKind.WAL, raw[16:], number, raw[:16], f"WAL frame {number}", run[8:])
    return raw[:8] + (run[8:16] or raw[8:16]) + plaintext + bytes(TAIL_BYTES)


def checksum(data: bytes, start: tuple[int, int], big_endian: bool) -> tuple[int, int]:
    """SQLite's, 4.2 of its file format."""
    s0, s1 = start
    words = iter(struct.unpack(f"{'>' if big_endian else '<'}{len(data) // 4}I", data))
    for x0 in words:
        s0 = (s0 + x0 + s1) & 0xFFFFFFFF
        s1 = (s1 + next(words) + s0) & 0xFFFFFFFF
    return s0, s1


class Padding:
    """Repetitions of a commit's last frame up to the end of a sector, as SQLite writes them without powersafe overwrite."""

    def __init__(self) -> None:
        self._commit, self._repeated, self._followed = b"", False, False

    def is_commit(self, frame: bytes) -> bool:
        """Whether the next frame ends a transaction and is no repetition."""
        what = frame[:8] + frame[FRAME_HEADER_BYTES:]
        repeats = what == self._commit
        self._repeated |= repeats
        self._followed |= bool(self._commit) and not repeats
        self._commit = what if frame[4:8] != bytes(4) else b""
        return frame[4:8] != bytes(4) and not repeats

    def is_absent(self) -> bool:
        return self._followed and not self._repeated


class Wal:
    """The committed frames of a log: `pages_total` after the last commit, 0 if there is none."""

    def __init__(
        self,
        file: BinaryIO,
        opener: Opener,
        page_size: int,
        version: int = 1,
        sector: LogSector | None = None,
        has_page: Callable[[int, bytes], bool] = lambda number, content: False,
    ):
        """`version` is the database's; of version 2 are `sector`, its sector 2, and what its file has."""
        self._file, self._opener, self._version = file, opener, version
        self._sector, self._has_page = sector, has_page
        self._run = b""
        self._frame_bytes = FRAME_HEADER_BYTES + page_size
        self.pages_total = 0
        self.frames: dict[int, int] = {}
        self.last_commit = 0
        self.note = ""
        self.lost = ""
        """What is wrong with a frame behind which whole commits lie that do not count."""
        self.found: Lost | None = None
        self._find_commits(page_size)

    def page(self, number: int) -> bytes | None:
        """The newest committed content, or None if the log has none."""
        frame = self.frames.get(number)
        if frame is None:
            return None
        return open_frame(self._raw_frame(frame), frame, self._opener, self._run)[FRAME_HEADER_BYTES:]

    def _find_commits(self, page_size: int) -> None:
        """As SQLite recovers a log: up to the first frame that is not of it."""
        self._file.seek(0)
        raw = self._file.read(HEADER_BYTES)
        if len(raw) < HEADER_BYTES:
            return
        try:
            header = open_wal_header(raw, self._version)
        except Corrupt as problem:
            # To SQLite such a log is empty: it is what a power cut leaves of a log that begins anew.
            self.note = f"{problem}; the log is taken as empty"
            if self._version == 2:
                self._look_behind_second(raw, False)
            return
        if self._version == 2:
            self._run = raw[8:32]
        self._count(header, page_size)
        if self._version == 2:
            self._look_behind_second(raw, True)

    def _count(self, header: bytes, page_size: int) -> None:
        if int.from_bytes(header[8:12], "big") != page_size:
            raise Corrupt("WAL header: another page size than the database's")
        big_endian = header[3] & 1 == 1
        salts = header[16:24]
        sums = struct.unpack(">II", header[24:32])
        uncommitted: dict[int, int] = {}
        padding = Padding()
        number = 0
        while True:
            number += 1
            raw = self._raw_frame(number)
            if len(raw) < self._frame_bytes:
                return
            try:
                if not self._run and raw[8:16] != salts:
                    raise Unauthentic(f"WAL frame {number}: not of this log")
                frame = open_frame(raw, number, self._opener, self._run)
            except Unauthentic as problem:
                if self._run:
                    return  # Of an earlier run, torn or damaged: what lies behind says which.
                if raw[8:16] == salts:
                    self.note = f"{problem}; the log ends before it"
                self._look_behind(number, raw, salts, big_endian, problem, padding.is_absent())
                return
            sums = checksum(frame[FRAME_HEADER_BYTES:], checksum(frame[:8], sums, big_endian), big_endian)
            page, commit = struct.unpack(">II", frame[:8])
            if page == 0 or struct.pack(">II", *sums) != frame[16:24]:
                return
            uncommitted[page] = number
            if commit:
                self.pages_total, self.last_commit = commit, number
                self.frames.update(uncommitted)
                uncommitted.clear()
            padding.is_commit(frame)

    def _look_behind_second(self, raw_header: bytes, is_whole: bool) -> None:
        from .log_end import LogEnd  # which is made of this module

        def raw_frame(number: int) -> bytes | None:
            raw = self._raw_frame(number)
            return raw if len(raw) == self._frame_bytes else None

        end = LogEnd(raw_frame, self._opener, self._sector, self._has_page)
        self.found = end.lost(raw_header, is_whole, self.last_commit)
        self.lost = str(self.found or "")

    def _look_behind(
        self, damaged: int, raw: bytes, salts: bytes, big_endian: bool, problem: Unauthentic, unpadded: bool
    ) -> None:
        commits = self._commits_behind(damaged, salts, big_endian)
        of_this_log = raw[8:12] == salts[:4] or raw[12:16] == salts[4:]
        ends_one = of_this_log and raw[4:8] != bytes(4)
        if commits > 1 or (commits == 1 and ends_one and unpadded):
            self.lost = f"{problem}: {commits} whole commits lie behind it, and none of them counts"

    def _commits_behind(self, damaged: int, salts: bytes, big_endian: bool) -> int:
        """Of the first run of frames that open and whose checksums follow one from another."""
        commits, number, padding = 0, damaged, Padding()
        sums: tuple[int, int] | None = None
        while True:
            number += 1
            raw = self._raw_frame(number)
            if len(raw) < self._frame_bytes:
                return commits
            try:
                frame = open_frame(raw, number, self._opener) if raw[8:16] == salts else None
            except Unauthentic:
                frame = None
            stated = struct.unpack(">II", frame[16:24]) if frame else None
            if frame and sums:
                sums = checksum(frame[FRAME_HEADER_BYTES:], checksum(frame[:8], sums, big_endian), big_endian)
            if sums and (not frame or sums != stated):
                return commits
            if frame:
                sums = stated
                commits += padding.is_commit(frame)

    def _raw_frame(self, number: int) -> bytes:
        self._file.seek(HEADER_BYTES + (number - 1) * self._frame_bytes)
        return self._file.read(self._frame_bytes)
