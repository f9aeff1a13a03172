#!/usr/bin/env python3
"""Stops commands in a folder of another user's before each system call with a path there, and exchanges that name.

  races.py [--programs DIR] [--exchanges A,B] [--seed N] [--draw SCENES] [--some COUNT] [--free COUNT] [--list] [SCENE...]

Each stop of each scene is taken once with each exchange, for good and for one call alone. Runs as root: the folder
belongs to uid 12345, the files that the user wants to get at belong to root. With --some, COUNT cases of each scene, and
with --draw so many scenes, are drawn by the seed; with --free, COUNT runs without stops against a thread that exchanges a name in a loop.
Last lines: `RESULT stops cases faults`, and `N passed, N failed`. Exit: 0 nothing went wrong, 1 something did, 77 it
cannot run here.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import free
import judge
import scenes
import tracer

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", default=os.environ.get("PELLUCID_BIN") or os.path.join(HERE, "../../../target/debug"))
    parser.add_argument("--exchanges", default=",".join(judge.EXCHANGES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--some", type=int, default=0)
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--free", type=int, default=0)
    parser.add_argument("--call", type=int, default=None, help="this stop alone")
    parser.add_argument("--limit", type=float, default=45, help="seconds after which a command hangs")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("scenes", nargs="*")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(scene.name for scene in scenes.SCENES))
        return 0
    if not tracer.SUPPORTED or os.geteuid() != 0 or not shutil.which("sqlite3"):
        print("SKIP: races: needs root, x86-64 and the program sqlite3")
        return 77
    wanted = [scenes.find(name) for name in chosen.scenes] or scenes.SCENES
    if chosen.draw:
        wanted = random.Random(chosen.seed).sample(wanted, min(chosen.draw, len(wanted)))
    programs = os.path.abspath(chosen.programs)
    stops = cases = failed = 0
    for scene in wanted:
        with tempfile.TemporaryDirectory(prefix="races") as base:
            os.chmod(base, 0o755)
            counted = run_scene(scene, base, programs, chosen)
        stops, cases, failed = stops + counted[0], cases + counted[1], failed + counted[2]
    print(f"RESULT {stops} {cases} {failed}")
    print(f"{cases - failed} passed, {failed} failed")
    return 1 if failed else 0


def run_scene(scene, base, programs, chosen):
    """All cases of one command: numbers of stops, cases, faults."""
    place = scenes.Place(base, scene, programs, os.path.join(programs, "libpellucid.so"))
    place.make()
    output = os.path.join(base, "said")
    command = [word.replace("{d}", place.folder).replace("{home}", place.home) for word in scene.command]

    def run(at_stop=None):
        return tracer.run(command, place.folder, output, chosen.limit, place.environment, at_stop, place.home)

    place.lay_out()
    plain = run()
    names = {os.path.basename(stop.path) for stop in plain.stops if stop.path != place.folder}
    wrong = judge.faults(place, plain, judge.secrets(scenes.Place(base, scene, programs, "")))
    if plain.status not in (0, 4) or wrong:
        raise SystemExit(f"{scene.name}: without an exchange: {plain.status}, {wrong}: {plain.said.decode(errors='replace')}")
    if chosen.free:
        random.seed(f"{chosen.seed} {scene.name}")
        failed = 0
        for _ in range(chosen.free):
            kind = random.choice(free.KINDS)
            path, ended, wrong = free.race(place, command, names, kind, chosen.limit, output)
            if wrong:
                failed += 1
                told(scene, place, f"a free race for {os.path.relpath(path, place.user)}, {kind}", wrong, ended)
        print(f"{scene.name}: {chosen.free} free races, {failed} failed", flush=True)
        return 0, chosen.free, failed
    every = [(at, kind, back) for at in range(len(plain.stops)) for kind in chosen.exchanges.split(",") for back in (False, True)]
    if chosen.call is not None:
        every = [case for case in every if case[0] == chosen.call]
    if chosen.some:
        every = random.Random(f"{chosen.seed} {scene.name}").sample(every, min(chosen.some, len(every)))
    failed = taken = 0
    for at, kind, back in every:
        place.lay_out()
        judge.fill_folder(place, names)
        before = judge.secrets(place)
        done = []

        def at_stop(stop):
            if stop.number == at:
                if judge.exchange(place, kind, stop.path):
                    done.append(stop)
            elif back and done and stop.number > at and len(done) == 1:
                judge.put_back(place, kind, done[0].path)
                done.append(None)
        ended = run(at_stop)
        if not done:
            continue
        taken += 1
        wrong = judge.faults(place, ended, before)
        if chosen.verbose:
            print(scene.name, at, done[0].call, os.path.basename(done[0].path), kind, back, ended.status, ended.said.decode(errors="replace"))
        if wrong:
            failed += 1
            stop = done[0]
            what = f"call {at} ({stop.call} {os.path.relpath(stop.path, place.user)}), {kind}{' for one call' if back else ''}"
            told(scene, place, what, wrong, ended)
    print(f"{scene.name}: {len(plain.stops)} stops, {taken} cases, {failed} failed", flush=True)
    return len(plain.stops), taken, failed


def told(scene, place, what, wrong, ended):
    """Prints what went wrong in a run."""
    said = ended.said.decode(errors="replace").strip()[-300:].replace(place.base, "")
    print(f"{scene.name}: {what}: {'; '.join(wrong)}; exit {ended.status}: {said!r}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
