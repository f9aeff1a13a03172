"""Protectors: what wraps a DEK in the header, and the opening of it (docs/format.md, "Key envelopes")."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import argon2id, mlkem
from .errors import Corrupt, MissingKey, ReaderError, Unauthentic, Unsupported
from .unit import commitment, hkdf

if TYPE_CHECKING:
    from .header import Header

KEY_FILE, PASSPHRASE, CERTIFICATE, PROVIDER_KEY, HYBRID = 1, 2, 3, 4, 5
RECOVERY_FLAG = 1
PROVIDER_NAME, KEY_NAME = re.compile(rb"[a-z0-9-]{1,32}"), re.compile(rb"[\x20-\x7e]{1,512}")
NAME_BYTES_MAX = 252
MEMORY_KIB_MAX, PASSES_MAX, LANES_MAX = 1048576, 16, 16
# What is given to a file that is not authentic yet: to one derivation, and to all of one header in sum, times passes.
UNTRUSTED_KIB_MAX, UNTRUSTED_WORK_KIB_MAX = 262144, 1572864
PURPOSE_DATABASE, PURPOSE_BUNDLE = b"\1", b"\3"


@dataclass(frozen=True)
class Companion:
    """The ML-KEM-768 key beside a certificate's RSA key."""

    added: int
    key: bytes
    private_key: bytes = field(repr=False)

    @property
    def thumbprint(self) -> bytes:
        return hashlib.sha256(self.key).digest()


@dataclass(frozen=True)
class Certificate:
    """`certificate` is None for a provider key, which has none around it."""

    certificate: x509.Certificate | None
    private_key: rsa.RSAPrivateKey = field(repr=False)
    companion: Companion | None = None

    @property
    def thumbprint(self) -> bytes:
        if self.certificate is None:
            public_key = self.private_key.public_key()
            return hashlib.sha256(public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
        return hashlib.sha256(self.certificate.public_bytes(Encoding.DER)).digest()


def check_key_size(bits: int, thing: str) -> None:
    if not 2048 <= bits <= 4096:
        raise Unsupported(f"{thing}: an RSA key of {bits} bits; 2048 to 4096 are supported")


class NotGiven(MissingKey):
    """Names the key that a protector needs and that was not given."""


@dataclass
class KeysAtHand:
    """`find_certificate` takes a SHA-256 thumbprint; it raises MissingKey, or what is wrong with the keyring."""

    key_file: bytes | None = None
    passphrase: bytes | None = None
    find_certificate: Callable[[bytes], Certificate] | None = None
    allow_recovery: bool = False
    allow_cost: bool = False
    allow_classical: bool = False


@dataclass(frozen=True)
class Protector:
    type: int
    wrapped: bytes
    recovery: bool = False
    salt: bytes = b""
    memory_kib: int = 0
    passes: int = 0
    lanes: int = 0
    name: str = ""
    thumbprint: bytes = b""
    signature: bytes = b""
    place: bytes = b""
    # Of a hybrid certificate, whose `wrapped` is the RSA ciphertext.
    companion: bytes = b""
    ciphertext: bytes = b""
    wrapped_dek: bytes = b""
    before_signature: bytes = b""


def parse_protector(raw: bytes) -> Protector:
    """`raw` is all of one protector."""
    type_, flags, payload = raw[0], raw[1], raw[4:]
    certificate = type_ in (CERTIFICATE, PROVIDER_KEY, HYBRID)
    if type_ not in (KEY_FILE, PASSPHRASE) and not certificate:
        raise Unsupported(f"protector type {type_} is not known")
    if flags not in ((0, RECOVERY_FLAG) if type_ in (CERTIFICATE, HYBRID) else (0,)):
        raise Unsupported(f"protector flags {flags} are not known")
    if certificate:
        return _parse_certificate(type_, payload, flags == RECOVERY_FLAG)
    if len(payload) != (76 if type_ == KEY_FILE else 88):
        raise Corrupt("a protector's fields are malformed")
    if type_ == KEY_FILE:
        return Protector(type_, salt=payload[:16], wrapped=payload[16:])
    memory_kib, passes, lanes = (int.from_bytes(payload[at : at + 4], "big") for at in (0, 4, 8))
    return Protector(
        type_, memory_kib=memory_kib, passes=passes, lanes=lanes, salt=payload[12:28], wrapped=payload[28:]
    )


def _parse_certificate(type_: int, payload: bytes, recovery: bool) -> Protector:
    parts = _Parts(payload)
    name_bytes = parts.take(parts.number(1))
    thumbprint = parts.take(32)
    sizes = (32, mlkem.CIPHERTEXT_BYTES, 60) if type_ == HYBRID else (0, 0, 0)
    companion, ciphertext, wrapped_dek = map(parts.take, sizes)
    wrapped = parts.take(parts.number(2))
    before_signature = payload[: len(payload) - len(parts.rest)]
    signature = parts.take(parts.number(2))
    place = b""
    if type_ == PROVIDER_KEY:
        place, provider = parts.rest, parts.take(parts.number(1))
        key = parts.take(parts.number(2))
        if not PROVIDER_NAME.fullmatch(provider) or not KEY_NAME.fullmatch(key):
            raise Corrupt("a protector's fields are malformed")
    if parts.rest or len(name_bytes) > NAME_BYTES_MAX or (recovery and signature):
        raise Corrupt("a protector's fields are malformed")
    try:
        name = name_bytes.decode("utf-8")
    except UnicodeDecodeError:
        raise Corrupt("a protector's fields are malformed") from None
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise Corrupt("a protector's fields are malformed")
    return Protector(
        type_, wrapped, recovery, name=name, thumbprint=thumbprint, signature=signature, place=place,
        companion=companion, ciphertext=ciphertext, wrapped_dek=wrapped_dek, before_signature=before_signature,
    )


@dataclass
class _Parts:
    rest: bytes

    def take(self, length: int) -> bytes:
        if length > len(self.rest):
            raise Corrupt("a protector's fields are malformed")
        part, self.rest = self.rest[:length], self.rest[length:]
        return part

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "big")


def key_file_bytes(content: bytes) -> bytes:
    """The key in a key file."""
    if len(content) == 32:
        return content
    digits = content
    for line_end in (b"\r\n", b"\n"):
        if digits.endswith(line_end):
            digits = digits[: -len(line_end)]
            break
    if len(digits) == 64 and all(digit in b"0123456789abcdefABCDEF" for digit in digits):
        return bytes.fromhex(digits.decode("ascii"))
    raise MissingKey("key file: neither 32 bytes nor 64 hexadecimal digits")


def passphrase_bytes(content: bytes) -> bytes:
    """The passphrase in a passphrase file."""
    for line_end in (b"\r\n", b"\n"):
        if content.endswith(line_end):
            return content[: -len(line_end)]
    return content


def unwrap(header: Header, keys: KeysAtHand) -> bytes:
    """The current DEK. The header is not authentic yet: `Header.opener` says whether it is."""
    row = header.current_row
    return unwrap_key(header.protectors, PURPOSE_DATABASE, header.file_id, row.algorithm, row.commitment, keys)


def unwrap_key(
    protectors: Sequence[Protector],
    purpose: bytes,
    id_: bytes,
    algorithm: int,
    committed: bytes,
    keys: KeysAtHand,
    made: int = 0,
) -> bytes:
    """The key that one of the protectors opens; `id_` is the file's, set's or bundle's, which says it was `made` then."""
    binding = purpose + id_ + bytes([algorithm]) + committed
    reasons: list[str] = []
    ways: list[str] = []
    trouble: Unsupported | None = None
    work_kib = UNTRUSTED_WORK_KIB_MAX
    # In the order of their cost: a dear one that somebody put in keeps none of the others from opening.
    order = {KEY_FILE: 0, CERTIFICATE: 1, PROVIDER_KEY: 1, HYBRID: 1, PASSPHRASE: 2}
    for protector in sorted(protectors, key=lambda one: (order[one.type], one.memory_kib * one.passes)):
        try:
            if protector.type == PASSPHRASE and keys.passphrase is not None:
                check_cost(protector.memory_kib, protector.passes, protector.lanes, keys.allow_cost, work_kib)
                work_kib -= protector.memory_kib * protector.passes
            dek = _unwrap_one(protector, keys, binding, made)
        except NotGiven as way:
            ways.append(str(way))
            continue
        except MissingKey as reason:
            reasons.append(str(reason))
            continue
        except Unsupported as found:
            trouble = trouble or found
            continue
        if len(dek) != 32 or not hmac.compare_digest(commitment(dek, id_), committed):
            raise Unauthentic("a protector holds another key than the one the header commits to")
        return dek
    if trouble:
        raise trouble
    if not reasons and not ways:
        raise MissingKey("the header has no protector")
    text = "; ".join(reasons) or "no key for it"
    if ways:
        text += f". It {'also ' if reasons else ''}opens with {', or with '.join(ways)}."
    raise MissingKey(text)


def _unwrap_one(protector: Protector, keys: KeysAtHand, binding: bytes, made: int) -> bytes:
    """Raises MissingKey if the protector is to be passed over."""
    if protector.type in (CERTIFICATE, PROVIDER_KEY, HYBRID):
        return _unwrap_certificate(protector, keys, binding, made)
    if protector.type == KEY_FILE:
        if keys.key_file is None:
            raise NotGiven("a key file (`--key-file`)")
        kek = hkdf(key_file_bytes(keys.key_file), protector.salt, b"pellucid/1 key-file")
        wrong = "wrong key"
    else:
        if keys.passphrase is None:
            if binding[:1] == PURPOSE_BUNDLE:
                raise NotGiven("a password (`--password-file`)")
            raise NotGiven("a passphrase (`--passphrase-file`)")
        kek = _passphrase_kek(protector, passphrase_bytes(keys.passphrase))
        wrong = "wrong passphrase"
    aad = bytes([protector.type]) + binding
    try:
        return AESGCM(kek).decrypt(protector.wrapped[:12], protector.wrapped[12:], aad)
    except InvalidTag:
        raise MissingKey(wrong) from None


def check_cost(memory_kib: int, passes: int, lanes: int, allow_more: bool, work_kib: int = UNTRUSTED_WORK_KIB_MAX) -> None:
    """Before any work: nothing authenticates the cost. `work_kib` is what is left for the header."""
    if memory_kib > MEMORY_KIB_MAX:
        raise Unsupported(f"the passphrase asks for {memory_kib} KiB, more than {MEMORY_KIB_MAX}")
    if not 1 <= passes <= PASSES_MAX:
        raise Unsupported(f"{passes} passes of Argon2id")
    if not 1 <= lanes <= LANES_MAX:
        raise Unsupported(f"{lanes} lanes of Argon2id")
    if memory_kib < 8 * lanes:
        raise Unsupported(f"{memory_kib} KiB are too few for {lanes} lanes of Argon2id")
    if not allow_more and (memory_kib > UNTRUSTED_KIB_MAX or memory_kib * passes > work_kib):
        raise Unsupported(
            f"its passphrase costs {memory_kib} KiB times {passes}, and anybody who can write the file can ask for that: "
            "--allow-cost allows it for a file that you trust"
        )


def _passphrase_kek(protector: Protector, passphrase: bytes) -> bytes:
    return argon2id.derive(passphrase, protector.salt, protector.memory_kib, protector.passes, protector.lanes)


def check_downgrade(protector: Protector, certificate: Certificate, made: int, keys: KeysAtHand) -> None:
    """Refuses what was wrapped by RSA alone after the certificate got its companion."""
    companion = certificate.companion
    if protector.type == CERTIFICATE and companion and made > companion.added and not keys.allow_classical:
        raise Unauthentic(f"certificate `{protector.name}`: wrapped by RSA alone after it got its companion key")


def _unwrap_certificate(protector: Protector, keys: KeysAtHand, binding: bytes, made: int) -> bytes:
    called = f"certificate `{protector.name}` ({protector.thumbprint.hex()}, SHA-256)"
    if protector.recovery and not keys.allow_recovery:
        raise NotGiven(f"recovery certificate `{protector.name}` (`--allow-recovery`)")
    if keys.find_certificate is None:
        raise NotGiven(f"certificate `{protector.name}` (`--keyring`, `--bundle` or `--cert-file`)")
    try:
        certificate = keys.find_certificate(protector.thumbprint)
    except Unsupported:
        raise
    except ReaderError as problem:  # a damaged keyring is what a second protector is for
        raise MissingKey(f"{called}: {problem}") from None
    public_key = certificate.private_key.public_key()
    check_key_size(public_key.key_size, called)
    hybrid = protector.type == HYBRID
    if hybrid and certificate.companion is None:
        raise MissingKey(f"{called}: its companion key is missing ({protector.companion.hex()}, SHA-256)")
    if hybrid and certificate.companion and certificate.companion.thumbprint != protector.companion:
        raise MissingKey(f"{called}: its companion key is another one than {protector.companion.hex()} (SHA-256)")
    check_downgrade(protector, certificate, made, keys)
    if hybrid and binding[:1] == PURPOSE_DATABASE:
        raise Unsupported(f"{called}: hybrid wraps are for backups and bundles")
    if not protector.recovery:
        # Before the ciphertext is looked at: anybody can wrap a DEK of their own for a public key.
        domain = b"pellucid/1 provider protector" if protector.place else b"pellucid/1 protector"
        signed = domain + binding + protector.thumbprint + protector.wrapped + protector.place
        if hybrid:
            signed = b"pellucid/1 hybrid protector" + binding + protector.before_signature
        pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)
        try:
            public_key.verify(protector.signature, signed, pss, hashes.SHA256())
        except InvalidSignature:
            raise Unauthentic(f"a protector was not made by this certificate: {called}") from None
    label = (b"pellucid/1 hybrid" if hybrid else b"pellucid/1") + binding[:17]  # purpose and id
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label)
    try:
        opened = certificate.private_key.decrypt(protector.wrapped, oaep)
        if not hybrid or certificate.companion is None:
            return opened
        shared = mlkem.decapsulate(certificate.companion.private_key, protector.ciphertext)
        halves = protector.thumbprint + protector.companion + protector.ciphertext + protector.wrapped
        kek = hkdf(opened + shared, hashlib.sha256(halves).digest(), b"pellucid/1 hybrid" + binding[:17])
        aad = bytes([HYBRID]) + binding
        return AESGCM(kek).decrypt(protector.wrapped_dek[:12], protector.wrapped_dek[12:], aad)
    except (ValueError, InvalidTag):  # which half, nobody is told
        raise (Unauthentic if hybrid else MissingKey)(f"{called} does not unwrap") from None
