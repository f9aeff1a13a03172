"""What a chunk is compressed by: Zstandard frames (RFC 8878) and LZ4 blocks.

LZ4 blocks are read here. Zstandard is left to the module `zstandard`, or to the program `zstd`.
"""

from __future__ import annotations

import shutil
import subprocess

from .errors import Corrupt, Unsupported

RAW, ZSTD, LZ4 = 0, 1, 2


def decompress(form: int, stored: bytes, length: int, thing: str) -> bytes:
    """The content; `length` is what comes out of it."""
    if form == RAW:
        content = stored
    elif form == ZSTD:
        content = _zstd(stored, length)
    else:
        content = _lz4(stored, length)
    if len(content) != length:
        raise Corrupt(f"{thing}: it cannot be decompressed")
    return content


def _zstd(frame: bytes, length: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        program = shutil.which("zstd")
        if program is None:
            raise Unsupported("Zstandard: neither the module `zstandard` nor the program `zstd` is there") from None
        done = subprocess.run([program, "-dcq"], input=frame, capture_output=True)
        return done.stdout if done.returncode == 0 else b""
    try:
        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=length)
    except zstandard.ZstdError:
        return b""


def _lz4(block: bytes, length: int) -> bytes:
    """An LZ4 block (lz4_Block_format.md): literals, then a match, over and over; the last one has literals only."""
    out = bytearray()
    at = 0
    try:
        while at < len(block):
            token = block[at]
            literals, at = _length(block, at + 1, token >> 4)
            if at + literals > len(block):
                return b""
            out += block[at : at + literals]
            at += literals
            if at == len(block):
                return bytes(out)
            distance = block[at] | block[at + 1] << 8
            match, at = _length(block, at + 2, token & 15)
            if not 0 < distance <= len(out) or len(out) + match + 4 > length:
                return b""
            for _ in range(match + 4):  # it may overlap what it makes
                out.append(out[-distance])
    except IndexError:
        return b""
    return b""


def _length(block: bytes, at: int, nibble: int) -> tuple[int, int]:
    """A length that begins in a token and where it ends."""
    if nibble == 15:
        while True:
            nibble += block[at]
            at += 1
            if block[at - 1] != 255:
                break
    return nibble, at
