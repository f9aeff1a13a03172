"""The keyring of an instance, and certificates that were exported (docs/format.md, "Keyring")."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.serialization import Encoding, load_der_private_key, load_pem_private_key

from . import argon2id, mlkem
from .errors import Corrupt, MissingKey, ReaderError, Unauthentic, Unsupported
from .events import check_events
from .events import parse_memory as parse_events_memory
from .expected import Expected, Memory, parse_memory, parse_pin, pin_names
from .flags import check_flags_byte, check_zeros
from .protector import Certificate, Companion, check_cost, check_key_size
from .unit import hkdf

MAGIC = b"Pellucid key\0\0\0\0"
VERSION, VERSION_HYBRID = 1, 2
WITH_COMPANION = bytes([255]) * 4
FILE_BYTES_MAX = 65536
NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,63}")
EVENTS_PART = re.compile(r"events\.(0|[1-9][0-9]*)")
RETIRED_NAME = re.compile(r"[0-9a-f]{32}")


# SubjectPublicKeyInfo of an ML-KEM-768 key before the key (RFC 9935), and the object identifiers of it and of AES-256-CBC, the
# latter with the begin of an OCTET STRING of 16 bytes.
PUBLIC_KEY_INFO = bytes.fromhex("308204b2300b0609608648016503040402038204a100")
ML_KEM_768 = bytes.fromhex("0609608648016503040402")
AES_256_CBC = bytes.fromhex("060960864801650304012a0410")
ITERATIONS_MAX = 6_000_000

SECRET_MAGIC = b"Pellucid secret\0"
PASSWORD_FILE_BYTES = 156


class KeyKind(IntEnum):
    MASTER_KEY = 1
    CERTIFICATE = 2
    DATABASE = 3
    SETTINGS = 4
    EVENTS = 6
    PIN = 7
    RETIRED = 8
    CHECK = 9
    WITNESS = 10


class MasterKey(IntEnum):
    SERVICE = 1
    DATABASE = 2


def open_sealed_file(raw: bytes, parent_key: bytes, kind: KeyKind, name: str) -> bytes:
    """The content; `name` is empty for the master key."""
    if raw[:16] != MAGIC[: len(raw)]:
        raise Corrupt("not a file of a keyring")
    if len(raw) < 48 + 16:
        raise Corrupt("truncated")
    if len(raw) > FILE_BYTES_MAX:
        raise Corrupt(f"longer than {FILE_BYTES_MAX} bytes")
    version = int.from_bytes(raw[16:18], "big")
    newest = VERSION_HYBRID if kind == KeyKind.CERTIFICATE else VERSION
    if not VERSION <= version <= newest:
        raise Unsupported(f"version {version} is newer than {newest}")
    check_flags_byte(raw[19], "a file of a keyring")
    if raw[18] != kind:
        raise Corrupt("holds a key of another kind")
    check = hkdf(parent_key, b"", b"pellucid/1 key check", 16)
    if not hmac.compare_digest(check, raw[20:36]):
        raise MissingKey("it was sealed under another key")
    key = hkdf(parent_key, b"", b"pellucid/1 keyring" + bytes([kind]))
    try:
        content = AESGCM(key).decrypt(raw[36:48], raw[48:], raw[:48] + name.encode("ascii"))
    except InvalidTag:
        raise Unauthentic("its tag does not match") from None
    hybrid = kind == KeyKind.CERTIFICATE and has_companion(content)
    if version != (VERSION_HYBRID if hybrid else VERSION):
        raise Corrupt("its content is that of another version")
    return content


def open_password_file(raw: bytes, kind: MasterKey, password: bytes, allow_cost: bool = False) -> bytes:
    """The master key in it."""
    if len(raw) != PASSWORD_FILE_BYTES or raw[:16] != SECRET_MAGIC or raw[18] != kind:
        raise Corrupt("not a master key file, or one of another key")
    if hashlib.sha256(raw[:124]).digest() != raw[124:]:
        raise Corrupt("master key file: torn or damaged")
    version = int.from_bytes(raw[16:18], "big")
    if version != VERSION:
        raise Unsupported(f"master key file: version {version} is newer than {VERSION}")
    check_zeros(raw, [(19, 20)], "master key file")
    memory_kib, passes, lanes = (int.from_bytes(raw[at : at + 4], "big") for at in (36, 40, 44))
    check_cost(memory_kib, passes, lanes, allow_cost)
    kek = argon2id.derive(password, raw[48:64], memory_kib, passes, lanes)
    try:
        key = AESGCM(kek).decrypt(raw[64:76], raw[76:124], raw[:76])
    except InvalidTag:
        raise MissingKey("master key file: wrong password") from None
    if not hmac.compare_digest(hkdf(key, b"", b"pellucid/1 key check", 16), raw[20:36]):
        raise Corrupt("master key file: its check value is another key's")
    return key


class Keyring:
    """Reads the files of one instance directory; nothing is read before it is asked for."""

    def __init__(self, directory: Path, passphrase: bytes | None = None, allow_cost: bool = False):
        self.directory = directory
        self.passphrase, self.allow_cost = passphrase, allow_cost

    def find_certificate(self, thumbprint: bytes) -> Certificate:
        """By thumbprint: the name in a protector is for people only."""
        folder = self.directory / "keyring" / "certificates"
        problem: ReaderError | None = None
        for name in sorted(os.listdir(folder)) if folder.is_dir() else []:
            if not NAME.fullmatch(name):
                continue  # a file being written
            try:
                content = self._open(f"keyring/certificates/{name}", KeyKind.CERTIFICATE, name)
                certificate = parse_certificate(content)
            except ReaderError as found:
                problem = problem or found
                continue
            if hmac.compare_digest(certificate.thumbprint, thumbprint):
                return certificate
        raise problem or MissingKey("is not in the keyring")

    def expected_at(self, path: Path, file_ids: Sequence[bytes] = ()) -> Expected:
        """What is expected of the database at a path. What cannot be read refuses."""
        expected = Expected(file_ids=file_ids)
        for name in pin_names(path):
            if os.path.lexists(self.directory / "keyring" / "paths" / name):
                content = self._open(f"keyring/paths/{name}", KeyKind.PIN, name)
                expected.pins = (*expected.pins, parse_pin(content)[0])
        # That there is a file of that name is enough: no key is needed.
        retired = self.directory / "keyring" / "retired"
        names = os.listdir(retired) if retired.is_dir() else []
        expected.retired = [bytes.fromhex(name) for name in names if RETIRED_NAME.fullmatch(name)]
        expected.recall = self._recall
        if os.path.lexists(self.directory / "keyring" / "settings"):
            settings = self._open("keyring/settings", KeyKind.SETTINGS, "settings")
            expected.strict = b"policy strict-paths on" in settings.split(b"\n")
        return expected

    def _recall(self, file_id: bytes) -> Memory | None:
        path = f"keyring/databases/{file_id.hex()}"
        if not os.path.lexists(self.directory / path):
            return None
        return parse_memory(self._open(path, KeyKind.DATABASE, file_id.hex()))

    def check_events(self) -> int:
        """The number of the last line of a whole event log."""
        memory = parse_events_memory(self._open("keyring/events", KeyKind.EVENTS, "events"))
        closed = [name for name in os.listdir(self.directory) if EVENTS_PART.fullmatch(name)]
        names = sorted(closed, key=lambda name: int(name.partition(".")[2]))
        if (self.directory / "events.log").exists():
            names.append("events.log")
        return check_events(b"".join((self.directory / name).read_bytes() for name in names), memory)

    def _open(self, path: str, kind: KeyKind, name: str) -> bytes:
        parent_key = self._service_master_key() if kind == KeyKind.MASTER_KEY else self._database_master_key()
        try:
            return open_sealed_file(_read(self.directory / path), parent_key, kind, name)
        except ReaderError as problem:
            raise type(problem)(f"{self.directory / path}: {problem}") from None

    def _database_master_key(self) -> bytes:
        key = self._open("keyring/master.key", KeyKind.MASTER_KEY, "")
        if len(key) != 32:
            raise Corrupt("the database master key: not 32 bytes")
        return key

    def _service_master_key(self) -> bytes:
        path = self.directory / "service.key"
        credentials = os.environ.get("CREDENTIALS_DIRECTORY")
        if credentials and (Path(credentials) / "pellucid-smk").exists():
            path = Path(credentials) / "pellucid-smk"
        sealed = self.directory / "service.sealed"
        if not path.exists() and sealed.exists():
            if self.passphrase is None:
                raise MissingKey(f"{sealed}: it is bound to a passphrase (`--keyring-passphrase-file`)")
            return open_password_file(_read(sealed), MasterKey.SERVICE, self.passphrase, self.allow_cost)
        provider = self.directory / "service.provider"
        if not path.exists() and provider.exists():
            raise MissingKey(f"{provider}: it is bound to a key that a plugin asks for, and this reader asks none")
        key = _read(path)
        if len(key) != 32:
            raise Corrupt(f"{path}: not 32 bytes")
        return key


def has_companion(content: bytes) -> bool:
    return content[8:12] == WITH_COMPANION


def parse_certificate(content: bytes) -> Certificate:
    """Of a sealed file's content: when it was backed up 8, a companion if it has one, length 4, certificate, private keys."""
    rest, companion, signature = content[8:], None, b""
    if has_companion(content):
        end = 14 + mlkem.PUBLIC_BYTES
        signature_end = end + int.from_bytes(rest[end - 2 : end], "big")
        companion = Companion(int.from_bytes(rest[4:12], "big"), rest[12 : end - 2], b"")
        signature, rest = rest[end:signature_end], rest[signature_end:]
    length = int.from_bytes(rest[:4], "big")
    der, keys = rest[4 : 4 + length], rest[4 + length :]
    if len(der) != length:
        raise Corrupt("the certificate runs over the end")
    split = mlkem.PRIVATE_BYTES if companion else 0
    try:
        found = _rsa(x509.load_der_x509_certificate(der), load_der_private_key(keys[split:], None))
    except ValueError as problem:
        raise Corrupt(f"not a certificate with its private key: {problem}") from None
    return with_companion(found, companion, signature, keys[:split]) if companion else found


def with_companion(own: Certificate, companion: Companion, signature: bytes, private_key: bytes) -> Certificate:
    """The certificate's RSA key has to have signed the companion."""
    der = own.certificate.public_bytes(Encoding.DER)
    signed = hashlib.sha256(der).digest() + companion.added.to_bytes(8, "big") + companion.key
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)
    try:
        public_key = own.private_key.public_key()
        public_key.verify(signature, b"pellucid/1 companion" + signed, pss, hashes.SHA256())
    except InvalidSignature:
        raise Unauthentic("its companion key was not signed by it") from None
    if len(private_key) != mlkem.PRIVATE_BYTES or mlkem.public_of(private_key) != companion.key:
        raise Corrupt("the private half of its companion key is another one's")
    return Certificate(own.certificate, own.private_key, Companion(companion.added, companion.key, private_key))


def exported_certificate(certificate_pem: bytes, private_key_pem: bytes, password: bytes | None) -> Certificate:
    """A certificate that was taken out of a keyring: PEM, and PKCS#8 in PEM, encrypted or not."""
    try:
        private_key = load_pem_private_key(private_key_pem, password)
        found = _rsa(x509.load_pem_x509_certificate(certificate_pem), private_key)
    except (TypeError, ValueError) as problem:  # TypeError: a password that is not there or not asked for
        raise MissingKey(f"the exported certificate does not open: {problem}") from None
    block = re.search(b"-----BEGIN PELLUCID COMPANION KEY-----(.*?)-----END", certificate_pem, re.DOTALL)
    if block is None:
        return found
    raw = base64.b64decode(block[1])
    if raw[:22] != PUBLIC_KEY_INFO or len(raw) < 22 + mlkem.PUBLIC_BYTES + 8:
        raise Corrupt("the companion key is malformed")
    at = 22 + mlkem.PUBLIC_BYTES
    companion = Companion(int.from_bytes(raw[at : at + 8], "big"), raw[22:at], b"")
    return with_companion(found, companion, raw[at + 8 :], _companion_key(private_key_pem, password))


def _companion_key(private_key_pem: bytes, password: bytes | None) -> bytes:
    """The private half in the second block, PKCS#8 of RFC 9935 with an expanded key. Decrypted here: `cryptography` loads seeds."""
    blocks = re.findall(b"-----BEGIN ENCRYPTED PRIVATE KEY-----(.*?)-----END", private_key_pem, re.DOTALL)
    if len(blocks) < 2 or password is None:
        raise MissingKey("the private key's file has no companion key")
    raw = base64.b64decode(blocks[1])
    # EncryptedPrivateKeyInfo as the program writes it: PBES2, PBKDF2-HMAC-SHA256, AES-256-CBC (RFC 8018, A.4).
    salt_at, iv_at = raw.find(b"\x04\x10") + 2, raw.rfind(AES_256_CBC) + len(AES_256_CBC)
    count_at = salt_at + 16
    iterations = int.from_bytes(raw[count_at + 2 : count_at + 2 + raw[count_at + 1]], "big")
    if raw[count_at] != 2 or not 1 <= iterations <= ITERATIONS_MAX:
        raise Unsupported("the companion key is under another encryption than the program's")
    key = hashlib.pbkdf2_hmac("sha256", password, raw[salt_at : salt_at + 16], iterations, 32)
    body = raw[iv_at + 16 + 4 :]  # behind it an OCTET STRING with two bytes of length
    clear = Cipher(AES(key), CBC(raw[iv_at : iv_at + 16])).decryptor()
    padded = clear.update(body) + clear.finalize()
    found = padded[: -padded[-1]][-mlkem.PRIVATE_BYTES :]
    if ML_KEM_768 not in padded[:32] or len(found) != mlkem.PRIVATE_BYTES:
        raise MissingKey("the companion key does not open")
    return found


def _rsa(certificate: x509.Certificate, private_key: object) -> Certificate:
    if not isinstance(private_key, rsa.RSAPrivateKey):
        raise Unsupported("the certificate's key is not an RSA key")
    public_key, own = certificate.public_key(), private_key.public_key()
    if not isinstance(public_key, rsa.RSAPublicKey) or public_key.public_numbers() != own.public_numbers():
        raise Corrupt("the private key is not the certificate's")
    check_key_size(public_key.key_size, "the certificate")
    return Certificate(certificate, private_key)


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise MissingKey(f"{path}: is missing") from None
