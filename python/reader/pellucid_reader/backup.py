"""Lists and restores backups: `python3 -m pellucid_reader.backup MEDIA... [--to OUT.db]` and where the keys are.

Without `--to` it lists the sets. Where damage may hide the last one, nothing is restored unless `--position` names a set.
A set without a signature behind a signed one is not believed without `--allow-unsigned`.
A set in clear among sealed ones is not believed without `--allow-clear`; one that lies alone is, unless
`PELLUCID_REQUIRE=1` asks for sealed ones. What was a sealed database becomes a plain one, whose pages keep 32 reserved bytes of zeros. Exit: 0 done, 1 failed,
2 usage, 3 damage found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .__main__ import keys_at_hand, note, parse_with_keys, refuse_left_overs, told, write
from .errors import MissingKey
from .media import Family, Kind, OpenSet, last_position, open_families, readable, restore


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pellucid_reader.backup", description=__doc__.partition("\n")[0])
    parser.add_argument("media", metavar="MEDIA", type=Path, nargs="+", help="all files of one media set")
    parser.add_argument("--base", metavar="MEDIA", type=Path, nargs="+", help="the media of a differential's full set")
    parser.add_argument("--to", metavar="OUT.db", type=Path, help="must not exist")
    parser.add_argument("--allow-clear", action="store_true", help="believe a set in clear among sealed ones")
    parser.add_argument("--allow-unsigned", action="store_true", help="believe a set without a signature behind a signed one")
    parser.add_argument("--position", type=int, help="which set, from 1; the last one without it")
    return parse_with_keys(parser, arguments)


def families(paths: Sequence[Path]) -> list[Family]:
    found = open_families([path.read_bytes() for path in paths])
    for path, family in zip(paths, found):
        if family.interrupted:
            note(f"{path}: {family.interrupted.trouble}")
    return found


def listed(found: Sequence[Family], options: argparse.Namespace) -> None:
    for own in min(found, key=lambda family: len(family.sets)).sets:
        header = own.header
        sealed = header.algorithm.name if header.algorithm else "none"
        try:
            name = OpenSet(found, header.position, keys_at_hand(options), True, True).description["database"]
            name = readable(str(name))
        except MissingKey:
            name = "(needs the key)"
        print(header.position, header.kind.name.lower(), name, header.pages, header.page_size, sealed, header.set.hex())
    last_position(found)  # behind damage there may be more


def opened(found: Sequence[Family], options: argparse.Namespace) -> list[OpenSet]:
    keys = keys_at_hand(options)
    allow = options.allow_clear, options.allow_unsigned
    last = OpenSet(found, options.position or last_position(found) or 1, keys, *allow)
    if not last.is_signed:
        note("the backup is not signed, or its certificate is not at hand: whoever has its key can have made it")
    if last.header.kind != Kind.DIFFERENTIAL:
        return [last]
    base = families(options.base) if options.base else found
    for own in base[0].sets:
        if own.header.set == last.header.base:
            full = OpenSet(base, own.header.position, keys, *allow)
            if last.is_signed and not full.is_signed:
                note("the full set of the differential is not signed, or its certificate is not at hand")
            return [full, last]
    raise MissingKey(f"the full set {last.header.base.hex()} is not on the media that are named")


def show_or_restore(options: argparse.Namespace) -> None:
    if options.to:
        refuse_left_overs(options.to)
    found = families(options.media)
    if options.to is None:
        listed(found, options)
    else:
        write(options.to, [restore(opened(found, options), options.allow_clear)])


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    return told(lambda: show_or_restore(options), options.media[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
