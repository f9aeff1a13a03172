"""Free races: a command runs at its own speed while a thread exchanges one of its names in a loop."""
import ctypes
import os
import random
import subprocess
import threading

import judge
import tracer

RENAME_EXCHANGE = 2
AT_FDCWD = -100
KINDS = ["link-text", "link-database", "link-sealed", "fifo", "other", "folder"]


def swap(one, other):
    """Exchanges two names at once (renameat2(2)); whether that was done."""
    return tracer.libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), ctypes.c_uint(RENAME_EXCHANGE)) == 0


def play(path, other, over):
    """Exchanges a name with another thing until `over`; a name that is free comes and goes."""
    while not over.is_set():
        if not swap(path, other):
            try:
                os.rename(other, path)
                os.rename(path, other)
            except OSError:
                pass


def race(place, command, names, kind, limit_s, output):
    """One run against one name; how it ended, and what went wrong."""
    place.lay_out()
    judge.fill_folder(place, names)
    before = judge.secrets(place)
    path = place.folder if kind == "folder" else os.path.join(place.folder, random.choice(sorted(names)))
    other = path + ".other"
    judge.EXCHANGES[kind](place, other)
    over = threading.Event()
    thread = threading.Thread(target=play, args=(path, other, over))
    thread.start()
    try:
        with open(output, "wb") as said:
            done = subprocess.run(command, cwd=place.home, env=place.environment, stdin=subprocess.DEVNULL, stdout=said,
                                  stderr=said, timeout=limit_s)
        status = done.returncode
    except subprocess.TimeoutExpired:
        status = None
    finally:
        over.set()
        thread.join()
    with open(output, "rb") as said:
        ended = tracer.Ended(status, said.read(), [])
    return path, ended, judge.faults(place, ended, before)
