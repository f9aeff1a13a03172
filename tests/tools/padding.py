#!/usr/bin/env python3
"""How many backups it takes to read a secret of twelve characters off the sizes of compressed, sealed backups.

    padding.py PELLUCID [SEEDS]     the program, and how many secrets (20)

The attacker adds a row to the database and sees the length of the set that follows: first a row with one of 40 guesses, as
findings of compression before encryption do (CRIME, BREACH). With --padding the length is that of a class. So the attacker looks
for a row of random characters that brings a wrong guess just over the border of a class, by halving, and asks the 40 guesses
then; if none stands out alone, a shorter row is tried. SECURITY.md has the figures.

Prints for each way how many secrets were found, and the backups for one: mean, most.
"""

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

GUESSES = 40
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
CLASS_BYTES_MOST = 1024
TRIES = 8


class Victim:
    """A database with a secret, whose owner backs it up each time that the attacker has written a row."""

    def __init__(self, pellucid: str, place: Path, secret: str, padding: bool) -> None:
        self.pellucid, self.place, self.padding, self.backups = pellucid, place, padding, 0
        self.environment = {**os.environ, "PELLUCID_HOME": str(place / "keys")}
        self.sql = f"CREATE TABLE setting(k, v); CREATE TABLE comment(who, text); INSERT INTO setting VALUES('api', 'api_key={secret}');"
        subprocess.run(["sqlite3", "app.db", self.sql], cwd=place, check=True)
        self.run("encrypt", "app.db")

    def run(self, *words: str) -> None:
        subprocess.run([self.pellucid, "--quiet", *words], cwd=self.place, env=self.environment, check=True, capture_output=True)

    def length(self, guess: str, filler: str) -> int:
        sql = f"DELETE FROM comment; INSERT INTO comment VALUES('mallory', 'api_key={guess}'), ('m', '{filler}');"
        self.run("run", "--", "sqlite3", "app.db", sql)
        self.run("backup", "app.db", *(["--padding"] if self.padding else []), "--to", "b.bak")
        self.backups += 1
        media = self.place / "b.bak"
        length = media.stat().st_size
        media.unlink()
        return length


def stands_out(victim: Victim, guesses: list[str], filler: str) -> str | None:
    """The guess whose backup alone is the shortest."""
    lengths = {guess: victim.length(guess, filler) for guess in guesses}
    shortest = min(lengths.values())
    found = [guess for guess in guesses if lengths[guess] == shortest]
    return found[0] if len(found) == 1 else None


def attack(victim: Victim, guesses: list[str], chance: random.Random) -> str | None:
    if not victim.padding:
        return stands_out(victim, guesses, "")
    row = "".join(chance.choice(CHARACTERS) for _ in range(CLASS_BYTES_MOST))
    wrong = "".join(chance.choice(CHARACTERS) for _ in range(12))
    low, high = 0, CLASS_BYTES_MOST
    within = victim.length(wrong, row[:low])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if victim.length(wrong, row[:middle]) == within else (low, middle)
    for further in range(TRIES):
        found = stands_out(victim, guesses, row[: high + 3 - further])
        if found:
            return found
    return None


def main() -> int:
    pellucid, seeds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    for padding in (False, True):
        found, backups = 0, []
        for seed in range(seeds):
            chance = random.Random(seed)
            guesses = ["".join(chance.choice(CHARACTERS) for _ in range(12)) for _ in range(GUESSES)]
            with tempfile.TemporaryDirectory() as place:
                victim = Victim(pellucid, Path(place), guesses[17], padding)
                found += attack(victim, guesses, chance) == guesses[17]
                backups.append(victim.backups)
        way = "with --padding" if padding else "without padding"
        print(f"{way}: {found} of {seeds} found, {sum(backups) / seeds:.0f} backups for one, {max(backups)} at most", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
