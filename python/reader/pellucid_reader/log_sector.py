"""Sector 2 of a container of version 2: what it knows of the log (docs/format.md, "Sector 2 of version 2")."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from .errors import Unauthentic, Unsupported
from .unit import Opener, hkdf

OFFSET = 1024
BYTES = 128
MAC_OFFSET = 96


@dataclass(frozen=True)
class LogSector:
    generation: int
    recoveries: int
    reserved: int
    counted: int
    under_way: bool
    has_ended: bool
    is_lost: bool
    run: bytes
    run_before: bytes
    ended: int
    epoch: int
    kept: int


def header_keys(opener: Opener) -> list[bytes]:
    """The header key of each DEK that the header lists."""
    return [hkdf(dek.key, dek.file_id or opener.file_id, b"pellucid/1 header") for dek in opener.deks]


def parse_log_sector(raw: bytes, keys: Iterable[bytes]) -> LogSector:
    signed = OFFSET.to_bytes(8, "big") + raw[:MAC_OFFSET]
    if not any(hmac.compare_digest(hmac.digest(key, signed, "sha256"), raw[MAC_OFFSET:BYTES]) for key in keys):
        raise Unauthentic("sector 2: authentication tag does not match")
    state = int.from_bytes(raw[28:32], "big")
    if state > 7:
        raise Unsupported(f"sector 2: state {state} of a log is not known")
    return LogSector(
        generation=int.from_bytes(raw[8:12], "big"),
        recoveries=int.from_bytes(raw[12:16], "big"),
        reserved=int.from_bytes(raw[16:24], "big"),
        counted=int.from_bytes(raw[24:28], "big"),
        under_way=state & 1 != 0,
        has_ended=state & 2 != 0,
        is_lost=state & 4 != 0,
        run=raw[32:56],
        run_before=raw[56:80],
        ended=int.from_bytes(raw[80:88], "big"),
        epoch=int.from_bytes(raw[88:92], "big"),
        kept=int.from_bytes(raw[92:96], "big"),
    )
