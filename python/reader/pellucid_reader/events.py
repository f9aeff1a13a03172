"""The event log and its chain (docs/format.md, "Event log"): whether each line stands as and where it was written."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import dataclass

from .errors import Corrupt, Unauthentic
from .unit import hkdf

MEMORY_BYTES = 80
MAC = re.compile(rb',"mac":"([0-9a-f]{64})"}\Z')
CHAINED = b',"mac":"'


class Edited(Unauthentic):
    """Names the first line that is not right, counted from 1."""

    def __init__(self, line: int, what: str):
        super().__init__(f"event log, line {line}: {what}")
        self.line = line


@dataclass(frozen=True)
class Memory:
    """What the keyring holds of a log."""

    key: bytes
    number: int
    hash: bytes


def parse_memory(content: bytes) -> Memory:
    if len(content) != MEMORY_BYTES:
        raise Corrupt("keyring/events: its fields do not fit")
    key = hkdf(content[:32], b"", b"pellucid/1 event log")
    return Memory(key, int.from_bytes(content[32:40], "big"), content[48:])


def check_events(log: bytes, memory: Memory) -> int:
    """The number of the last line. Raises Edited."""
    lines = log.splitlines(keepends=True) if b"\r" not in log else re.findall(rb"[^\n]*\n|[^\n]+\Z", log)
    at, last, stray, place, known = 0, b"", 0, 0, not memory.number
    last_end = 0
    for place, line in enumerate(lines, 1):
        begin, whole = at, line.endswith(b"\n")
        at += len(line)
        facts = _authentic(line.rstrip(b"\n"), memory.key)
        if facts is None:
            if not whole:
                continue  # its writer did not finish it
            if last:
                stray = stray or place
            elif CHAINED in line:
                raise Edited(place, "its MAC does not match")
            continue
        before = log[last_end:begin]
        if facts.get("begins"):
            if facts["prev"] != hashlib.sha256(log[:begin]).hexdigest():
                raise Edited(place, "what stood before it was changed")
        elif not last:
            raise Edited(place, "the chain does not begin where it began")
        elif int(facts.get("unfinished_bytes", 0)) != len(before):
            raise Edited(stray or place, "it does not follow the line before")
        else:
            expected = hashlib.sha256(last).digest()
            if before:
                expected = hashlib.sha256(expected + before).digest()
            if facts["prev"] != expected.hex() or facts["seq"] != number + 1:
                raise Edited(place, "it does not follow the line before")
        number, stray, last_end = facts["seq"], 0, at
        last = line if whole else line + b"\n"
        if number == memory.number:
            if hashlib.sha256(last).digest() != memory.hash:
                raise Edited(place, "it is another line than the keyring holds")
            known = True
    if stray:
        raise Edited(stray, "it has no MAC and stands behind the beginning of the chain")
    if not known:
        raise Edited(place + 1, f"the log ends before line number {memory.number}, which the keyring holds")
    return number if last else 0


def _authentic(line: bytes, key: bytes) -> dict | None:
    found = MAC.search(line)
    if not found:
        return None
    if not hmac.compare_digest(hmac.digest(key, line[: found.start()], "sha256").hex().encode(), found[1]):
        return None
    facts = json.loads(line)
    return facts if isinstance(facts.get("seq"), int) and isinstance(facts.get("prev"), str) else None
