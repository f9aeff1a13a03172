"""A bundle: an instance in one sealed file (docs/format.md, "Bundle")."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import IntEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .errors import Corrupt, MissingKey, ReaderError, Unauthentic, Unsupported
from .keyring import NAME, has_companion, parse_certificate
from .protector import PURPOSE_BUNDLE, Certificate, KeysAtHand, parse_protector, unwrap_key
from .unit import Algorithm, hkdf

MAGIC = b"Pellucid bundle\0"
VERSION, KIND_HYBRID = 1, 5
PROTECTOR_OFFSET = 76
BYTES_MAX = 67108864


class EntryKind(IntEnum):
    MASTER_KEY = 1
    PASSWORD = 2
    CERTIFICATE = 3
    DATABASE = 4


@dataclass(frozen=True)
class Bundle:
    made: int
    entries: dict[tuple[EntryKind, str], bytes]

    def find_certificate(self, thumbprint: bytes) -> Certificate:
        problem: ReaderError | None = None
        for (kind, _), content in self.entries.items():
            if kind != EntryKind.CERTIFICATE:
                continue
            try:
                certificate = parse_certificate(content)
            except ReaderError as found:  # one without its private key
                problem = problem or found
                continue
            if hmac.compare_digest(certificate.thumbprint, thumbprint):
                return certificate
        raise problem or MissingKey("is not in the bundle")


def open_bundle(raw: bytes, keys: KeysAtHand) -> Bundle:
    if not raw.startswith(MAGIC):
        raise ReaderError("this is not a bundle")
    body, tag_sum = raw[:-32], raw[-32:]
    if not PROTECTOR_OFFSET <= len(body) <= BYTES_MAX or hashlib.sha256(body).digest() != tag_sum:
        raise Corrupt("bundle: torn or damaged")
    version = int.from_bytes(body[16:18], "big")
    if version != VERSION:
        raise Unsupported(f"bundle: version {version} is newer than {VERSION}")
    bundle_id, committed = body[20:36], body[36:68]
    nonce_at = PROTECTOR_OFFSET + int.from_bytes(body[18:20], "big")
    wrapped = body[PROTECTOR_OFFSET:nonce_at]
    if nonce_at + 12 + 16 > len(body) or len(wrapped) < 4 or int.from_bytes(wrapped[2:4], "big") != len(wrapped) - 4:
        raise Corrupt("bundle: its fields run over its end")
    made = int.from_bytes(body[68:76], "big")
    key = unwrap_key([parse_protector(wrapped)], PURPOSE_BUNDLE, bundle_id, Algorithm.AES_256, committed, keys, made)
    content_at = nonce_at + 12
    try:
        content = AESGCM(hkdf(key, bundle_id, b"pellucid/1 bundle")).decrypt(
            body[nonce_at:content_at], body[content_at:], body[:content_at]
        )
    except InvalidTag:
        raise Unauthentic("bundle: its tag does not match") from None
    return Bundle(made, _parse(content))


def _parse(content: bytes) -> dict[tuple[EntryKind, str], bytes]:
    entries: dict[tuple[EntryKind, str], bytes] = {}
    rest = content
    while rest:
        if rest[0] not in (*EntryKind, KIND_HYBRID):
            raise Unsupported(f"bundle: entries of kind {rest[0]} are not known")
        hybrid = rest[0] == KIND_HYBRID
        kind = EntryKind.CERTIFICATE if hybrid else EntryKind(rest[0])
        begin = 2 + (rest[1] if len(rest) > 1 else 0) + 4
        end = begin + int.from_bytes(rest[begin - 4 : begin], "big")
        if len(rest) < max(begin, end):
            raise Corrupt("bundle: its entries do not fit")
        name, entry = rest[2 : begin - 4].decode("utf-8", "replace"), rest[begin:end]
        if hybrid != (kind == EntryKind.CERTIFICATE and has_companion(entry)):
            raise Corrupt("bundle: its entries do not fit")
        if (kind, name) in entries or not _fits(kind, name, entry):
            raise Corrupt("bundle: its entries do not fit")
        entries[kind, name] = entry
        rest = rest[end:]
    if (EntryKind.MASTER_KEY, "") not in entries:
        raise Corrupt("bundle: its entries do not fit")
    return entries


def _fits(kind: EntryKind, name: str, content: bytes) -> bool:
    if kind == EntryKind.MASTER_KEY:
        return name == "" and len(content) == 32
    if kind == EntryKind.PASSWORD:
        return re.fullmatch(r"0|[1-9][0-9]{0,9}", name) is not None and int(name) < 2**32
    if kind == EntryKind.CERTIFICATE:
        return NAME.fullmatch(name) is not None
    return re.fullmatch(r"[0-9a-f]{32}", name) is not None
