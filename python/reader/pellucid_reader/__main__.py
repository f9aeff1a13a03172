"""Turns a container into a plain database: `python3 -m pellucid_reader IN.db OUT.db` and where the keys are.

Exit: 0 done, 1 failed, 2 usage, 3 damage found.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .bundle import BYTES_MAX, open_bundle
from .container import read_pages
from .errors import MissingKey, ReaderError
from .expected import Expected, parse_file_ids
from .keyring import Keyring, exported_certificate
from .protector import Certificate, KeysAtHand, passphrase_bytes


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="pellucid_reader",
        description="Reads a sealed database that nobody has open, with the WAL or hot journal beside it, "
        "and writes a plain one.",
        epilog="Exit status: 0 done, 1 failed, 2 usage, 3 damage found.",
    )
    parser.add_argument("source", metavar="IN.db", type=Path)
    parser.add_argument("target", metavar="OUT.db", type=Path, help="must not exist")
    parser.add_argument(
        "--file-id", metavar="ID", default="", help="refuse any other database; several with commas; as PELLUCID_PIN does"
    )
    options = parse_with_keys(parser, arguments)
    if not (options.key_file or options.passphrase_file or options.keyring or options.cert_file or options.bundle):
        parser.error("one of --key-file, --passphrase-file, --keyring, --bundle and --cert-file is needed")
    return options


def parse_with_keys(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the parser's own arguments and those that say where keys are, which have to fit each other."""
    parser.add_argument("--key-file", type=Path, help="32 raw bytes or 64 hexadecimal digits")
    parser.add_argument("--passphrase-file", type=Path)
    parser.add_argument("--keyring", metavar="DIR", type=Path, help="the instance directory, with service.key")
    parser.add_argument("--keyring-passphrase-file", type=Path, help="for a service master key that is bound to one")
    parser.add_argument("--cert-file", type=Path, help="an exported certificate, PEM")
    parser.add_argument("--key-file-pem", type=Path, help="its private key, PKCS#8 in PEM")
    parser.add_argument("--bundle", type=Path, help="a bundle of the instance, instead of the instance itself")
    parser.add_argument("--password-file", type=Path, help="the password of the private key, or of the bundle")
    parser.add_argument("--allow-recovery", action="store_true", help="use protectors that are for recovery, too")
    parser.add_argument("--allow-cost", action="store_true", help="allow passphrases that cost more than is usual")
    options = parser.parse_args(arguments)
    if bool(options.cert_file) != bool(options.key_file_pem):
        parser.error("--cert-file and --key-file-pem go together")
    if options.password_file and bool(options.key_file_pem) == bool(options.bundle):
        parser.error("--password-file is for --key-file-pem or for --bundle")
    return options


def keys_at_hand(options: argparse.Namespace) -> KeysAtHand:
    exported = bundle = None
    password = passphrase_bytes(options.password_file.read_bytes()) if options.password_file else None
    if options.cert_file:
        exported = exported_certificate(options.cert_file.read_bytes(), options.key_file_pem.read_bytes(), password)
    keyring = keyring_of(options)
    allow_cost = is_cost_allowed(options)
    if options.bundle:
        with open(options.bundle, "rb") as file:
            raw = file.read(BYTES_MAX + 1)
        find_own = keyring.find_certificate if keyring else None
        at_hand = KeysAtHand(
            passphrase=password,
            find_certificate=find_own,
            allow_recovery=True,
            allow_cost=allow_cost,
            allow_classical=os.environ.get("PELLUCID_ALLOW_CLASSICAL") == "1",
        )
        bundle = open_bundle(raw, at_hand)

    def find_certificate(thumbprint: bytes) -> Certificate:
        if exported and exported.thumbprint == thumbprint:
            return exported
        if bundle:
            return bundle.find_certificate(thumbprint)
        if keyring:
            return keyring.find_certificate(thumbprint)
        raise MissingKey("is not at hand")

    return KeysAtHand(
        key_file=options.key_file.read_bytes() if options.key_file else None,
        passphrase=options.passphrase_file.read_bytes() if options.passphrase_file else None,
        find_certificate=find_certificate if exported or keyring or bundle else None,
        allow_recovery=options.allow_recovery,
        allow_cost=allow_cost,
        allow_classical=os.environ.get("PELLUCID_ALLOW_CLASSICAL") == "1",
    )


def is_cost_allowed(options: argparse.Namespace) -> bool:
    return options.allow_cost or os.environ.get("PELLUCID_ALLOW_COST") == "1"


def keyring_of(options: argparse.Namespace) -> Keyring | None:
    if not options.keyring:
        return None
    file = options.keyring_passphrase_file
    return Keyring(options.keyring, passphrase_bytes(file.read_bytes()) if file else None, is_cost_allowed(options))


def convert(options: argparse.Namespace) -> None:
    refuse_left_overs(options.target)
    file_ids = parse_file_ids(f"{options.file_id},{os.environ.get('PELLUCID_PIN', '')}")
    keyring = keyring_of(options)
    expected = keyring.expected_at(options.source, file_ids) if keyring else Expected(file_ids=file_ids)
    write(options.target, read_pages(options.source, keys_at_hand(options), note, expected))


def note(line: str) -> None:
    print(f"pellucid_reader: note: {line}", file=sys.stderr)


def refuse_left_overs(target: Path) -> None:
    for suffix in ("-wal", "-journal"):
        left_over = target.with_name(target.name + suffix)
        if os.path.lexists(left_over):  # SQLite would apply it to what is written here
            raise FileExistsError(17, "File exists", str(left_over))


def write(target: Path, pages: Iterable[bytes]) -> None:
    # 0600: what was sealed is in clear from here on.
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pages)
    except BaseException:
        target.unlink()  # half a database is none
        raise


def told(work: Callable[[], None], source: Path) -> int:
    """Does the work; an error goes to the user, its number to the shell."""
    try:
        work()
    except ReaderError as error:
        print(f"pellucid_reader: error: {error}", file=sys.stderr)
        return error.exit_status
    except OSError as error:
        print(f"pellucid_reader: error: {error.filename or source}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    return told(lambda: convert(options), options.source)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
