"""AEGIS-256X4 (draft-irtf-cfrg-aegis-aead, "The AEGIS-256X Algorithm", degree 4), opening alone.

Written from the draft and slow: some milliseconds for a page. Not in constant time; a reader of one's own files needs none.
"""

from __future__ import annotations

import hmac

DEGREE = 4
RATE_BYTES = 16 * DEGREE
_C0 = int.from_bytes(bytes.fromhex("000101020305080d1522375990e97962"), "big")
_C1 = int.from_bytes(bytes.fromhex("db3d18556dc22ff12011314273b528dd"), "big")
_CONTEXT = [int.from_bytes(bytes([lane, DEGREE - 1]).ljust(16, b"\0"), "big") for lane in range(DEGREE)]
_WORD = 0xFFFFFFFF

Blocks = list[int]  # one block of 128 bits for each lane


def _double(byte: int) -> int:
    return (byte << 1) ^ (0x11B if byte & 0x80 else 0)


def _tables() -> list[list[int]]:
    """For each row of the AES state, what a byte of it adds to its column after SubBytes and MixColumns (FIPS 197)."""
    boxes, value, inverse = [0x63] * 256, 1, 1
    while True:
        # `value` runs through the powers of 3, `inverse` through those of its inverse, 0xf6.
        value ^= _double(value)
        inverse ^= inverse << 1
        inverse ^= inverse << 2
        inverse ^= inverse << 4
        inverse &= 0xFF
        if inverse & 0x80:
            inverse ^= 0x09
        turned = inverse
        for _ in range(4):
            inverse_turned = ((turned << 1) | (turned >> 7)) & 0xFF
            turned = inverse_turned
            boxes[value] ^= turned
        boxes[value] ^= inverse
        if value == 1:
            break
    first = []
    for box in boxes:
        twice = _double(box)
        first.append(twice << 24 | box << 16 | box << 8 | twice ^ box)
    return [[(word >> 8 * row | word << (32 - 8 * row)) & _WORD for word in first] for row in range(4)]


_T0, _T1, _T2, _T3 = _tables()


def _round(block: int, key: int) -> int:
    """One AES encryption round: SubBytes, ShiftRows, MixColumns, AddRoundKey."""
    a, b, c, d = block >> 96, block >> 64 & _WORD, block >> 32 & _WORD, block & _WORD
    return key ^ (
        (_T0[a >> 24] ^ _T1[b >> 16 & 255] ^ _T2[c >> 8 & 255] ^ _T3[d & 255]) << 96
        | (_T0[b >> 24] ^ _T1[c >> 16 & 255] ^ _T2[d >> 8 & 255] ^ _T3[a & 255]) << 64
        | (_T0[c >> 24] ^ _T1[d >> 16 & 255] ^ _T2[a >> 8 & 255] ^ _T3[b & 255]) << 32
        | (_T0[d >> 24] ^ _T1[a >> 16 & 255] ^ _T2[b >> 8 & 255] ^ _T3[c & 255])
    )


def _blocks(rate: bytes) -> Blocks:
    return [int.from_bytes(rate[at : at + 16], "big") for at in range(0, RATE_BYTES, 16)]


class _State:
    """Six blocks in each lane: `rows[row][lane]`."""

    def __init__(self, key: bytes, nonce: bytes):
        k0, k1 = int.from_bytes(key[:16], "big"), int.from_bytes(key[16:], "big")
        n0, n1 = int.from_bytes(nonce[:16], "big"), int.from_bytes(nonce[16:], "big")
        self.rows = [[block] * DEGREE for block in (k0 ^ n0, k1 ^ n1, _C1, _C0, k0 ^ _C0, k1 ^ _C1)]
        for block in [k0, k1, k0 ^ n0, k1 ^ n1] * 4:
            for row in (3, 5):
                self.rows[row] = [a ^ b for a, b in zip(self.rows[row], _CONTEXT)]
            self.update([block] * DEGREE)

    def update(self, message: Blocks) -> None:
        s0, s1, s2, s3, s4, s5 = self.rows
        first = [_round(last, own ^ m) for last, own, m in zip(s5, s0, message)]
        pairs = ((s0, s1), (s1, s2), (s2, s3), (s3, s4), (s4, s5))
        self.rows = [first] + [[_round(before, own) for before, own in zip(*pair)] for pair in pairs]

    def stream(self) -> Blocks:
        _, s1, s2, s3, s4, s5 = self.rows
        return [a ^ d ^ e ^ (b & c) for a, b, c, d, e in zip(s1, s2, s3, s4, s5)]

    def tag(self, aad_bytes: int, message_bytes: int) -> bytes:
        lengths = int.from_bytes(
            (aad_bytes * 8).to_bytes(8, "little") + (message_bytes * 8).to_bytes(8, "little"), "big"
        )
        last = [block ^ lengths for block in self.rows[3]]
        for _ in range(7):
            self.update(last)
        tag = 0
        for row in self.rows:
            for block in row:
                tag ^= block
        return tag.to_bytes(16, "big")


def open_aegis(key: bytes, nonce: bytes, aad: bytes, ciphertext: bytes, tag: bytes) -> bytes | None:
    """The plaintext, or None if the tag does not match."""
    state = _State(key, nonce)
    for at in range(0, len(aad), RATE_BYTES):
        state.update(_blocks(aad[at : at + RATE_BYTES].ljust(RATE_BYTES, b"\0")))
    plaintext = bytearray()
    for at in range(0, len(ciphertext), RATE_BYTES):
        part = ciphertext[at : at + RATE_BYTES]
        stream = b"".join(block.to_bytes(16, "big") for block in state.stream())
        opened = bytes(a ^ b for a, b in zip(part, stream))
        state.update(_blocks(opened.ljust(RATE_BYTES, b"\0")))
        plaintext += opened
    if not hmac.compare_digest(state.tag(len(aad), len(ciphertext)), tag):
        return None
    return bytes(plaintext)
