"""Backup media: what is on them, and databases from them (docs/format.md, "Backup media")."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding as rsa_padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .blake3 import blake3
from .compression import decompress
from .errors import Corrupt, MissingKey, NotSealed, ReaderError, Unauthentic, Unsupported, WrongKind
from .flags import check_flags, check_zeros
from .protector import CERTIFICATE, HYBRID, PROVIDER_KEY, KeysAtHand, Protector, check_downgrade, parse_protector, unwrap_key
from .unit import TAIL_BYTES, Algorithm, _open_triple_des, hkdf

MAGIC = b"Pellucid media\0\0"
MEDIA_HEADER_BYTES, PREFIX_BYTES, ENTRY_BYTES = 4096, 48, 44
SET_HEADER_BYTES_MAX, CHUNK_BYTES_MAX, PROTECTORS_MAX, FAMILIES_MAX = 65536, 4194304, 8, 64
COPIES_MAX = 4
VERSIONS = (1, 2)
BLOCK_BYTES, SIGNATURE_BLOCK_BYTES, SIGNATURE_BYTES_MAX = 128, 43, 512
PURPOSE_BACKUP = b"\2"


class Kind(IntEnum):
    FULL = 1
    LOG = 2
    DIFFERENTIAL = 5


class ChunkKind(IntEnum):
    PAGES = 1
    LISTED_PAGES = 2
    INDEX = 3
    PAGE_HASHES = 4
    LOG_PAGES = 5
    COMMITS = 6
    PADDING = 7


OF_PAGES = (ChunkKind.PAGES, ChunkKind.LISTED_PAGES, ChunkKind.LOG_PAGES)
OF_LOGS = (ChunkKind.LOG_PAGES, ChunkKind.COMMITS)


def number(raw: bytes, at: int, length: int) -> int:
    return int.from_bytes(raw[at : at + length], "big")


def check_version(raw: bytes) -> int:
    version = number(raw, 16, 4)
    if version not in VERSIONS:
        raise Unsupported(f"format version {version}")
    return version


def readable(text: str) -> str:
    """Without control characters, which would do something to a terminal."""
    return "".join("\ufffd" if unicodedata.category(one) == "Cc" and one not in "\n\t" else one for one in text)


@dataclass(frozen=True)
class MediaHeader:
    version: int
    media_set: bytes
    families: int
    family: int
    sealed: bool
    name: str


def parse_media_header(raw: bytes) -> MediaHeader:
    begins = raw[:16] == MAGIC
    if len(raw) < MEDIA_HEADER_BYTES:
        if begins:
            raise Corrupt("media header: truncated")
        raise WrongKind("this is no backup of Pellucid's")
    matches = hashlib.sha256(MAGIC + raw[16:4064]).digest() == raw[4064:4096]
    if not begins and not matches:
        raise WrongKind("this is no backup of Pellucid's")
    if not begins:
        raise Corrupt("media header: its first 16 bytes are damaged")
    if not matches:
        raise Corrupt("media header: torn or damaged")
    version = check_version(raw)
    families, family = number(raw, 20, 2), number(raw, 22, 2)
    n = number(raw, 56, 2)
    if raw[26] & ~3:
        raise Unsupported(f"media header: flags {raw[26]} are not known")
    m = number(raw, n + 58, 2)
    check_zeros(raw, [(27, 32), (n + m + 60, 4064)], "media header")
    fits = 1 <= family <= families <= FAMILIES_MAX and 1 <= raw[24] <= COPIES_MAX and raw[25] < raw[24]
    if not fits or n > 512 or m > 1024:
        raise Corrupt("media header: its fields are malformed")
    try:
        name, description = raw[58 : 58 + n].decode(), raw[n + 60 : n + m + 60].decode()
    except UnicodeDecodeError:
        raise Corrupt("media header: its fields are malformed") from None
    if name != readable(name) or description != readable(description):
        raise Corrupt("media header: its fields are malformed")
    return MediaHeader(version, raw[32:48], families, family, bool(raw[26] & 2), name)


@dataclass(frozen=True)
class ChainPlace:
    """The place of a set in the chain of log backups."""

    fork: bytes
    first: int
    last: int
    times: tuple[int, int] = (0, 0)
    """Of the first and the last commit of a log set."""
    commits: int = 0


@dataclass(frozen=True)
class Commit:
    """A commit of a log set."""

    lsn: int
    time: int
    pages: int
    mark: str


@dataclass(frozen=True)
class SetHeader:
    raw: bytes = field(repr=False)
    version: int
    media_set: bytes
    set: bytes
    family: int
    families: int
    position: int
    kind: Kind
    algorithm: Algorithm | None
    page_size: int
    pages: int
    base: bytes
    commitment: bytes
    protectors: Sequence[Protector] = field(repr=False)
    description: bytes = field(repr=False)
    before: bytes = bytes(32)
    """SHA-256 of the manifest of the set before."""
    base_manifest: bytes = bytes(32)
    """SHA-256 of the manifest of a differential's full set; zeros if it is not known."""
    padded: bool = False
    place: ChainPlace | None = None

    @property
    def made(self) -> int:
        """When it was begun, in seconds since 1970."""
        return int.from_bytes(self.raw[84:92], "big") // 1_000_000


def parse_set_header(raw: bytes, position: int) -> SetHeader:
    thing = f"backup set {position}"
    if hashlib.sha256(raw[:-32]).digest() != raw[-32:]:
        raise Corrupt(f"{thing}: its header is damaged")
    version = check_version(raw)
    check_flags(raw[236:242], thing)
    if raw[67] & ~3:
        raise Unsupported(f"{thing}: flags {raw[67]} are not known")
    check_zeros(raw, [(80, 84), (230, 232), (242, 256)], thing)
    if raw[64] not in ((1, 5) if version == 1 else (1, 2, 5)) or raw[66] > 2:
        raise Unsupported(f"{thing}: backup type {raw[64]}, compression {raw[66]}")
    if raw[65] not in (0, 1, 2, 3, 4):
        raise Unsupported(f"{thing}: algorithm {raw[65]}")
    protectors, at, place = [], 256, None
    if version == 2:
        place = _parse_place(raw, Kind(raw[64]), thing)
        if raw[360] > 1:
            raise Unsupported(f"{thing}: padding {raw[360]} is not known")
        at += BLOCK_BYTES
    for _ in range(number(raw, 228, 2)):
        end = at + 4 + number(raw, at + 2, 2)
        protectors.append(parse_protector(raw[at:end]))
        at = end
    described = number(raw, 232, 4)
    if at + described > len(raw) - 64 or len(protectors) > PROTECTORS_MAX or number(raw, 60, 4) != position:
        raise Corrupt(f"{thing}: the fields of its header are malformed")
    mac = len(raw) - 64
    check_zeros(raw, [(at + described, mac)], thing)
    # What another set has there: the full set's id, the commitment and HMAC of a sealed one, the key of one that is not.
    check_zeros(raw, [(116, 132)] if raw[64] != Kind.DIFFERENTIAL else [], thing)
    check_zeros(raw, [(196, 228)] if raw[65] or raw[64] == Kind.LOG else [], thing)
    check_zeros(raw, [] if raw[65] else [(132, 164), (mac, mac + 32)], thing)
    return SetHeader(
        raw=raw,
        version=version,
        media_set=raw[24:40],
        set=raw[40:56],
        family=number(raw, 56, 2),
        families=number(raw, 58, 2),
        position=position,
        kind=Kind(raw[64]),
        algorithm=Algorithm(raw[65]) if raw[65] else None,
        page_size=number(raw, 68, 4),
        pages=number(raw, 72, 4),
        base=raw[116:132],
        commitment=raw[132:164],
        protectors=protectors,
        description=raw[at : at + described],
        before=raw[328:360] if version == 2 else bytes(32),
        base_manifest=raw[256:288] if version == 2 and raw[64] == Kind.DIFFERENTIAL else bytes(32),
        padded=version == 2 and raw[360] == 1,
        place=place,
    )


def _parse_place(raw: bytes, kind: Kind, thing: str) -> ChainPlace | None:
    """The place in the chain of log backups; none outside of one."""
    at = 288 if kind == Kind.DIFFERENTIAL else 256
    check_zeros(raw, [(at + 32, 296 if kind == Kind.LOG else 328), (361, 384)], thing)
    place = ChainPlace(raw[at : at + 16], number(raw, at + 16, 8), number(raw, at + 24, 8))
    malformed = Corrupt(f"{thing}: the fields of its header are malformed")
    if place.last == 0:
        check_zeros(raw, [(at, at + 24)], thing)
        if kind == Kind.LOG:
            raise malformed
        return None
    if not any(place.fork) or place.first > place.last:
        raise malformed
    if kind != Kind.LOG:
        return place
    if number(raw, 324, 4) & ~7:
        raise Unsupported(f"{thing}: log flags {number(raw, 324, 4)} are not known")
    times, commits = (number(raw, 304, 8), number(raw, 312, 8)), number(raw, 320, 4)
    if times[0] > times[1] or (place.first == place.last) != (commits == 0) or (commits == 0 and times != (0, 0)):
        raise malformed
    return ChainPlace(place.fork, place.first, place.last, times, commits)


@dataclass(frozen=True)
class Manifest:
    raw: bytes = field(repr=False)
    set: bytes
    chunks: int
    index_chunks: int
    pages: int
    index_offset: int
    ends: Sequence[tuple[int, bytes]]
    """Length and root of each family."""
    version: int = 1
    signer: bytes = b""
    """The thumbprint of the certificate that signed it; nothing if none did."""
    signature: bytes = field(default=b"", repr=False)
    signed: bytes = field(default=b"", repr=False)
    """What the signature is over."""


def manifest_length(raw: bytes, at: int) -> int:
    version = check_version(raw[at : at + 24])
    length = number(raw, at + 20, 4)
    most = 160 + 40 * FAMILIES_MAX
    if version == 1:
        possible = length in range(200, most + 1, 40)
    else:
        possible = 200 + SIGNATURE_BLOCK_BYTES <= length <= most + SIGNATURE_BLOCK_BYTES + SIGNATURE_BYTES_MAX
    if not possible:
        raise Corrupt("manifest: its length is not possible")
    return length


def parse_manifest(raw: bytes) -> Manifest:
    if hashlib.sha256(raw[:-32]).digest() != raw[-32:]:
        raise Corrupt("manifest: damaged")
    if raw[42] & ~1:
        raise Unsupported(f"manifest: flags {raw[42]} are not known")
    check_zeros(raw, [(43, 48)], "manifest")
    version, families = check_version(raw), number(raw, 40, 2)
    at = 96 + 40 * families
    signer = signature = b""
    if version == 2:
        signer, signature = _parse_signature(raw, at)
    if len(raw) != number(raw, 20, 4) or len(raw) != at + 64 + (SIGNATURE_BLOCK_BYTES + len(signature)) * (version == 2):
        raise Corrupt("manifest: its fields are malformed")
    rows = [raw[at : at + 40] for at in range(96, 96 + 40 * families, 40)]
    ends = [(number(row, 0, 8), row[8:]) for row in rows]
    counts = number(raw, 72, 4), number(raw, 76, 4), number(raw, 80, 4), number(raw, 88, 8)
    signed = b"pellucid/2 set" + hashlib.sha256(raw[: at + 35]).digest()
    return Manifest(raw, raw[24:40], *counts, ends, version, signer, signature, signed)


def _parse_signature(raw: bytes, at: int) -> tuple[bytes, bytes]:
    """Thumbprint and signature of the block at `at`; nothing if it says that nobody signed."""
    if len(raw) < at + SIGNATURE_BLOCK_BYTES + 64:
        raise Corrupt("manifest: its fields are malformed")
    kind, length, thumbprint = raw[at], number(raw, at + 1, 2), raw[at + 3 : at + 35]
    if kind > 1:
        raise Unsupported(f"manifest: signature kind {kind}")
    end = at + 35 + length
    lengths = number(raw, end, 4), number(raw, end + 4, 4)
    fits = 1 <= length <= SIGNATURE_BYTES_MAX if kind else length == 0 and not any(thumbprint)
    if not fits or lengths != (length + SIGNATURE_BLOCK_BYTES, len(raw)):
        raise Corrupt("manifest: its fields are malformed")
    return (thumbprint, raw[at + 35 : end]) if kind else (b"", b"")


@dataclass
class FamilySet:
    """A backup set in one family; `at` is where it begins in the file, `root` what its manifest has to name."""

    at: int
    header: SetHeader
    manifest: Manifest
    end: int
    root: bytes


class Interrupted(Exception):
    """The file ends within a backup set, which counts only if another family has its manifest."""

    def __init__(self, at: int, position: int, file: bytes):
        self.trouble = Corrupt(f"backup set {position}: its backup was interrupted after {len(file) - at} bytes")
        self.at = at
        self.begun: SetHeader | None = None
        self.prefixes: list[bytes] = []
        self.end = at
        """Where its last whole chunk ends."""


@dataclass
class Family:
    """One file, and what is behind its last whole set: a set that was interrupted, or damage, behind which sets may be."""

    file: bytes = field(repr=False)
    header: MediaHeader
    sets: list[FamilySet]
    interrupted: Interrupted | None = None
    damage: ReaderError | None = None

    def is_sealed(self) -> bool:
        """Whether the media header, which nothing authenticates, or a set says that sets are sealed."""
        headers = [own.header for own in self.sets]
        if self.interrupted and self.interrupted.begun:
            headers.append(self.interrupted.begun)
        return self.header.sealed or any(header.algorithm is not None for header in headers)

    def why_not(self, position: int) -> ReaderError:
        """Why there is no such set."""
        if self.interrupted and position == len(self.sets) + 1:
            return self.interrupted.trouble
        return self.damage or Corrupt(f"backup set {position}: there is none")


def open_family(file: bytes) -> Family:
    family = Family(file, parse_media_header(file[:MEDIA_HEADER_BYTES]), [])
    at = MEDIA_HEADER_BYTES
    while at < len(file):
        try:
            found = _walk(file, at, len(family.sets) + 1, family.header.version)
        except Interrupted as interrupted:
            family.interrupted = interrupted
            break
        except ReaderError as damage:
            family.damage = damage
            break
        family.sets.append(found)
        at = found.end
    return family


def open_families(files: Sequence[bytes]) -> list[Family]:
    """Those of one media set. One whole manifest commits a set in all of them: the rest of it was written before."""
    families = [open_family(file) for file in files]
    newest = max((own for family in families for own in family.sets), key=lambda own: own.header.position, default=None)
    for family in families:
        if newest and family.interrupted and family.interrupted.begun:
            _commit(family, family.interrupted, family.interrupted.begun, newest.manifest)
    return families


def _commit(family: Family, begun: Interrupted, header: SetHeader, manifest: Manifest) -> None:
    if manifest.set == header.set and _named_length(manifest, header) == begun.end - begun.at:
        family.sets.append(FamilySet(begun.at, header, manifest, begun.end, blake3(begun.prefixes)))
        family.interrupted = None


def _named_length(manifest: Manifest, header: SetHeader) -> int | None:
    return manifest.ends[header.family - 1][0] if 1 <= header.family <= len(manifest.ends) else None


def last_position(families: Sequence[Family]) -> int:
    """That of the last whole set, 0 if there is none. Damage may hide a newer one: nobody can say then which is the last."""
    last = max(len(family.sets) for family in families)
    for family in families:
        if family.damage or len(family.sets) < last:
            raise family.damage or family.why_not(last)
    return last


def _walk(file: bytes, at: int, position: int, version: int) -> FamilySet:
    interrupted = Interrupted(at, position, file)
    if len(file) < at + 24:
        raise interrupted
    if file[at : at + 16] != b"Pellucid backup\0":
        raise Corrupt(f"backup set {position}: no backup set begins here")
    check_version(file[at : at + 24])
    length = number(file, at + 20, 4)
    if length % 512 or not 320 <= length <= SET_HEADER_BYTES_MAX:
        raise Corrupt(f"backup set {position}: no backup set begins here")
    if len(file) < at + length:
        raise interrupted
    header = parse_set_header(file[at : at + length], position)
    if header.version != version:
        raise Corrupt(f"backup set {position}: its format version is another one than that of its media")
    padding = False
    place = interrupted.end = at + length
    interrupted.begun, prefixes = header, interrupted.prefixes
    prefixes.append(header.raw)
    while file[place : place + 16] != b"Pellucid set end":
        prefix = file[place : place + PREFIX_BYTES]
        if len(prefix) < PREFIX_BYTES:
            raise interrupted
        if not _is_chunk(prefix) or (version == 1 and prefix[4] in OF_LOGS):
            _refuse_newer_chunk(file, place, prefix)
            raise Corrupt(f"backup set {position}: neither a chunk nor its end is at byte {place}")
        padding = padding or prefix[4] == ChunkKind.PADDING
        if padding and (prefix[4] != ChunkKind.PADDING or not header.padded):
            raise Corrupt(f"backup set {position}: padding and other chunks are mixed at byte {place}")
        place += PREFIX_BYTES + number(prefix, 28, 4)
        if place > len(file):
            raise interrupted
        prefixes.append(prefix)
        interrupted.end = place
    if len(file) < place + PREFIX_BYTES:
        raise interrupted
    length = manifest_length(file, place)
    block = 96 + 40 * header.families
    signature = file[place + block + 1 : place + block + 3]
    if version == 2 and len(signature) == 2 and length != block + 64 + SIGNATURE_BLOCK_BYTES + number(signature, 0, 2):
        raise Corrupt("manifest: its length is not possible")
    if len(file) < place + length:
        raise interrupted
    manifest = parse_manifest(file[place : place + length])
    if header.algorithm is None:
        check_zeros(manifest.raw, [(length - 64, length - 32)], "manifest")
    if manifest.version != header.version or manifest.set != header.set or _named_length(manifest, header) != place - at:
        raise Corrupt("manifest: it belongs to another backup set")
    return FamilySet(at, header, manifest, place + length, blake3(prefixes))


def _is_chunk(prefix: bytes) -> bool:
    known = 1 <= prefix[4] <= 7 and prefix[5] in (0, 1, 2) and prefix[6] <= (prefix[4] in OF_PAGES) and prefix[7] == 0
    return prefix[:4] == b"PCHK" and known and max(number(prefix, 24, 4), number(prefix, 28, 4)) <= CHUNK_BYTES_MAX


def _refuse_newer_chunk(file: bytes, at: int, prefix: bytes) -> None:
    """One that this version does not know and that is whole was made by a newer one."""
    length = number(prefix, 28, 4)
    stored = file[at + PREFIX_BYTES : at + PREFIX_BYTES + length]
    if prefix[:4] == b"PCHK" and length <= CHUNK_BYTES_MAX and blake3([prefix[:32], stored])[:16] == prefix[32:]:
        raise Unsupported(f"chunk {number(prefix, 8, 8)}: kind {prefix[4]}, or another value in its prefix, is not known")


@dataclass(frozen=True)
class SetKeys:
    header: bytes = field(repr=False)
    pages: bytes = field(repr=False)
    index: bytes = field(repr=False)
    description: bytes = field(repr=False)


def derive_keys(key: bytes, header: SetHeader) -> SetKeys:
    assert header.algorithm is not None

    def of(what: bytes) -> bytes:
        info = b"pellucid/1 backup " + what + bytes([header.algorithm])
        return hkdf(key, header.set, info, header.algorithm.key_bytes)

    return SetKeys(hkdf(key, header.set, b"pellucid/1 backup header"), of(b"pages"), of(b"index"), of(b"description"))


def is_signed(own: FamilySet, keys: KeysAtHand) -> bool:
    """Whether a certificate at hand signed it. A signature that is wrong, or by one that does not protect it, is an error."""
    manifest, header = own.manifest, own.header
    if not manifest.signer:
        return False
    types = (CERTIFICATE, PROVIDER_KEY, HYBRID)
    signers = {one.thumbprint: one for one in header.protectors if one.type in types and not one.recovery}
    if manifest.signer not in signers:
        raise Unauthentic(f"backup set {header.position}: it is signed by a certificate that does not protect it")
    if keys.find_certificate is None:
        return False
    try:
        found = keys.find_certificate(manifest.signer)
        public_key = found.private_key.public_key()
    except MissingKey:
        return False
    pss = rsa_padding.PSS(rsa_padding.MGF1(hashes.SHA256()), hashes.SHA256.digest_size)
    try:
        public_key.verify(manifest.signature, manifest.signed, pss, hashes.SHA256())
    except InvalidSignature:
        raise Unauthentic("manifest: its signature is not one of the certificate that it names") from None
    check_downgrade(signers[manifest.signer], found, header.made, keys)
    return True


class OpenSet:
    """A backup set, authenticated if it is sealed: its header, its manifest and each chunk that is read."""

    def __init__(
        self,
        families: Sequence[Family],
        position: int,
        keys: KeysAtHand,
        allow_clear: bool = False,
        allow_unsigned: bool = False,
    ):
        self.families = sorted(families, key=lambda family: family.header.family)
        expected = self.families[0].header.families
        found = [family.header.family for family in self.families]
        if found != list(range(1, expected + 1)):
            raise MissingKey(f"media families {found} of 1 to {expected} are there")
        for family in self.families:
            if len(family.sets) < position:
                raise family.why_not(position)
        self.sets = [family.sets[position - 1] for family in self.families]
        self.header = self.sets[0].header
        if not allow_clear:
            self._refuse_clear()
        self.manifest = self.sets[0].manifest
        self.is_signed = is_signed(self.sets[0], keys)
        if not self.is_signed and not allow_unsigned:
            self._refuse_unsigned(keys)
        self.keys: SetKeys | None = None
        if self.header.algorithm is not None:
            self._unlock(keys)
        if any(own.manifest.raw != self.manifest.raw or own.header.set != self.header.set for own in self.sets):
            raise Corrupt("a family's manifest is another one than that of the first family")
        for own, (_, root) in zip(self.sets, self.manifest.ends):
            if own.root != root and self.manifest.signer:
                raise Unauthentic("manifest: its roots are not those of the chunks: they are not the ones that were signed")
            if own.root != root:
                raise Corrupt("manifest: it names another root: chunks were exchanged, left out or repeated")
        self.description = json.loads(self._description())

    def _refuse_clear(self) -> None:
        if all(own.header.algorithm is not None for own in self.sets):
            return
        thing = f"backup set {self.header.position} is NOT sealed, so that anybody can have made it"
        if any(family.is_sealed() for family in self.families):
            raise NotSealed(f"{thing}, and its media are of sealed sets: --allow-clear believes it")
        if self.header.raw[67] & 2 or any(self.header.raw[100:116]):
            raise NotSealed(f"{thing}, and says that its database was a sealed one: --allow-clear believes it")
        if os.environ.get("PELLUCID_REQUIRE") == "1":
            raise NotSealed(f"{thing}, and PELLUCID_REQUIRE=1 asks for sealed ones: --allow-clear believes it")

    def _refuse_unsigned(self, keys: KeysAtHand) -> None:
        """Behind a signed set of the same media every holder of the key can have put it, and no writer does. A signature
        that cannot be checked counts as none behind one that can be."""
        for before in self.families[0].sets[: self.header.position - 1]:
            if is_signed(before, keys) if self.manifest.signer else before.manifest.signer:
                thing = f"backup set {self.header.position} is NOT signed"
                raise NotSealed(f"{thing}, and one before it is: --allow-unsigned believes it")

    def _unlock(self, keys: KeysAtHand) -> None:
        header = self.header
        key = unwrap_key(
            header.protectors, PURPOSE_BACKUP, header.set, header.algorithm, header.commitment, keys, header.made
        )
        self.keys = derive_keys(key, header)
        for own in self.sets:
            for thing, raw in (("its header", own.header.raw), ("manifest", own.manifest.raw)):
                mac = hmac.digest(self.keys.header, raw[:-64], "sha256")
                if not hmac.compare_digest(mac, raw[-64:-32]):
                    raise Unauthentic(f"backup set {header.position}: {thing} does not authenticate")

    def _description(self) -> bytes:
        if self.keys is None:
            return self.header.description
        nonce = bytes(10) + self.header.family.to_bytes(2, "big")
        return self._open(self.keys.description, nonce, self.header.set, self.header.description, "description")

    def _open(self, key: bytes, nonce: bytes, aad: bytes, sealed: bytes, thing: str) -> bytes:
        opened: bytes | None
        if self.header.algorithm == Algorithm.TRIPLE_DES_3KEY:
            opened = _open_triple_des(key, nonce, aad, sealed[:-16], sealed[-16:])
        else:
            try:
                opened = AESGCM(key).decrypt(nonce, sealed, aad)
            except InvalidTag:
                opened = None
        if opened is None:
            raise Unauthentic(f"{thing}: authentication tag does not match")
        return opened

    def chunk(self, family: int, offset: int, expected: bytes | None = None) -> tuple[bytes, bytes]:
        """Prefix and content of the chunk at `offset`; its checksum has to be the one `expected`."""
        if not 1 <= family <= len(self.sets):
            raise Corrupt("index: it names a family that there is not")
        at = self.sets[family - 1].at + offset
        file = self.families[family - 1].file
        prefix = file[at : at + PREFIX_BYTES]
        if len(prefix) < PREFIX_BYTES or prefix[:4] != b"PCHK":
            raise Corrupt("index: it names a place where there is no chunk")
        kind, form, count = prefix[4], prefix[5], number(prefix, 8, 8)
        thing = f"chunk {count}" if kind in OF_PAGES else "index"
        stored = file[at + PREFIX_BYTES : at + PREFIX_BYTES + number(prefix, 28, 4)]
        if blake3([prefix[:32], stored])[:16] != prefix[32:] or not _is_chunk(prefix):
            raise Corrupt(f"{thing}: damaged: its checksum does not match")
        if expected not in (None, prefix[32:]):
            raise Corrupt(f"{thing}: it is not the one that the index names")
        if self.keys is not None:
            key = self.keys.pages if kind in OF_PAGES else self.keys.index
            nonce = bytes([kind, 0, 0, 0]) + count.to_bytes(8, "big")
            stored = self._open(key, nonce, self.header.set + prefix[:32], stored, thing)
        content = decompress(form, stored, number(prefix, 24, 4), thing)
        if prefix[6]:
            content = with_tails(kind, number(prefix, 20, 4), content, thing)
        return prefix, content

    def index(self) -> Iterator[tuple[int, int, bytes]]:
        """Family, offset and checksum of each chunk of pages; those of page hashes are read, too."""
        chunks, others = self._entries()
        yield from chunks
        for where in others:
            self.chunk(*where)

    def _entries(self) -> tuple[list[tuple[int, int, bytes]], list[tuple[int, int, bytes]]]:
        """Family, offset and checksum of each chunk of pages; then of page hashes, in a log set of commits."""
        raw, offset = b"", self.manifest.index_offset
        for place in range(self.manifest.index_chunks):
            prefix, content = self.chunk(1, offset)
            if prefix[4] != ChunkKind.INDEX or number(prefix, 8, 8) != place:
                raise Corrupt("index: another chunk is in its place")
            raw += content
            offset += PREFIX_BYTES + number(prefix, 28, 4)
        end = offset
        chunks, hashes, missing = (number(raw, at, 4) for at in (0, 4, 8))
        if len(raw) != 12 + (chunks + hashes) * ENTRY_BYTES + 4 * missing or chunks != self.manifest.chunks:
            raise Corrupt("index: its fields are malformed")
        entries = [raw[at : at + ENTRY_BYTES] for at in range(12, len(raw) - 4 * missing, ENTRY_BYTES)]
        self._check_padding(end, entries)
        for place, entry in enumerate(entries):
            check_zeros(entry, [(2, 8)], f"index, entry {place}")
        if self.header.kind == Kind.LOG and missing:
            raise Corrupt("index: a log set with pages that could not be read")
        places = [(number(entry, 0, 2), number(entry, 8, 8), entry[28:44]) for entry in entries]
        return places[:chunks], places[chunks:]

    def commits(self) -> list[Commit]:
        """The commits of a log set."""
        place, found = self.header.place, list[Commit]()
        assert place is not None
        for count, where in enumerate(self._entries()[1]):
            prefix, content = self.chunk(*where)
            rows = _parse_commits(content)
            if prefix[4] != ChunkKind.COMMITS or number(prefix, 8, 8) != count or number(prefix, 16, 4) or prefix[5]:
                raise Corrupt("index: it does not name the list of commits")
            if len(rows) != number(prefix, 20, 4):
                raise Corrupt("commits: a row is malformed")
            found += rows
        lsns = [place.first, *(commit.lsn for commit in found)]
        if any(before >= after for before, after in zip(lsns, lsns[1:])):
            raise Corrupt("commits: their numbers do not grow")
        times = [commit.time for commit in found] or [0]
        if len(found) != place.commits or lsns[-1] != place.last or (min(times), max(times)) != place.times:
            raise Corrupt("commits: they are not those that the set header says")
        return found

    def versions(self, commits: Sequence[Commit]) -> Iterator[tuple[int, int, bytes]]:
        """Page number, place of its commit and page, for each version in a log set."""
        size, before, count = self.header.page_size, (0, 0), 0
        for chunk, where in enumerate(self._entries()[0]):
            prefix, content = self.chunk(*where)
            pages = number(prefix, 20, 4)
            thing = f"chunk {chunk}"
            if prefix[4] != ChunkKind.LOG_PAGES or number(prefix, 8, 8) != chunk or len(content) != pages * (8 + size) or not pages:
                raise Corrupt(f"{thing}: it has no pages of a log, or they do not fit")
            if content[:4] != prefix[16:20]:
                raise Corrupt(f"{thing}: its first page is another one")
            for row in range(pages):
                version = number(content, 8 * row, 4), number(content, 8 * row + 4, 4)
                if version <= before or version[1] >= len(commits) or not 1 <= version[0] <= commits[version[1]].pages:
                    raise Corrupt(f"{thing}: its list of pages is out of order or names no page")
                at = 8 * pages + size * row
                before = version
                yield *version, content[at : at + size]
            count += pages
        if count != self.manifest.pages:
            raise Corrupt("index: it does not name all pages of the log")

    def _check_padding(self, index_end: int, entries: Sequence[bytes]) -> None:
        """What lies behind the chunks that the index names: padding, in a set that has it, and nothing else."""
        if self.header.version == 1:
            return
        count = 0
        for family, (own, (length, _)) in enumerate(zip(self.sets, self.manifest.ends), 1):
            ends = [number(entry, 8, 8) + PREFIX_BYTES + number(entry, 16, 4) for entry in entries if number(entry, 0, 2) == family]
            offset = max([index_end if family == 1 else len(own.header.raw), *ends])
            while offset < length:
                prefix, content = self.chunk(family, offset)
                if prefix[4] != ChunkKind.PADDING or prefix[8:24] != count.to_bytes(8, "big") + bytes(8) or any(content):
                    raise Corrupt("padding: something else than padding is there")
                offset += PREFIX_BYTES + number(prefix, 28, 4)
                count += 1
            if offset != length:
                raise Corrupt("padding: something else than padding is there")

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """Each page that the set has, with its number."""
        size = self.header.page_size
        for where in self.index():
            prefix, content = self.chunk(*where)
            first, count = number(prefix, 16, 4), number(prefix, 20, 4)
            if prefix[4] == ChunkKind.PAGES:
                numbers, pages = range(first, first + count), content
            else:
                numbers = [number(content, at, 4) for at in range(0, 4 * count, 4)]
                pages = content[4 * count :]
            if len(pages) != count * size:
                raise Corrupt(f"chunk {number(prefix, 8, 8)}: its pages do not fit")
            for place, page in enumerate(numbers):
                if not 1 <= page <= self.header.pages:
                    raise Corrupt(f"chunk {number(prefix, 8, 8)}: its pages do not fit")
                yield page, pages[place * size : (place + 1) * size]


def with_tails(kind: int, count: int, content: bytes, thing: str) -> bytes:
    """The content with zeros where each page of a sealed database has its tail."""
    listed = {ChunkKind.LISTED_PAGES: 4, ChunkKind.LOG_PAGES: 8}.get(ChunkKind(kind), 0) * count
    stored = len(content) - listed
    if kind not in OF_PAGES or count == 0 or stored < 0 or stored % count != 0:
        raise Corrupt(f"{thing}: its pages do not fit")
    if len(content) + TAIL_BYTES * count > CHUNK_BYTES_MAX:
        raise Corrupt(f"{thing}: too long")
    size = stored // count
    pages = (content[at : at + size] + bytes(TAIL_BYTES) for at in range(listed, len(content), size or 1))
    return content[:listed] + b"".join(pages)


def _parse_commits(content: bytes) -> list[Commit]:
    found, at = list[Commit](), 0
    while at < len(content):
        row = content[at : at + 23]
        name = content[at + 23 : at + 23 + number(row, 21, 2)]
        at += 23 + number(row, 21, 2)
        if len(row) < 23 or at > len(content) or len(name) > 512 or not number(row, 16, 4):
            raise Corrupt("commits: a row is malformed")
        if row[20] > 1:
            raise Unsupported(f"commits: flags {row[20]} are not known")
        try:
            mark = name.decode()
        except UnicodeDecodeError:
            raise Corrupt("commits: a row is malformed") from None
        if len(mark) > 128 or mark != readable(mark):
            raise Corrupt("commits: a row is malformed")
        found.append(Commit(number(row, 0, 8), number(row, 8, 8), number(row, 16, 4), mark))
    return found


def restore_log(sets: Sequence[OpenSet], log: OpenSet, stop: int | None = None, allow_clear: bool = False) -> bytes:
    """The database of the sets before, behind the first `stop` commits of a log set; behind all without that."""
    raw, size, header = restore(sets, allow_clear), log.header.page_size, log.header
    if header.kind != Kind.LOG or size != sets[-1].header.page_size:
        raise Corrupt(f"backup set {header.position}: it is no log set of this database")
    if not allow_clear and (header.algorithm is None) != (sets[-1].header.algorithm is None):
        raise NotSealed("of the full set and its log set one is NOT sealed: --allow-clear believes it")
    place, before = header.place, sets[-1].header.place
    assert place is not None
    if before is None or before.fork != place.fork or not place.first <= before.last <= place.last:
        raise Corrupt(f"backup set {header.position}: it does not go on behind the set before")
    pages = {page: raw[(page - 1) * size : page * size] for page in range(1, len(raw) // size + 1)}
    commits = log.commits()
    stop = len(commits) if stop is None else stop
    for page, commit, content in log.versions(commits):
        if commit < stop:
            pages[page] = content
    count = commits[stop - 1].pages if stop else len(raw) // size
    return b"".join(pages.get(page, bytes(size)) for page in range(1, count + 1))


def restore(sets: Sequence[OpenSet], allow_clear: bool = False) -> bytes:
    """The database: of a full set, and of a differential based on it. A sealed one's tails are zeros."""
    last = sets[-1].header
    if last.kind == Kind.LOG:
        raise Unsupported(f"backup set {last.position}: it is a log set, which has no database")
    if not allow_clear and len({one.header.algorithm is None for one in sets}) > 1:
        raise NotSealed("of the full set and its differential one is NOT sealed: --allow-clear believes it")
    if sets[0].header.kind != Kind.FULL:
        raise Corrupt(f"backup set {sets[0].header.position}: it is a differential: its full set is needed")
    if len(sets) == 2 and last.base != sets[0].header.set:
        raise Corrupt(f"backup set {last.position}: it was made from another full set")
    if len(sets) == 2 and last.base_manifest not in (bytes(32), hashlib.sha256(sets[0].manifest.raw).digest()):
        raise Unauthentic(
            f"backup set {sets[0].header.position}: its manifest is another one than that of the full set from which "
            f"backup set {last.position} was made: somebody has exchanged what is in it"
        )
    pages: dict[int, bytes] = {}
    for one in sets:
        pages.update(one.pages())
    if any(page not in pages for page in range(1, last.pages + 1)):
        raise Corrupt("index: it does not name every page")
    return b"".join(pages[page] for page in range(1, last.pages + 1))
