"""The keyring of an instance, and certificates that were exported (docs/format.md, "Keyring")."""

from __future__ import annotations

import hmac
import os
import re
from enum import IntEnum
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key

from .errors import Corrupt, MissingKey, ReaderError, Unauthentic, Unsupported
from .flags import check_flags_byte
from .protector import Certificate
from .unit import hkdf

MAGIC = b"Pellucid key\0\0\0\0"
VERSION = 1
FILE_BYTES_MAX = 65536
NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,63}")


class KeyKind(IntEnum):
    MASTER_KEY = 1
    CERTIFICATE = 2
    DATABASE = 3


def open_sealed_file(raw: bytes, parent_key: bytes, kind: KeyKind, name: str) -> bytes:
    """The content; `name` is empty for the master key."""
    if raw[:16] != MAGIC[: len(raw)]:
        raise Corrupt("not a file of a keyring")
    if len(raw) < 48 + 16:
        raise Corrupt("truncated")
    if len(raw) > FILE_BYTES_MAX:
        raise Corrupt(f"longer than {FILE_BYTES_MAX} bytes")
    version = int.from_bytes(raw[16:18], "big")
    if version != VERSION:
        raise Unsupported(f"version {version} is newer than {VERSION}")
    check_flags_byte(raw[19], "a file of a keyring")
    if raw[18] != kind:
        raise Corrupt("holds a key of another kind")
    check = hkdf(parent_key, b"", b"pellucid/1 key check", 16)
    if not hmac.compare_digest(check, raw[20:36]):
        raise MissingKey("it was sealed under another key")
    key = hkdf(parent_key, b"", b"pellucid/1 keyring" + bytes([kind]))
    try:
        return AESGCM(key).decrypt(raw[36:48], raw[48:], raw[:48] + name.encode("ascii"))
    except InvalidTag:
        raise Unauthentic("its tag does not match") from None


class Keyring:
    """Reads the files of one instance directory; nothing is read before it is asked for."""

    def __init__(self, directory: Path):
        self.directory = directory

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
        key = _read(path)
        if len(key) != 32:
            raise Corrupt(f"{path}: not 32 bytes")
        return key


def parse_certificate(content: bytes) -> Certificate:
    """Of a sealed file's content: when it was backed up 8, length 4, certificate, private key."""
    length = int.from_bytes(content[8:12], "big")
    der, pkcs8 = content[12 : 12 + length], content[12 + length :]
    if len(der) != length:
        raise Corrupt("the certificate runs over the end")
    try:
        return _rsa(x509.load_der_x509_certificate(der), load_der_private_key(pkcs8, None))
    except ValueError as problem:
        raise Corrupt(f"not a certificate with its private key: {problem}") from None


def exported_certificate(certificate_pem: bytes, private_key_pem: bytes, password: bytes | None) -> Certificate:
    """A certificate that was taken out of a keyring: PEM, and PKCS#8 in PEM, encrypted or not."""
    try:
        private_key = load_pem_private_key(private_key_pem, password)
        return _rsa(x509.load_pem_x509_certificate(certificate_pem), private_key)
    except (TypeError, ValueError) as problem:  # TypeError: a password that is not there or not asked for
        raise MissingKey(f"the exported certificate does not open: {problem}") from None


def _rsa(certificate: x509.Certificate, private_key: object) -> Certificate:
    if not isinstance(private_key, rsa.RSAPrivateKey):
        raise Unsupported("the certificate's key is not an RSA key")
    public_key, own = certificate.public_key(), private_key.public_key()
    if not isinstance(public_key, rsa.RSAPublicKey) or public_key.public_numbers() != own.public_numbers():
        raise Corrupt("the private key is not the certificate's")
    return Certificate(certificate, private_key)


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise MissingKey(f"{path}: is missing") from None
