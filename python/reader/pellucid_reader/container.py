"""A container as SQLite would see it: database, WAL and hot journal together, page by page."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from .errors import Corrupt, Unauthentic, Unsupported
from .expected import Expected
from .header import REGION_BYTES, Header, State, choose_header, parse_sector_0
from .journal import LOCK_BYTE, Journal
from .log_sector import BYTES as LOG_SECTOR_BYTES
from .log_sector import OFFSET as LOG_SECTOR_OFFSET
from .log_sector import LogSector, header_keys, parse_log_sector
from .protector import KeysAtHand, unwrap
from .unit import TAIL_BYTES, FileKind, Opener
from .wal import Wal

SQLITE_MAGIC = b"SQLite format 3\0"


def open_page(raw: bytes, number: int, opener: Opener) -> bytes:
    """One page of the database, with zeros in its reserved bytes."""
    thing = f"page {number}"
    if not any(raw):
        raise Unauthentic(f"{thing}: all bytes are zero")
    return opener.open(FileKind.DATABASE, raw, number, b"", thing) + bytes(TAIL_BYTES)


def read_pages(
    path: Path, keys: KeysAtHand, note: Callable[[str], None] = lambda line: None, expected: Expected | None = None
) -> Iterator[bytes]:
    """Every page of the plain database, in order. Nothing is yielded before the header is authentic and expected there."""
    expected = expected or Expected()
    with ExitStack() as files:
        file = files.enter_context(open(path, "rb"))
        region = file.read(REGION_BYTES)
        if region.startswith(SQLITE_MAGIC):
            expected.refuse_nothing_sealed("a file that is not encrypted")
            raise Unsupported(f"{path}: it is not sealed")
        if not any(region[:512]) and file.seek(0, 2) <= REGION_BYTES:
            expected.refuse_nothing_sealed("an empty file")
            note("an interrupted birth: it holds nothing")
            return
        copy = path.with_name(path.name + "-pellucid")
        try:
            sector_0 = parse_sector_0(region[:512])
        except Corrupt as problem:
            note(f"{problem}; the header is read without it")
            sector_0 = None
        if sector_0 and sector_0.laying:
            expected.refuse_nothing_sealed("an unfinished decryption")
            note(f"an unfinished decryption: read from {copy}")
            yield from _plain_copy(copy, sector_0.copy_bytes, sector_0.copy_sha256)
            return
        try:
            header = choose_header(region, sector_0.file_id if sector_0 else None)
        except Corrupt:
            if not sector_0 or not copy.exists():
                raise
            note(f"an unfinished encryption: read from {copy}")
            file = files.enter_context(open(copy, "rb"))
            region = file.read(REGION_BYTES)
            header = choose_header(region, sector_0.file_id)
        if len(region) < REGION_BYTES:
            raise Corrupt(f"{path}: cut within its header region")
        name = header.state.name.lower().replace("_", " ")
        if header.state == State.PROTECTION_CHANGE:
            raise Unsupported(f"{path}: state {name} needs a newer version")
        header.check_readable()
        if not header.keys_fit_state():
            raise Corrupt(f"{path}: the header's state is {name}, but its keys belong to another state")
        if header.state not in (State.ENCRYPTED, State.KEY_CHANGE):
            # The keyring knows, if there is one.
            note(f"state {name}: a later header may have been taken away and this one put back")

        opener = header.opener(unwrap(header, keys))
        expected.check(header, file.seek(0, 2) > REGION_BYTES)
        sector = _log_sector(region, opener) if header.version == 2 else None
        yield from _pages(files, file, path, opener, header, sector, note)


def _log_sector(region: bytes, opener: Opener) -> LogSector | None:
    """None if it says nothing: a power cut can have torn it."""
    try:
        return parse_log_sector(region[LOG_SECTOR_OFFSET : LOG_SECTOR_OFFSET + LOG_SECTOR_BYTES], header_keys(opener))
    except (Unauthentic, Unsupported):
        return None


def _pages(
    files: ExitStack,
    file: BinaryIO,
    path: Path,
    opener: Opener,
    header: Header,
    sector: LogSector | None,
    note: Callable[[str], None],
) -> Iterator[bytes]:
    page_size = header.page_size

    def has_page(number: int, content: bytes) -> bool:
        file.seek(REGION_BYTES + (number - 1) * len(content))
        raw = file.read(len(content))
        try:
            return len(raw) == len(content) and open_page(raw, number, opener) == content
        except Unauthentic:
            return False

    pages_total = -(-(file.seek(0, 2) - REGION_BYTES) // page_size)
    journal = wal = None
    # SQLite ignores both beside an empty database.
    if pages_total > 0:
        beside = _open_beside(files, path, "-journal")
        if beside:
            journal = Journal(beside, opener)
            if journal.note:
                note(journal.note)
            if journal.hot:
                page_size, pages_total = journal.page_size, journal.pages_total
        beside = _open_beside(files, path, "-wal")
        if beside:
            wal = Wal(beside, opener, page_size, header.version, sector, has_page)
            if wal.lost and os.environ.get("PELLUCID_STRICT_LOG") == "1":
                raise Unauthentic(f"{wal.lost}; a damaged log is an error here (PELLUCID_STRICT_LOG)")
            for line in filter(None, (wal.note, wal.lost)):
                note(line)
            pages_total = wal.pages_total or pages_total

    for number in range(1, pages_total + 1):
        if number == LOCK_BYTE // page_size + 1:
            yield bytes(page_size)  # a hole: SQLite never uses it
            continue
        page = (wal and wal.page(number)) or (journal and journal.page(number))
        if not page:
            file.seek(REGION_BYTES + (number - 1) * page_size)
            raw = file.read(page_size)
            if len(raw) < page_size:
                raise Corrupt(f"page {number}: the file ends within or before it")
            page = open_page(raw, number, opener)
        if number == 1:
            _check_page_1(page, pages_total)
        yield page


def _check_page_1(page: bytes, pages_total: int) -> None:
    if page[20] != TAIL_BYTES:
        raise Corrupt(f"page 1: {page[20]} reserved bytes, not {TAIL_BYTES}")
    # SQLite's own count holds if the writer knew of it (SQLite file format, 1.3.8); so a cut file is found.
    counted = int.from_bytes(page[28:32], "big")
    if page[24:28] == page[92:96] and counted > pages_total:
        raise Corrupt(f"page 1 counts {counted} pages, the file holds {pages_total}")


def _open_beside(files: ExitStack, path: Path, suffix: str) -> BinaryIO | None:
    try:
        return files.enter_context(open(path.with_name(path.name + suffix), "rb"))
    except FileNotFoundError:
        return None


def _plain_copy(copy: Path, length: int, sha256: bytes) -> Iterator[bytes]:
    """The copy of an unfinished decryption, checked as a whole before a byte of it is used."""
    chunk = 1 << 20
    digest, found = hashlib.sha256(), 0
    try:
        file = open(copy, "rb")
    except FileNotFoundError:
        raise Corrupt(f"an unfinished decryption, and its copy {copy} is missing") from None
    with file:
        while piece := file.read(chunk):
            digest.update(piece)
            found += len(piece)
        if found != length or digest.digest() != sha256:
            raise Corrupt(f"{copy}: not the copy that sector 0 names")
        file.seek(0)
        while piece := file.read(chunk):
            yield piece
