"""The header region: sector 0 and the two header copies (docs/format.md, "Container").

Wear is left alone: it counts writes, and a reader makes none.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .errors import Corrupt, LimitReached, Unauthentic, Unsupported
from .flags import FLAGS_BYTES, check_flags, check_zeros
from .protector import Protector, parse_protector
from .unit import FIRST_FOUR, Algorithm, Dek, Opener, commitment, hkdf

REGION_BYTES = 16384
COPY_OFFSETS = (2048, 9216)
COPY_BYTES = 7168
NEWEST_VERSION = 2
PROTECTORS_MAX = 8
DEK_ROW_BYTES = 104
FLAGS_OFFSET = 120
SECOND_OFFSET = 128
ROWS_OFFSETS = {1: 128, 2: 192}
MAC_OFFSET = 7104
SUM_OFFSET = 7136


class State(IntEnum):
    UNENCRYPTED = 1
    ENCRYPTING = 2
    ENCRYPTED = 3
    KEY_CHANGE = 4
    DECRYPTING = 5
    PROTECTION_CHANGE = 6


@dataclass(frozen=True)
class Sector0:
    laying: bool
    file_id: bytes
    copy_bytes: int
    copy_sha256: bytes


def parse_sector_0(sector: bytes) -> Sector0 | None:
    """None if it is neither of ours. Its page size is a decoy and not looked at."""
    magic = sector[:16]
    if len(sector) < 512 or magic not in (b"Pellucid sealed\0", b"Pellucid laying\0"):
        return None
    if hashlib.sha256(sector[:480]).digest() != sector[480:512]:
        raise Corrupt("sector 0: its checksum does not match")
    laying = magic == b"Pellucid laying\0"
    check_zeros(sector, [(19, 24), (40, 48), (88 if laying else 48, 480)], "sector 0")
    return Sector0(
        laying=laying,
        file_id=sector[24:40],
        copy_bytes=int.from_bytes(sector[48:56], "big"),
        copy_sha256=sector[56:88],
    )


class RecoveryModel(IntEnum):
    FULL = 1
    BULK_LOGGED = 2
    SIMPLE = 3


class Marks(IntFlag):
    INDEX_IN_MEMORY = 1
    CHAIN = 2
    RESTORING = 4
    STANDBY = 8


@dataclass(frozen=True)
class Second:
    """What a header of version 2 has and one of version 1 has not."""

    model: RecoveryModel
    marks: Marks
    fork: bytes
    chain_begins: int
    handed_out: int
    witness: bytes


def parse_second(raw: bytes, thing: str) -> Second:
    if raw[70] & ~15:
        raise Unsupported(f"{thing}: marks {raw[70]} are not known")
    if raw[69] not in list(RecoveryModel):
        raise Unsupported(f"{thing}: recovery model {raw[69]} is not known")
    fields = raw[SECOND_OFFSET : ROWS_OFFSETS[2]]
    return Second(
        model=RecoveryModel(raw[69]),
        marks=Marks(raw[70]),
        fork=fields[:16],
        chain_begins=int.from_bytes(fields[16:24], "big"),
        handed_out=int.from_bytes(fields[24:32], "big"),
        witness=fields[32:],
    )


@dataclass(frozen=True)
class DekRow:
    first_generation: int
    last_generation: int
    algorithm: Algorithm
    current: bool
    plain: bool
    older_id: bool
    commitment: bytes
    wrapped: bytes


@dataclass(frozen=True)
class Header:
    """One whole copy. Nothing in it is authentic before `opener` has returned."""

    copy: int
    raw: bytes
    version: int
    second: Second | None
    sequence: int
    file_id: bytes
    page_size: int
    state: State
    generation: int
    birth: int
    rows: Sequence[DekRow]
    protectors: Sequence[Protector]
    older_id: bytes | None

    @property
    def current_row(self) -> DekRow:
        return next(row for row in self.rows if row.current)

    def check_readable(self) -> None:
        """What is read-only is nothing to a reader."""
        if self.second and Marks.RESTORING in self.second.marks:
            raise Unsupported(f"header copy {self.copy}: the database is being restored, and nobody reads it before that has ended")

    def keys_fit_state(self) -> bool:
        """Plain units only where that is what the state says."""
        sealing, any_plain = not self.current_row.plain, any(row.plain for row in self.rows)
        return {
            State.UNENCRYPTED: not sealing and len(self.rows) == 1,
            State.ENCRYPTING: sealing,
            State.DECRYPTING: not sealing,
        }.get(self.state, sealing and not any_plain)

    def opener(self, dek: bytes) -> Opener:
        """Authenticates the header with its DEK, then unwraps the older ones."""
        key = hkdf(dek, self.file_id, b"pellucid/1 header")
        mac = hmac.digest(key, self.raw[:MAC_OFFSET], "sha256")
        if not hmac.compare_digest(mac, self.raw[MAC_OFFSET:SUM_OFFSET]):
            raise Unauthentic(f"header copy {self.copy}: authentication tag does not match")
        wrapping_key = hkdf(dek, self.file_id, b"pellucid/1 older DEK")
        deks = [
            Dek(
                row.first_generation,
                row.last_generation,
                row.algorithm,
                dek if row.current else self._unwrap_older(row, wrapping_key),
                row.plain,
                self._id_of(row),
            )
            for row in self.rows
        ]
        return Opener(self.file_id, self.generation, deks)

    def _unwrap_older(self, row: DekRow, wrapping_key: bytes) -> bytes:
        aad = row.first_generation.to_bytes(4, "big")
        try:
            dek = AESGCM(wrapping_key).decrypt(row.wrapped[:12], row.wrapped[12:], aad)
        except InvalidTag:
            dek = b""
        if not hmac.compare_digest(commitment(dek, self._id_of(row)), row.commitment):
            raise Unauthentic(f"header copy {self.copy}: an older DEK does not unwrap")
        return dek

    def _id_of(self, row: DekRow) -> bytes:
        """What the units of a DEK are bound to."""
        return self.older_id if self.older_id and not row.current else self.file_id


def parse_header(raw: bytes, copy: int) -> Header:
    thing = f"header copy {copy}"
    if raw[:16] != b"Pellucid header\0":
        raise Corrupt(f"{thing}: not a header")
    # The sum before the version: a damaged version number is damage, and the other copy may be whole.
    if len(raw) < COPY_BYTES or hashlib.sha256(raw[:SUM_OFFSET]).digest() != raw[SUM_OFFSET:]:
        raise Corrupt(f"{thing}: torn or damaged")
    version = int.from_bytes(raw[16:20], "big")
    if version == 0:
        raise Corrupt(f"{thing}: format version 0")
    if version > NEWEST_VERSION:
        raise Unsupported(f"{thing}: format version {version} is newer than {NEWEST_VERSION}")
    check_flags(raw[FLAGS_OFFSET : FLAGS_OFFSET + FLAGS_BYTES], thing)
    second = parse_second(raw, thing) if version == 2 else None
    check_zeros(raw, [(55, 56), (71 if second else 69, 72), (FLAGS_OFFSET + FLAGS_BYTES, SECOND_OFFSET)], thing)
    rows_offset = ROWS_OFFSETS[version]

    page_size = int.from_bytes(raw[48:52], "big")
    if page_size not in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536):
        raise Corrupt(f"{thing}: page size {page_size}")
    try:
        state = State(raw[52])
    except ValueError:
        raise Unsupported(f"{thing}: encryption state {raw[52]} is not known") from None
    if raw[53] > PROTECTORS_MAX:
        raise LimitReached(f"{thing}: {raw[53]} protectors, more than {PROTECTORS_MAX}")

    used = int.from_bytes(raw[20:24], "big")
    protectors_offset = rows_offset + DEK_ROW_BYTES * raw[54]
    if not protectors_offset <= used <= MAC_OFFSET:
        raise Corrupt(f"{thing}: its fields are longer than the copy")
    offsets = range(rows_offset, protectors_offset, DEK_ROW_BYTES)
    rows = [_parse_row(raw[at : at + DEK_ROW_BYTES], version, thing) for at in offsets]
    if sum(row.current for row in rows) != 1:
        raise Corrupt(f"{thing}: not one current DEK")
    older_id = raw[104:120] if any(raw[104:120]) else None
    if any(row.older_id != (older_id is not None and not row.current) for row in rows):
        raise Corrupt(f"{thing}: the flags of its DEKs contradict its older file id")

    protectors = []
    offset = protectors_offset
    for _ in range(raw[53]):
        end = offset + 4 + int.from_bytes(raw[offset + 2 : offset + 4], "big")
        if end > used:
            raise Corrupt(f"{thing}: its fields are longer than the copy")
        protectors.append(parse_protector(raw[offset:end]))
        offset = end
    if offset != used:
        raise Corrupt(f"{thing}: its fields do not have the length that it states")
    check_zeros(raw, [(offset, MAC_OFFSET)], thing)
    return Header(
        copy=copy,
        raw=raw,
        version=version,
        second=second,
        sequence=int.from_bytes(raw[24:32], "big"),
        file_id=raw[32:48],
        page_size=page_size,
        state=state,
        generation=int.from_bytes(raw[56:60], "big"),
        birth=int.from_bytes(raw[60:68], "big"),
        rows=rows,
        protectors=protectors,
        older_id=older_id,
    )


def _parse_row(row: bytes, version: int, thing: str) -> DekRow:
    try:
        algorithm = Algorithm(row[8])
    except ValueError:
        raise Unsupported(f"{thing}: algorithm {row[8]} is not known") from None
    if version == 1 and algorithm not in FIRST_FOUR:
        raise Unsupported(f"{thing}: algorithm {row[8]} is reserved in version 1")
    if row[9] & ~7:
        raise Unsupported(f"{thing}: key flags {row[9]} are not known")
    check_zeros(row, [(10, 12), (44, 104 if row[9] & 1 else 44)], f"{thing}, a key's row")
    return DekRow(
        first_generation=int.from_bytes(row[0:4], "big"),
        last_generation=int.from_bytes(row[4:8], "big"),
        algorithm=algorithm,
        current=row[9] & 1 != 0,
        plain=row[9] & 2 != 0,
        older_id=row[9] & 4 != 0,
        commitment=row[12:44],
        wrapped=row[44:104],
    )


def choose_header(region: bytes, file_id: bytes | None) -> Header:
    """The whole copy with the higher sequence; with a file id, only of that file.

    Raises what the first copy that cannot be used says if there is none.
    """
    headers, problems = [], []
    for copy, offset in enumerate(COPY_OFFSETS):
        try:
            header = parse_header(region[offset : offset + COPY_BYTES], copy)
        except Corrupt as problem:
            problems.append(problem)
            continue
        if file_id is not None and file_id not in (header.file_id, header.older_id):
            problems.append(Corrupt(f"header copy {copy}: of another file than sector 0"))
        else:
            headers.append(header)
    if not headers:
        raise problems[0]
    return max(headers, key=lambda header: header.sequence)
