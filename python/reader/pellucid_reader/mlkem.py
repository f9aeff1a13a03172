"""ML-KEM-768 (FIPS 203): decapsulation with an expanded private key, and what the tests need to make a ciphertext.

In plain Python, because the module `cryptography` takes seeds and not expanded keys, and older ones have no ML-KEM. It is not
constant in time: a reader is for files at rest.
"""

from __future__ import annotations

import hashlib
import hmac

Q, N, K, ETA = 3329, 256, 3, 2
DU, DV = 10, 4
PUBLIC_BYTES, PRIVATE_BYTES, CIPHERTEXT_BYTES = 1184, 2400, 1088

Polynomial = list[int]


def _reverse_7_bits(number: int) -> int:
    return int(f"{number:07b}"[::-1], 2)


ZETAS = [pow(17, _reverse_7_bits(at), Q) for at in range(128)]
GAMMAS = [pow(17, 2 * _reverse_7_bits(at) + 1, Q) for at in range(128)]


def decapsulate(private_key: bytes, ciphertext: bytes) -> bytes:
    """The shared secret (algorithm 18). A ciphertext of another key gives another secret and no error."""
    if len(private_key) != PRIVATE_BYTES or len(ciphertext) != CIPHERTEXT_BYTES:
        raise ValueError("not of ML-KEM-768")
    decryption_key, public_key = private_key[: 384 * K], private_key[384 * K : 768 * K + 32]
    public_hash, z = private_key[768 * K + 32 : 768 * K + 64], private_key[768 * K + 64 :]
    if hashlib.sha3_256(public_key).digest() != public_hash:
        raise ValueError("the private key is damaged")
    message = _decrypt(decryption_key, ciphertext)
    both = hashlib.sha3_512(message + public_hash).digest()
    secret, randomness = both[:32], both[32:]
    rejected = hashlib.shake_256(z + ciphertext).digest(32)
    return secret if hmac.compare_digest(_encrypt(public_key, message, randomness), ciphertext) else rejected


def public_of(private_key: bytes) -> bytes:
    """The public half that an expanded private key contains."""
    return private_key[384 * K : 768 * K + 32]


def encapsulate(public_key: bytes, message: bytes) -> tuple[bytes, bytes]:
    """Secret and ciphertext of the 32 random bytes `message` (algorithm 17)."""
    both = hashlib.sha3_512(message + hashlib.sha3_256(public_key).digest()).digest()
    return both[:32], _encrypt(public_key, message, both[32:])


def _decrypt(key: bytes, ciphertext: bytes) -> bytes:
    """Algorithm 15."""
    bytes_u = 32 * DU
    u = [_decompress(_decode(ciphertext[bytes_u * at : bytes_u * (at + 1)], DU), DU) for at in range(K)]
    v = _decompress(_decode(ciphertext[bytes_u * K :], DV), DV)
    secret = [_decode(key[384 * at : 384 * (at + 1)], 12) for at in range(K)]
    product = _inverse_ntt(_dot(secret, [_ntt(one) for one in u]))
    return _encode(_compress([(a - b) % Q for a, b in zip(v, product)], 1), 1)


def _encrypt(public_key: bytes, message: bytes, randomness: bytes) -> bytes:
    """Algorithm 14."""
    t = [[number % Q for number in _decode(public_key[384 * at : 384 * (at + 1)], 12)] for at in range(K)]
    rho = public_key[384 * K :]
    noise = [_noise(randomness, at) for at in range(2 * K + 1)]
    r = [_ntt(one) for one in noise[:K]]
    columns = [[_sample(rho + bytes([column, row])) for row in range(K)] for column in range(K)]
    u = [_add(_inverse_ntt(_dot(columns[at], r)), noise[K + at]) for at in range(K)]
    v = _add(_add(_inverse_ntt(_dot(t, r)), noise[2 * K]), _decompress(_decode(message, 1), 1))
    return b"".join(_encode(_compress(one, DU), DU) for one in u) + _encode(_compress(v, DV), DV)


def _noise(randomness: bytes, number: int) -> Polynomial:
    """Algorithm 8, of eta 2."""
    bits = _decode(hashlib.shake_256(randomness + bytes([number])).digest(64 * ETA), 1)
    return [(sum(bits[4 * at : 4 * at + 2]) - sum(bits[4 * at + 2 : 4 * at + 4])) % Q for at in range(N)]


def _sample(seed: bytes) -> Polynomial:
    """Algorithm 7. The seed ends with column and row of the entry of the matrix."""
    stream = hashlib.shake_128(seed).digest(3 * 1024)  # of 2,048 candidates 81 % are below q
    found: Polynomial = []
    for at in range(0, len(stream), 3):
        low, middle, high = stream[at : at + 3]
        found += [one for one in (low + 256 * (middle % 16), middle // 16 + 16 * high) if one < Q]
        if len(found) >= N:
            break
    return found[:N]


def _ntt(polynomial: Polynomial) -> Polynomial:
    """Algorithm 9."""
    f, at, length = list(polynomial), 1, 128
    while length >= 2:
        for start in range(0, N, 2 * length):
            zeta, at = ZETAS[at], at + 1
            for j in range(start, start + length):
                product = zeta * f[j + length] % Q
                f[j], f[j + length] = (f[j] + product) % Q, (f[j] - product) % Q
        length //= 2
    return f


def _inverse_ntt(polynomial: Polynomial) -> Polynomial:
    """Algorithm 10."""
    f, at, length = list(polynomial), 127, 2
    while length <= 128:
        for start in range(0, N, 2 * length):
            zeta, at = ZETAS[at], at - 1
            for j in range(start, start + length):
                sum_, difference = f[j] + f[j + length], f[j + length] - f[j]
                f[j], f[j + length] = sum_ % Q, zeta * difference % Q
        length *= 2
    return [number * 3303 % Q for number in f]


def _dot(left: list[Polynomial], right: list[Polynomial]) -> Polynomial:
    """The sum of products in the NTT domain (algorithms 11 and 12)."""
    out = [0] * N
    for f, g in zip(left, right):
        for at in range(128):
            a0, a1, b0, b1 = f[2 * at], f[2 * at + 1], g[2 * at], g[2 * at + 1]
            out[2 * at] = (out[2 * at] + a0 * b0 + a1 * b1 * GAMMAS[at]) % Q
            out[2 * at + 1] = (out[2 * at + 1] + a0 * b1 + a1 * b0) % Q
    return out


def _add(left: Polynomial, right: Polynomial) -> Polynomial:
    return [(a + b) % Q for a, b in zip(left, right)]


def _compress(polynomial: Polynomial, bits: int) -> Polynomial:
    return [((number << bits) + Q // 2) // Q % (1 << bits) for number in polynomial]


def _decompress(numbers: Polynomial, bits: int) -> Polynomial:
    return [(number * Q + (1 << (bits - 1))) >> bits for number in numbers]


def _encode(numbers: Polynomial, bits: int) -> bytes:
    """Algorithm 5."""
    whole = 0
    for at, number in enumerate(numbers):
        whole |= number << (bits * at)
    return whole.to_bytes(32 * bits, "little")


def _decode(raw: bytes, bits: int) -> Polynomial:
    """Algorithm 6."""
    whole, mask = int.from_bytes(raw, "little"), (1 << bits) - 1
    return [whole >> (bits * at) & mask for at in range(len(raw) * 8 // bits)]
