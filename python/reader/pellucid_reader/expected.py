"""What is expected at a path (docs/format.md, "What is expected at a path"): by the keyring's pins, by the keys that a rekey
retired, by what is remembered of databases, and by the file ids that the caller names."""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import Corrupt, ReaderError, Replaced, Unauthentic
from .header import Header, State

PIN_BYTES = 170
CHECK_BYTES = 48
WITNESS_BYTES = 105
SEALED, MAY_OFF, OTHER, NEXT, FORMER, RETIRED, PLAIN, PAGES = (1 << bit for bit in range(8))
NAME_DIGITS = 32
SWITCHED_OFF = (State.UNENCRYPTED, State.DECRYPTING)


@dataclass(frozen=True)
class Pin:
    file_id: bytes
    sequence: int
    sealed: bool = True
    may_off: bool = False
    next: bytes | None = None
    former: bytes | None = None
    retired: bytes | None = None
    has_pages: bool = False


@dataclass(frozen=True)
class Memory:
    """What the keyring knows of a database, wherever it lies."""

    sequence: int
    sealed: bool


@dataclass
class Expected:
    """Nothing is, unless something is said. `retired` are commitments, or beginnings of them."""

    file_ids: Sequence[bytes] = ()
    pins: Sequence[Pin] = ()
    retired: Sequence[bytes] = ()
    recall: Callable[[bytes], Memory | None] = lambda file_id: None
    strict: bool = False

    def refuse_nothing_sealed(self, found: str) -> None:
        """What is at the path is not a container."""
        for file_id in (*self.file_ids, *(pin.file_id for pin in self.pins)):
            raise Replaced(f"the database with the file id {file_id.hex()} is expected, and there is {found}")

    def check(self, header: Header, has_pages: bool = True) -> None:
        """The header is authentic. Behind it is a page, or none."""
        if self.file_ids and header.file_id not in self.file_ids:
            asked = " or ".join(one.hex() for one in self.file_ids)
            raise Replaced(f"the database with the file id {asked} is asked for, and this is {header.file_id.hex()}")
        for pin in self.pins:
            self._check_pin(pin, header)
        if not has_pages and (self.file_ids or any(pin.has_pages for pin in self.pins)):
            raise Replaced("a database with pages is expected, and there is a header without pages: the file was cut")
        self._check_retired(header)
        self._check_memory(header)

    def _check_pin(self, pin: Pin, header: Header) -> None:
        def refuse(found: str) -> None:
            expected = f"the database with the file id {pin.file_id.hex()}, header {pin.sequence}"
            raise Replaced(f"the keyring expects {expected}, here, and there is {found}")

        off = header.state in SWITCHED_OFF
        if pin.next == header.file_id and not off:
            return
        if pin.former == header.file_id:
            refuse("the database that was here before")
        if pin.file_id == header.file_id:
            if header.sequence < pin.sequence:
                refuse(f"an older header, {header.sequence}, of it")
            if off and pin.sealed and not pin.may_off:
                refuse("a copy of it, or an older header, whose encryption is switched off")
            return
        if off:
            refuse("another database, whose encryption is switched off")
        known = self.recall(header.file_id)
        if known and known.sequence > header.sequence:
            refuse("an older header of another database")
        if self.strict:
            refuse(f"another encrypted database, file id {header.file_id.hex()}")

    def _check_retired(self, header: Header) -> None:
        commitments = [row.commitment for row in header.rows]
        if any(pin.retired in commitments for pin in self.pins):
            return
        if any(one.startswith(known) for one in commitments for known in self.retired):
            raise Replaced("it is under a key that a rekey replaced: who has that key could have put the file here")

    def _check_memory(self, header: Header) -> None:
        if header.state in (State.ENCRYPTED, State.KEY_CHANGE):
            return
        known = self.recall(header.file_id)
        if not known or not known.sealed:
            return
        same = header.sequence == known.sequence and header.state != State.ENCRYPTING
        if header.sequence < known.sequence or same:
            raise Unauthentic("the keyring knows this database as encrypted: an older header was put back")


def parse_pin(content: bytes) -> tuple[Pin, bytes]:
    """A pin, and the path that it is for."""
    if len(content) < PIN_BYTES or content[0] != 1:
        raise Corrupt("a pin: its fields do not fit")
    flags = content[1]

    def taken(flag: int, at: int, length: int) -> bytes | None:
        return content[at : at + length] if flags & flag else None

    return (
        Pin(
            file_id=content[2:18],
            sequence=int.from_bytes(content[18:26], "big"),
            sealed=bool(flags & SEALED),
            may_off=bool(flags & MAY_OFF),
            next=taken(NEXT, 74, 16),
            former=taken(FORMER, 90, 16),
            retired=taken(RETIRED, 106, 32),
            has_pages=bool(flags & PAGES),
        ),
        content[PIN_BYTES:],
    )


@dataclass(frozen=True)
class Check:
    """What checks of the database at a path have found."""

    file_id: bytes
    at: int
    good_at: int
    findings: int
    pages: tuple[int, ...]
    path: bytes


def parse_check(content: bytes) -> Check:
    """What is remembered of checks."""
    if len(content) < CHECK_BYTES or content[0] != 1 or content[1] > 15:
        raise Corrupt("a memory of checks: its fields do not fit")
    end = CHECK_BYTES + 4 * int.from_bytes(content[46:48], "big")
    if len(content) < end:
        raise Corrupt("a memory of checks: its fields do not fit")
    return Check(
        file_id=content[2:18],
        at=int.from_bytes(content[18:26], "big"),
        good_at=int.from_bytes(content[26:34], "big"),
        findings=int.from_bytes(content[42:46], "big"),
        pages=struct.unpack(f">{(end - CHECK_BYTES) // 4}I", content[CHECK_BYTES:end]),
        path=content[end:],
    )


@dataclass(frozen=True)
class Witness:
    """How far the chain of log backups of the database at a path had come."""

    file_id: bytes
    fork: bytes
    header_sequence: int
    archive_sequence: int
    lsn: int
    last_set: bytes
    at: int
    base: int
    path: bytes


def parse_witness(content: bytes) -> Witness:
    if len(content) < WITNESS_BYTES or content[0] != 1:
        raise Corrupt("a witness: its fields do not fit")
    header, archive, lsn = struct.unpack(">3Q", content[33:57])
    return Witness(
        file_id=content[1:17],
        fork=content[17:33],
        header_sequence=header,
        archive_sequence=archive,
        lsn=lsn,
        last_set=content[57:89],
        at=int.from_bytes(content[89:97], "big"),
        base=int.from_bytes(content[97:105], "big"),
        path=content[WITNESS_BYTES:],
    )


def parse_memory(content: bytes) -> Memory:
    if len(content) < 9 or content[8] > 1:
        raise Corrupt("what is known of a database: its fields do not fit")
    return Memory(int.from_bytes(content[:8], "big"), content[8] == 1)


def parse_file_ids(text: str) -> list[bytes]:
    ids = [one for one in text.split(",") if one]
    if not all(re.fullmatch(r"[0-9A-Fa-f]{32}", one) for one in ids):
        raise ReaderError(f"{text}: a file id has 32 hexadecimal digits")
    return [bytes.fromhex(one) for one in ids]


def pin_names(path: Path) -> list[str]:
    """Names of the pins of a path: as it is given, and with the symbolic links of its directory, and its own, followed."""
    absolute = os.path.abspath(path)
    directory, name = os.path.split(absolute)
    paths = (absolute, os.path.join(os.path.realpath(directory), name), os.path.realpath(absolute))
    return [hashlib.sha256(os.fsencode(one)).hexdigest()[:NAME_DIGITS] for one in dict.fromkeys(paths)]
