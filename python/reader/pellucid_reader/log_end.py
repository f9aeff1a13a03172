"""The end of a log of version 2: which commits behind it are lost (docs/format.md, "WAL of version 2")."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from .errors import Corrupt, Unauthentic
from .log_sector import LogSector
from .unit import Opener
from .wal import FRAME_HEADER_BYTES, MAGICS, VERSIONS, checksum, open_frame, open_wal_header

COUNT_MAX = 8191
RUN_OFFSET = 8

HasPage = Callable[[int, bytes], bool]


@dataclass(frozen=True)
class Stamp:
    """What a frame has in the place of its salts."""

    stepped_back: bool
    first: bool
    synced_before: bool
    reseals_only: bool
    mark_follows: bool
    time: int
    count: int


def stamp_of(frame: bytes) -> Stamp:
    word = int.from_bytes(frame[8:16], "big")
    marks = (bool(word >> bit & 1) for bit in range(63, 58, -1))
    return Stamp(*marks, word >> 13 & (1 << 46) - 1, word & COUNT_MAX)


@dataclass(frozen=True)
class Lost:
    """Commits that SQLite does not count, because the log is damaged before them; frame 0 is the header."""

    frame: int
    commits: int
    attacked: bool

    def __str__(self) -> str:
        if not self.commits and not self.attacked:
            return f"WAL frame {self.frame}: older than the last recovery, which had ended before it"
        where = f"WAL frame {self.frame}" if self.frame else "WAL header: damaged"
        sure = "it was synced, so no power cut did that" if self.attacked else "a power cut or somebody did that"
        return f"{where}: {self.commits} whole commits lie behind it, and none of them counts; {sure}"


@dataclass
class Transaction:
    """One that is being read."""

    first: Stamp
    sums: tuple[int, int]
    pages: dict[int, int] = field(default_factory=dict)


@dataclass
class Behind:
    """What lies behind the end."""

    commits: int = 0
    pages: dict[int, int] = field(default_factory=dict)
    pages_total: int = 0
    attacked: bool = False
    broken: int = 0
    damaged: bool = False


@dataclass
class LogEnd:
    raw_frame: Callable[[int], bytes | None]
    """None behind the last whole frame."""
    opener: Opener
    sector: LogSector | None
    has_page: HasPage

    def lost(self, raw_header: bytes, is_whole: bool, counted: int) -> Lost | None:
        """`counted` frames count, none if the header is not whole."""
        run = raw_header[RUN_OFFSET:]
        if counted == 0 and not (is_whole and self._open(1, run)):
            lost = self._lost_by_header(run if is_whole else b"")
            if lost:
                return lost
        if not is_whole:
            return None
        knows = self.sector if self.sector and self.sector.run == run else None
        up_to, present = (knows.counted, knows.recoveries) if knows else (0, 0)
        sqlite = open_wal_header(raw_header, 2)
        sums = struct.unpack(">II", sqlite[24:32])
        if counted:
            frame = self._open(counted, run)
            if not frame:
                return None
            sums = struct.unpack(">II", frame[16:24])
        frame = self._put_back(counted, knows)
        put_back = Lost(frame, 0, False) if frame else None
        behind = self._behind(run, sqlite, counted, sums, lambda end, first: end <= up_to or first.count == present, present)
        if not behind.broken:
            return put_back
        attacked = behind.attacked and present < COUNT_MAX
        if not attacked and (not behind.commits or self._in_database(behind, run)):
            return put_back
        return Lost(behind.broken if behind.damaged else counted + 1, behind.commits, attacked)

    def _put_back(self, counted: int, knows: LogSector | None) -> int:
        """The frame behind those that the last recovery counted, if its transaction counts and is older; 0 if not."""
        for number in range(knows.counted + 1 if knows else counted + 1, counted + 1):
            raw = self.raw_frame(number)
            if raw is None or stamp_of(raw).count >= knows.recoveries:
                return 0
            if any(raw[4:8]):
                return knows.counted + 1
        return 0

    def _lost_by_header(self, run: bytes) -> Lost | None:
        """If sector 2 knows the header that the log should have."""
        if not self.sector or not any(self.sector.run) or self.sector.run == run:
            return None
        for magic in MAGICS:
            try:
                sqlite = open_wal_header(struct.pack(">II", magic, VERSIONS[2]) + self.sector.run, 2)
            except Corrupt:
                continue
            behind = self._behind(self.sector.run, sqlite, 0, None, lambda end, first: True, 0)
            if behind.commits and not self._in_database(behind, self.sector.run):
                return Lost(0, behind.commits, False)
            break
        return None

    def _behind(
        self,
        run: bytes,
        sqlite: bytes,
        counted: int,
        sums: tuple[int, int] | None,
        had_counted: Callable[[int, Stamp], bool],
        present: int,
    ) -> Behind:
        """Without sums everything counts, as if the log were broken before it."""
        found = Behind()
        reading: Transaction | None = None
        big_endian = sqlite[3] & 1 == 1
        number = counted
        while (raw := self.raw_frame(number + 1)) is not None:
            number += 1
            frame = self._open(number, run)
            if not frame:
                found.broken, found.damaged, reading = found.broken or number, True, None
                continue
            stamp, stated = stamp_of(raw), struct.unpack(">II", frame[16:24])
            if sums:
                if follows(frame, sums, big_endian) == stated:
                    sums = stated
                else:
                    found.broken = found.broken or number
            if stamp.first:
                found.attacked |= found.damaged and stamp.synced_before and stamp.count == present
                reading = Transaction(stamp, stated)
            elif reading and follows(frame, reading.sums, big_endian) == stated:
                reading.sums = stated
            else:
                reading = None
            page, size = struct.unpack(">II", frame[:8])
            if reading:
                reading.pages[page] = number
            if reading and size:
                if (found.broken or not sums) and had_counted(number, reading.first):
                    found.commits, found.pages_total = found.commits + 1, size
                    found.pages.update(reading.pages)
                reading = None
        return found

    def _in_database(self, behind: Behind, run: bytes) -> bool:
        """Whether the file has the pages as these transactions left them."""
        for page, number in behind.pages.items():
            frame = self._open(number, run)
            if page <= behind.pages_total and not (frame and self.has_page(page, frame[FRAME_HEADER_BYTES:])):
                return False
        return True

    def _open(self, number: int, run: bytes) -> bytes | None:
        raw = self.raw_frame(number)
        try:
            return open_frame(raw, number, self.opener, run) if raw is not None else None
        except Unauthentic:
            return None


def follows(frame: bytes, sums: tuple[int, int], big_endian: bool) -> tuple[int, int]:
    """The checksum of a frame behind one with these."""
    return checksum(frame[FRAME_HEADER_BYTES:], checksum(frame[:8], sums, big_endian), big_endian)
