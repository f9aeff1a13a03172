"""Sealed units: derivations, algorithms, AAD (docs/format.md, "Algorithms" to "Sealed unit").

Opens only. Who calls says at which place a unit lies; a unit from anywhere else does not open.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:  # cryptography before 43
    from cryptography.hazmat.primitives.ciphers.algorithms import TripleDES

from .aegis import open_aegis
from .errors import Unauthentic

TAIL_BYTES = 32


class Algorithm(IntEnum):
    AES_128 = 1
    AES_192 = 2
    AES_256 = 3
    TRIPLE_DES_3KEY = 4
    AEGIS_256 = 5

    @property
    def key_bytes(self) -> int:
        return {1: 16, 2: 24, 3: 32, 4: 32, 5: 32}[self]


# What containers of version 1 and backup sets may have.
FIRST_FOUR = (Algorithm.AES_128, Algorithm.AES_192, Algorithm.AES_256, Algorithm.TRIPLE_DES_3KEY)


class FileKind(IntEnum):
    DATABASE = 1
    WAL = 2
    JOURNAL = 3
    TEMPORARY = 4


def hkdf(key: bytes, salt: bytes, info: bytes, length: int = 32) -> bytes:
    """HKDF-SHA256."""
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(key)


def generation_key(dek: bytes, file_id: bytes, generation: int, algorithm: Algorithm, kind: FileKind) -> bytes:
    info = b"pellucid/1 unit" + generation.to_bytes(4, "big") + bytes([algorithm, kind])
    return hkdf(dek, file_id, info, algorithm.key_bytes)


def plain_key(dek: bytes, file_id: bytes, generation: int, kind: FileKind) -> bytes:
    """The key of the tags over units that are not sealed."""
    info = b"pellucid/1 plain" + generation.to_bytes(4, "big") + bytes([Algorithm.AES_256, kind])
    return hkdf(dek, file_id, info)


def commitment(dek: bytes, file_id: bytes) -> bytes:
    """The key commitment: no other DEK has it."""
    return hkdf(dek, file_id, b"pellucid/1 commitment")


def associated_data(
    kind: FileKind, generation: int, file_id: bytes, position: int, extra: bytes = b"", run: bytes = b""
) -> bytes:
    """`run` is what ties a frame of version 2 to its log."""
    return (
        bytes([2 if run else 1, kind, 0, 0])
        + generation.to_bytes(4, "big")
        + file_id
        + position.to_bytes(8, "big")
        + extra.ljust(20, b"\0")
        + run
    )


def open_unit(algorithm: Algorithm, key: bytes, aad: bytes, unit: bytes) -> bytes | None:
    """The plaintext, or None if the tag does not match."""
    ciphertext, tail = unit[:-TAIL_BYTES], unit[-TAIL_BYTES:]
    nonce, tag = tail[:12], tail[16:]
    if algorithm == Algorithm.TRIPLE_DES_3KEY:
        return _open_triple_des(key, nonce, aad, ciphertext, tag)
    if algorithm == Algorithm.AEGIS_256:
        # The tail's nonce and generation; kind and position, which the AAD has as well.
        place = tail[:16] + aad[1:2] + bytes(3) + aad[24:32] + bytes(4)
        return open_aegis(key, place, aad, ciphertext, tag)
    try:
        return AESGCM(key).decrypt(nonce, ciphertext + tag, aad)
    except InvalidTag:
        return None


def open_plain_unit(key: bytes, aad: bytes, unit: bytes) -> bytes | None:
    """The content of a unit that is not sealed, or None if the tag does not match."""
    content, tail = unit[:-TAIL_BYTES], unit[-TAIL_BYTES:]
    try:
        AESGCM(key).decrypt(tail[:12], tail[16:], aad + content)
    except InvalidTag:
        return None
    return content


def _open_triple_des(key: bytes, nonce: bytes, aad: bytes, ciphertext: bytes, tag: bytes) -> bytes | None:
    derived = HKDFExpand(algorithm=hashes.SHA256(), length=64, info=b"pellucid/1 triple-des" + nonce).derive(key)
    cipher_key, iv, mac_key = derived[:24], derived[24:32], derived[32:]
    summed = hmac.digest(mac_key, len(aad).to_bytes(8, "big") + aad + ciphertext, "sha256")
    if not hmac.compare_digest(summed[:16], tag):
        return None
    whole = len(ciphertext) // 8 * 8
    cbc = Cipher(TripleDES(cipher_key), modes.CBC(iv)).decryptor()
    plaintext = cbc.update(ciphertext[:whole]) + cbc.finalize()
    if whole < len(ciphertext):
        # One block under CBC with an iv of zeros is that block encrypted. No unit is shorter than a block.
        one = Cipher(TripleDES(cipher_key), modes.CBC(bytes(8))).encryptor()
        stream = one.update(ciphertext[whole - 8 : whole]) + one.finalize()
        plaintext += bytes(a ^ b for a, b in zip(ciphertext[whole:], stream))
    return plaintext


@dataclass(frozen=True)
class Dek:
    """A data encryption key and the generations it is for."""

    first_generation: int
    last_generation: int
    algorithm: Algorithm
    key: bytes = field(repr=False)
    plain: bool = False
    file_id: bytes | None = None  # of an older one, if that is another than the container's


@dataclass
class Opener:
    """Opens the units of one container: of its database, its WAL and its journal."""

    file_id: bytes
    current_generation: int
    deks: Sequence[Dek]
    _keys: dict[tuple[int, int], tuple[Dek, bytes]] = field(default_factory=dict, repr=False)

    def open(self, kind: FileKind, unit: bytes, position: int, extra: bytes, thing: str, run: bytes = b"") -> bytes:
        """The plaintext; `thing` names the unit in the message."""
        generation = int.from_bytes(unit[-20:-16], "big")
        dek, key = self._key(kind, generation, thing)
        aad = associated_data(kind, generation, dek.file_id or self.file_id, position, extra, run)
        plaintext = open_plain_unit(key, aad, unit) if dek.plain else open_unit(dek.algorithm, key, aad, unit)
        if plaintext is None:
            raise Unauthentic(f"{thing}: authentication tag does not match")
        return plaintext

    def _key(self, kind: FileKind, generation: int, thing: str) -> tuple[Dek, bytes]:
        found = self._keys.get((kind, generation))
        if found:
            return found
        # The current DEK's row ends at 2^32 - 1; what has been sealed ends at the current generation.
        if 1 <= generation <= self.current_generation:
            for dek in self.deks:
                if dek.first_generation <= generation <= dek.last_generation:
                    file_id = dek.file_id or self.file_id
                    if dek.plain:
                        key = plain_key(dek.key, file_id, generation, kind)
                    else:
                        key = generation_key(dek.key, file_id, generation, dek.algorithm, kind)
                    return self._keys.setdefault((kind, generation), (dek, key))
        raise Unauthentic(f"{thing}: sealed under generation {generation}, which the header does not list")
