"""Argon2id, version 0x13 (RFC 9106): from `cryptography` where it has it, else in Python, slowly.

Not constant in time, and no memory is wiped: a reader's own machine is trusted.
"""

from __future__ import annotations

import struct
from hashlib import blake2b

MASK_32 = (1 << 32) - 1
MASK_64 = (1 << 64) - 1
SLICES = 4
BLOCK = struct.Struct("<128Q")
ZERO_BLOCK = (0,) * 128


def derive(password: bytes, salt: bytes, memory_kib: int, passes: int, lanes: int) -> bytes:
    """The 32-byte tag."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
    except ImportError:  # cryptography before 44
        return in_python(password, salt, memory_kib, passes, lanes)
    try:
        native = Argon2id(salt=salt, length=32, iterations=passes, lanes=lanes, memory_cost=memory_kib)
    except UnsupportedAlgorithm:  # its OpenSSL is older than 3.2
        return in_python(password, salt, memory_kib, passes, lanes)
    return native.derive(password)


def in_python(
    password: bytes,
    salt: bytes,
    memory_kib: int,
    passes: int,
    lanes: int,
    length: int = 32,
    secret: bytes = b"",
    associated: bytes = b"",
) -> bytes:
    """RFC 9106, 3.2; about a sixth of a millisecond for each KiB of each pass."""
    numbers = struct.pack("<6I", lanes, length, memory_kib, passes, 0x13, 2)
    inputs = b"".join(_le32(len(part)) + part for part in (password, salt, secret, associated))
    h0 = blake2b(numbers + inputs).digest()

    segment = memory_kib // (SLICES * lanes)
    columns = SLICES * segment
    # Packed, because a list of 128 integers takes five times the memory.
    memory = [[b""] * columns for _ in range(lanes)]
    for lane in range(lanes):
        for column in (0, 1):
            memory[lane][column] = _hash(h0 + _le32(column) + _le32(lane), 1024)

    for pass_ in range(passes):
        for slice_ in range(SLICES):
            for lane in range(lanes):
                _fill_segment(memory, pass_, slice_, lane, passes)

    last = ZERO_BLOCK
    for row in memory:
        last = tuple(a ^ b for a, b in zip(last, BLOCK.unpack(row[-1])))
    return _hash(BLOCK.pack(*last), length)


def _fill_segment(memory: list[list[bytes]], pass_: int, slice_: int, lane: int, passes: int) -> None:
    lanes, columns = len(memory), len(memory[0])
    segment = columns // SLICES
    row = memory[lane]
    independent = pass_ == 0 and slice_ < SLICES // 2  # what makes it Argon2*id*: 3.4.1.3
    first = 2 if pass_ == 0 and slice_ == 0 else 0
    addresses: tuple[int, ...] = ZERO_BLOCK
    previous = BLOCK.unpack(row[slice_ * segment + first - 1])
    for index in range(first, segment):
        if independent:
            if index == first or index % 128 == 0:
                counter = index // 128 + 1
                seed = (pass_, lane, slice_, lanes * columns, passes, 2, counter) + (0,) * 121
                addresses = _compress(ZERO_BLOCK, _compress(ZERO_BLOCK, seed))
            pseudorandom = addresses[index % 128]
        else:
            pseudorandom = previous[0]
        j1, j2 = pseudorandom & MASK_32, pseudorandom >> 32

        # 3.4.2: which blocks may be referred to, and which of them is.
        other = lane if pass_ == 0 and slice_ == 0 else j2 % lanes
        finished = slice_ * segment if pass_ == 0 else columns - segment
        if other == lane:
            area = finished + index - 1
        else:
            area = finished - (1 if index == 0 else 0)
        distance = area * (j1 * j1 >> 32) >> 32
        start = 0 if pass_ == 0 else (slice_ + 1) * segment
        reference = BLOCK.unpack(memory[other][(start + area - 1 - distance) % columns])

        column = slice_ * segment + index
        block = _compress(previous, reference)
        if pass_ > 0:
            block = tuple(a ^ b for a, b in zip(block, BLOCK.unpack(row[column])))
        row[column] = BLOCK.pack(*block)
        previous = block


def _quarters() -> list[tuple[int, int, int, int]]:
    """The words each GB works on, in order: P over the 8 rows, then over the 8 columns (3.5, 3.6)."""
    rows = [[16 * i + k for k in range(16)] for i in range(8)]
    columns = [[2 * i + 16 * k + e for k in range(8) for e in (0, 1)] for i in range(8)]
    rounds = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    rounds += [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    return [(w[a], w[b], w[c], w[d]) for w in rows + columns for a, b, c, d in rounds]


QUARTERS = _quarters()


def _compress(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """G of 3.5. Written out, because nearly all the time is spent here."""
    r = [p ^ q for p, q in zip(x, y)]
    v = r[:]
    low, all_ = MASK_32, MASK_64
    for i, j, k, m in QUARTERS:
        a, b, c, d = v[i], v[j], v[k], v[m]
        a = (a + b + 2 * (a & low) * (b & low)) & all_
        d ^= a
        d = d >> 32 | (d & low) << 32
        c = (c + d + 2 * (c & low) * (d & low)) & all_
        b ^= c
        b = b >> 24 | (b << 40) & all_
        a = (a + b + 2 * (a & low) * (b & low)) & all_
        d ^= a
        d = d >> 16 | (d << 48) & all_
        c = (c + d + 2 * (c & low) * (d & low)) & all_
        b ^= c
        b = b >> 63 | (b << 1) & all_
        v[i], v[j], v[k], v[m] = a, b, c, d
    return tuple([p ^ q for p, q in zip(r, v)])


def _hash(data: bytes, length: int) -> bytes:
    """H' of 3.3: BLAKE2b of any length."""
    data = _le32(length) + data
    if length <= 64:
        return blake2b(data, digest_size=length).digest()
    out = b""
    value = blake2b(data).digest()
    while length - len(out) > 64:
        out += value[:32]
        rest = length - len(out)
        value = blake2b(value, digest_size=min(rest, 64)).digest()
    return out + value


def _le32(number: int) -> bytes:
    return struct.pack("<I", number)
