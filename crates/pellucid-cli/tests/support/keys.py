"""Prints every key that opens a sealed database, one `NAME HEX` a line, for a test that searches memory for them.

usage: keys.py READER DATABASE INSTANCE

READER is the folder of the second reader (python/reader), so that what is searched for is not what the searched
program says it is. Numbers of the private key come in both byte orders: as in a file, and as arithmetic keeps them.
"""

import sys
from pathlib import Path

reader, database, instance = sys.argv[1:]
sys.path.insert(0, reader)

from pellucid_reader.header import choose_header, parse_sector_0  # noqa: E402
from pellucid_reader.keyring import Keyring  # noqa: E402
from pellucid_reader.protector import KeysAtHand, unwrap  # noqa: E402
from pellucid_reader.unit import FileKind, generation_key, hkdf  # noqa: E402

found: dict[str, bytes] = {}
keyring = Keyring(Path(instance))
found["service master key"] = keyring._service_master_key()
found["database master key"] = keyring._database_master_key()


def find_certificate(thumbprint: bytes):
    certificate = keyring.find_certificate(thumbprint)
    numbers = certificate.private_key.private_numbers()
    for name in "pqd":
        number = getattr(numbers, name)
        length = (number.bit_length() + 7) // 8
        found[f"private key {name}, as in a file"] = number.to_bytes(length, "big")
        found[f"private key {name}, as in arithmetic"] = number.to_bytes(length, "little")
    return certificate


region = Path(database).read_bytes()[:16384]
header = choose_header(region, parse_sector_0(region[:512]).file_id)
dek = unwrap(header, KeysAtHand(find_certificate=find_certificate))
found["DEK"] = dek
found["header key"] = hkdf(dek, header.file_id, b"pellucid/1 header")
for kind in (FileKind.DATABASE, FileKind.WAL, FileKind.JOURNAL):
    algorithm = header.current_row.algorithm
    for generation in range(1, header.generation + 1):
        key = generation_key(dek, header.file_id, generation, algorithm, kind)
        found[f"generation key {generation} of the {kind.name.lower()}"] = key

for name, key in found.items():
    print(name, key.hex())
