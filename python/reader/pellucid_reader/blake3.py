"""BLAKE3 without a key (the BLAKE3 paper, section 2): the module of that name where it is installed, else this one.

About 100 KiB a second. Hashes only; media are read by it, nothing is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

CHUNK_BYTES, BLOCK_BYTES = 1024, 64
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
_MASK = 0xFFFFFFFF
_IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
_PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_COLUMNS_AND_DIAGONALS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def _schedule() -> list[list[int]]:
    """Which message word goes where, for each of the seven rounds."""
    rounds = [list(range(16))]
    while len(rounds) < 7:
        rounds.append([rounds[-1][place] for place in _PERMUTATION])
    return rounds


_ROUNDS = _schedule()


def _compress(cv: tuple[int, ...], block: bytes, counter: int, length: int, flags: int) -> tuple[int, ...]:
    words = struct.unpack("<16I", block.ljust(BLOCK_BYTES, b"\0"))
    v = [*cv, *_IV[:4], counter & _MASK, counter >> 32, length, flags]
    for order in _ROUNDS:
        at = 0
        for a, b, c, d in _COLUMNS_AND_DIAGONALS:
            va, vb, vc, vd = v[a], v[b], v[c], v[d]
            va = (va + vb + words[order[at]]) & _MASK
            vd ^= va
            vd = (vd >> 16 | vd << 16) & _MASK
            vc = (vc + vd) & _MASK
            vb ^= vc
            vb = (vb >> 12 | vb << 20) & _MASK
            va = (va + vb + words[order[at + 1]]) & _MASK
            vd ^= va
            vd = (vd >> 8 | vd << 24) & _MASK
            vc = (vc + vd) & _MASK
            vb ^= vc
            v[a], v[b], v[c], v[d] = va, (vb >> 7 | vb << 25) & _MASK, vc, vd
            at += 2
    return tuple(v[at] ^ v[at + 8] for at in range(8))


def _chunk(chunk: bytes, counter: int, root: int) -> tuple[int, ...]:
    cv = _IV
    blocks = range(0, max(len(chunk), 1), BLOCK_BYTES)
    for at in blocks:
        block = chunk[at : at + BLOCK_BYTES]
        last = at == blocks[-1]
        flags = (CHUNK_START if at == 0 else 0) | (CHUNK_END | root if last else 0)
        cv = _compress(cv, block, counter, len(block), flags)
    return cv


def _tree(data: bytes, first: int, root: int) -> tuple[int, ...]:
    if len(data) <= CHUNK_BYTES:
        return _chunk(data, first, root)
    # The left side is the largest power of two of chunks that leaves something for the right one.
    chunks = 1 << ((len(data) - 1) // CHUNK_BYTES).bit_length() - 1
    left, right = data[: chunks * CHUNK_BYTES], data[chunks * CHUNK_BYTES :]
    both = struct.pack("<16I", *_tree(left, first, 0), *_tree(right, first + chunks, 0))
    return _compress(_IV, both, 0, BLOCK_BYTES, PARENT | root)


def _own(data: bytes) -> bytes:
    return struct.pack("<8I", *_tree(data, 0, ROOT))


try:
    from blake3 import blake3 as _installed
except ImportError:
    _installed = None


def blake3(parts: Iterable[bytes]) -> bytes:
    """The 32 bytes of the parts, joined."""
    data = b"".join(parts)
    return _installed(data).digest() if _installed else _own(data)
