"""The log archive beside a database: its state, its segments, and the way through both (docs/format.md, "Log archive")."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .errors import Corrupt, Unauthentic, Unsupported
from .flags import check_zeros
from .header import Header, Marks, RecoveryModel, parse_header
from .log_end import RUN_OFFSET, stamp_of
from .log_sector import header_keys
from .unit import TAIL_BYTES, Opener
from .wal import FRAME_HEADER_BYTES, HEADER_BYTES, open_frame

SECTOR_BYTES = HEAD_BYTES = 512
SECTORS = (0, 4096)
MAC_OFFSET = 480
VERSION = 1
HAS_BASE, HAS_ENDED = 1, 2
STATE_MAGIC, SEGMENT_MAGIC, CHANGED_MAGIC = b"PELLOGS\0", b"PELFRAM\0", b"PELPAGE\0"
RUN_BYTES = 68
MARK_SUFFIX, MARK_BYTES = ".mark", 2000
MARK_CHARACTERS, DESCRIPTION_CHARACTERS = 128, 255
EPOCH_STEP, FRAME_STEP = 10**15, 10**5


@dataclass(frozen=True, order=True)
class Lsn:
    """The place behind a frame."""

    epoch: int
    frame: int

    @classmethod
    def parse(cls, raw: bytes) -> Lsn:
        return cls(int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:8], "big"))

    @classmethod
    def of_numeric(cls, number: int) -> Lsn:
        return cls(number // EPOCH_STEP, number % EPOCH_STEP // FRAME_STEP)

    def numeric(self) -> int:
        return 0 if self == NONE else self.epoch * EPOCH_STEP + self.frame * FRAME_STEP + 1


NONE = Lsn(0, 0)


@dataclass(frozen=True)
class LogRun:
    salts: bytes
    epoch: int
    first: int
    kept: int
    handed_out: int
    count: int
    behind: Lsn
    tail: bytes

    @classmethod
    def parse(cls, raw: bytes) -> LogRun:
        numbers = (int.from_bytes(raw[at : at + 4], "big") for at in range(8, 28, 4))
        return cls(raw[:8], *numbers, Lsn.parse(raw[28:36]), raw[36:RUN_BYTES])

    def lsn(self, frame: int) -> Lsn:
        return self.behind if frame < self.first else Lsn(self.epoch, frame)


@dataclass(frozen=True)
class ArchiveState:
    sequence: int
    file_id: bytes
    fork: bytes
    has_base: bool
    has_ended: bool
    live: LogRun
    before: LogRun
    highest: int
    broken_epoch: int
    backed_up: Lsn
    broken_at: Lsn
    last_set: bytes
    base: Lsn


@dataclass(frozen=True)
class Segment:
    file_id: bytes
    fork: bytes
    epoch: int
    first: int
    behind: Lsn
    header: bytes
    frames: list[bytes]
    """Those that were kept; how many count is said by what goes on behind them."""


@dataclass(frozen=True)
class Mark:
    name: str
    description: str


@dataclass
class Commit:
    lsn: Lsn
    time: int
    pages_total: int
    pages: dict[int, bytes]


def _is_authentic(raw: bytes, place: bytes, keys: Iterable[bytes]) -> bool:
    signed = place + raw[:MAC_OFFSET]
    return any(hmac.compare_digest(hmac.digest(key, signed, "sha256"), raw[MAC_OFFSET:512]) for key in keys)


def _parse_sector(raw: bytes, place: int, keys: list[bytes]) -> ArchiveState:
    if not _is_authentic(raw, place.to_bytes(8, "big"), keys) or raw[:8] != STATE_MAGIC:
        raise Unauthentic("log archive: authentication tag does not match")
    version, flags = int.from_bytes(raw[8:12], "big"), int.from_bytes(raw[12:16], "big")
    if version != VERSION or flags & ~(HAS_BASE | HAS_ENDED):
        raise Unsupported(f"log archive: version {version} with flags {flags:#x} is not known")
    check_zeros(raw, [(256, MAC_OFFSET)], "log archive")
    sequence = int.from_bytes(raw[16:24], "big")
    if SECTORS[sequence % 2] != place:
        raise Corrupt("log archive: a state of the other sector")
    return ArchiveState(
        sequence=sequence,
        file_id=raw[24:40],
        fork=raw[40:56],
        has_base=bool(flags & HAS_BASE),
        has_ended=bool(flags & HAS_ENDED),
        live=LogRun.parse(raw[56:124]),
        before=LogRun.parse(raw[124:192]),
        highest=int.from_bytes(raw[192:196], "big"),
        broken_epoch=int.from_bytes(raw[196:200], "big"),
        backed_up=Lsn.parse(raw[200:208]),
        broken_at=Lsn.parse(raw[208:216]),
        last_set=raw[216:248],
        base=Lsn.parse(raw[248:256]),
    )


def parse_state(sectors: Iterable[bytes], keys: list[bytes]) -> ArchiveState:
    """The newer state. A torn sector leaves the other one; what a later version wrote ends the reading."""
    states = []
    for raw, place in zip(sectors, SECTORS):
        try:
            states.append(_parse_sector(raw, place, keys))
        except Unauthentic:
            continue
    if not states:
        raise Unauthentic("log archive: neither sector of its state is authentic")
    return max(states, key=lambda state: state.sequence)


def parse_segment(raw: bytes, name: str, page_size: int, keys: list[bytes]) -> Segment:
    if len(raw) < HEAD_BYTES or not _is_authentic(raw, b"", keys) or raw[:8] != SEGMENT_MAGIC:
        raise Unauthentic(f"{name}: its head is not authentic")
    version = int.from_bytes(raw[8:12], "big")
    if version != VERSION:
        raise Unsupported(f"{name}: version {version} is not known")
    check_zeros(raw, [(12, 16), (132, MAC_OFFSET)], name)
    epoch, first = int.from_bytes(raw[48:52], "big"), int.from_bytes(raw[52:56], "big")
    if name != f"{epoch:08x}-{first:08x}.frames":
        raise Unauthentic(f"{name}: it has other frames than its name says")
    frame_bytes = FRAME_HEADER_BYTES + page_size
    count = int.from_bytes(raw[96:100], "big")
    if len(raw) < HEAD_BYTES + count * frame_bytes:
        raise Corrupt(f"{name}: a frame is missing")
    places = (HEAD_BYTES + at * frame_bytes for at in range(count))
    frames = [raw[place : place + frame_bytes] for place in places]
    tails = hashlib.sha256(b"".join(frame[-TAIL_BYTES:] for frame in frames)).digest()
    if tails != raw[100:132]:
        raise Unauthentic(f"{name}: it has other frames than were kept in it")
    return Segment(raw[16:32], raw[32:48], epoch, first, Lsn.parse(raw[56:64]), raw[64 : 64 + HEADER_BYTES], frames)


def open_kept(segment: Segment, number: int, opener: Opener) -> bytes:
    """A frame as SQLite wrote it."""
    return open_frame(segment.frames[number - segment.first], number, opener, segment.header[RUN_OFFSET:])


def open_mark(raw: bytes, name: str, header: bytes, opener: Opener) -> Mark:
    """The mark in the file `name`, of a commit in the log with this header."""
    salts, number, stamp = (bytes.fromhex(part) for part in name.removesuffix(MARK_SUFFIX).split("-"))
    run = header[RUN_OFFSET:]
    if len(raw) != MARK_BYTES or raw[:16] != bytes(8) + stamp or salts != run[8:16]:
        raise Unauthentic(f"{name}: it is of another commit")
    content = open_frame(raw, int.from_bytes(number, "big"), opener, run)[16:-TAIL_BYTES]
    texts = []
    for most in (MARK_CHARACTERS, DESCRIPTION_CHARACTERS):
        end = 2 + int.from_bytes(content[:2], "big")
        try:
            text = content[2:end].decode()
        except UnicodeDecodeError as error:
            raise Corrupt(f"{name}: its text is no UTF-8") from error
        controls = (one for one in text if unicodedata.category(one) == "Cc" and one not in "\n\t")
        if end > len(content) or len(text) > most or any(controls):
            raise Corrupt(f"{name}: its fields are malformed")
        texts.append(text)
        content = content[end:]
    if not texts[0] or any(content):
        raise Corrupt(f"{name}: its fields are malformed")
    return Mark(*texts)


def check_owner(state: ArchiveState, file_ids: Iterable[bytes], fork: bytes) -> None:
    """`file_ids` are those of the header, `fork` is its recovery fork."""
    if state.file_id not in file_ids or state.fork != fork:
        raise Unauthentic("log archive: of another database, or of another recovery fork")


@dataclass(frozen=True)
class ChangedPages:
    """The pages that log sets have since a full set, and the fewest that the database had meanwhile."""

    file_id: bytes
    fork: bytes
    base: bytes
    begins: Lsn
    upto: Lsn
    least: int
    pages: tuple[int, ...]


def parse_changed_pages(raw: bytes, keys: Iterable[bytes]) -> ChangedPages:
    head, bits = raw[:HEAD_BYTES], raw[HEAD_BYTES:]
    macs = (hmac.digest(key, head[:MAC_OFFSET], "sha256") for key in keys)
    is_authentic = len(head) == HEAD_BYTES and any(hmac.compare_digest(mac, head[MAC_OFFSET:]) for mac in macs)
    if not is_authentic or head[:8] != CHANGED_MAGIC:
        raise Unauthentic("log archive: its list of changed pages is not authentic")
    if (version := int.from_bytes(head[8:12], "big")) != VERSION:
        raise Unsupported(f"log archive: version {version} of a list of changed pages is not known")
    check_zeros(head, [(92, 96), (136, MAC_OFFSET)], "a list of changed pages")
    if int.from_bytes(head[12:16], "big") != len(bits) or hashlib.sha256(bits).digest() != head[96:128]:
        raise Unauthentic("log archive: its list of changed pages is not the one that was written")
    return ChangedPages(
        file_id=head[16:32],
        fork=head[32:48],
        base=head[48:80],
        begins=Lsn.parse(head[128:136]),
        upto=Lsn.parse(head[80:88]),
        least=int.from_bytes(head[88:92], "big"),
        pages=tuple(at + 1 for at in range(8 * len(bits)) if bits[at // 8] & 0x80 >> at % 8),
    )


def parse_header_copy(raw: bytes, dek: bytes, sectors: Iterable[bytes]) -> tuple[Header, ArchiveState]:
    """The file `header`, under its DEK, and the state that it belongs to."""
    header = parse_header(raw, 0)
    opener = header.opener(dek)
    state = parse_state(sectors, header_keys(opener))
    second = header.second
    has_chain = second is not None and Marks.CHAIN in second.marks and second.model != RecoveryModel.SIMPLE
    if second is None or not has_chain:
        raise Unauthentic("log archive: its copy of the header has no chain of log backups")
    check_owner(state, [header.file_id, *([header.older_id] if header.older_id else [])], second.fork)
    return header, state


def way(state: ArchiveState, segments: Iterable[Segment]) -> tuple[Lsn, list[tuple[Segment, int]]]:
    """What it goes on behind, and the segments in their order, each with its last frame that counts."""
    own = [segment for segment in segments if segment.fork == state.fork]
    wanted, found = state.live.lsn(state.live.kept), []
    while wanted > state.backed_up:
        leading = [
            one
            for one in own
            if one.epoch == wanted.epoch
            and one.first <= wanted.frame < one.first + len(one.frames)
            and one.behind < wanted
        ]
        if not leading:
            raise Corrupt(f"log archive: the frames up to LSN {wanted.numeric()} are missing")
        segment = max(leading, key=lambda one: one.first)
        found.append((segment, wanted.frame))
        wanted = segment.behind
    return wanted, found[::-1]


def commits(found: Iterable[tuple[Segment, int]], opener: Opener) -> Iterator[Commit]:
    """The commits of a way; those that only seal pages anew have none. Every frame is opened."""
    for segment, last in found:
        pages: dict[int, bytes] = {}
        begins = True
        for number in range(segment.first, last + 1):
            stamp = stamp_of(segment.frames[number - segment.first])
            frame = open_kept(segment, number, opener)
            page, size = int.from_bytes(frame[:4], "big"), int.from_bytes(frame[4:8], "big")
            lsn = Lsn(segment.epoch, number)
            # Else it is padding up to the end of a sector.
            if stamp.first or not begins:
                pages[page] = frame[FRAME_HEADER_BYTES:]
                if size:
                    kept = {page: content for page, content in pages.items() if page <= size}
                    yield Commit(lsn, stamp.time, size, {} if stamp.reseals_only else kept)
                    pages = {}
            begins = size != 0
