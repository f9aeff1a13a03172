"""Compares a database with what was salvaged of it: rows.py PLAIN NEW PAGE,PAGE,...

Walks PLAIN's trees by SQLite's file format to find on which pages each row lies. Every row none of whose pages is damaged has
to be in NEW, in its table or, from the same page, in lost_and_found; no row of NEW may be one that PLAIN does not have.
Prints as JSON: rows compared, rows on damaged pages, rows missing. Exit 1 if a row is missing that should be there, or differs.
"""

import hashlib
import json
import mmap
import sqlite3
import sys

plain, new = sys.argv[1:3]
damaged = {int(page) for page in sys.argv[3].split(",") if page}
with open(plain, "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
size = int.from_bytes(data[16:18], "big")
size = 65536 if size == 1 else size
usable = size - data[20]


def varint(at):
    value = 0
    for index in range(9):
        byte = data[at]
        at += 1
        if index == 8:
            return value << 8 | byte, at
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at


def word(at):
    return int.from_bytes(data[at : at + 4], "big")


def chain(number, left):
    while left > 0:
        yield number
        left -= usable - 4
        number = word((number - 1) * size)


def cells(number):
    """Each row of a tree: its rowid, and its pages besides those above it. For WITHOUT ROWID: None."""
    base = (number - 1) * size
    at = base + (100 if number == 1 else 0)
    kind, count = data[at], int.from_bytes(data[at + 3 : at + 5], "big")
    pointers = at + (12 if kind in (2, 5) else 8)
    for index in range(count):
        cell = base + int.from_bytes(data[pointers + 2 * index : pointers + 2 * index + 2], "big")
        if kind in (2, 5):
            yield from cells(word(cell))
            cell += 4
        if kind == 5:
            continue
        bytes_, cell = varint(cell)
        rowid = None
        if kind == 13:
            rowid, cell = varint(cell)
            rowid -= (rowid >> 63) << 64
        most = usable - 35 if kind == 13 else (usable - 12) * 64 // 255 - 23
        pages = (number,)
        if bytes_ > most:
            least = (usable - 12) * 32 // 255 - 23
            here = least + (bytes_ - least) % (usable - 4)
            here = here if here <= most else least
            pages += tuple(chain(word(cell + here), bytes_ - here))
        yield rowid, pages
    if kind in (2, 5):
        yield from cells(word(at + 8))


def quoted(name):
    return '"%s"' % name.replace('"', '""')


old = sqlite3.connect("file:%s?mode=ro" % plain, uri=True)
old.text_factory = bytes
got = sqlite3.connect("file:%s?vfs=pellucid" % new, uri=True)
got.text_factory = bytes


def digest(values):
    return hashlib.blake2b(repr(values).encode(), digest_size=12).digest()


aside = set()
if got.execute("SELECT 1 FROM sqlite_schema WHERE name = 'lost_and_found'").fetchone():
    for row in got.execute("SELECT * FROM lost_and_found"):
        aside.add((row[2], row[3]))

names = [name.decode() for (name,) in old.execute(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_stat%' "
    "AND name <> 'sqlite_sequence'")]
roots = {name.decode(): root for name, root in old.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'")}
there = {name.decode() for (name,) in got.execute("SELECT name FROM sqlite_schema")}
counted = {"rows": 0, "on_damaged": 0, "missing": 0, "in_lost_and_found": 0}
wrong = []
for name in names:
    rowids = data[(roots[name] - 1) * size] in (5, 13)
    where = {}
    if rowids:
        where = {rowid: pages for rowid, pages in cells(roots[name])}
        columns = "rowid, *"
    else:
        # Rows in the order of their key, as the tree has them.
        order = list(cells(roots[name]))
        columns = "NULL, *"
    select = "SELECT %s FROM %s" % (columns, quoted(name))
    salvaged = set()
    if name in there:
        for row in got.execute(select):
            salvaged.add(digest(row))
    else:
        wrong.append("table %s is missing" % name)
    seen = 0
    keys = "" if rowids else " ORDER BY " + ", ".join(
        "%d" % (2 + cid) for cid, pk in sorted(
            ((cid, pk) for cid, _, _, _, _, pk in old.execute("PRAGMA table_info(%s)" % quoted(name)) if pk), key=lambda c: c[1]))
    for index, row in enumerate(old.execute(select + keys)):
        pages = where[row[0]] if rowids else order[index][1]
        key = digest(row)
        hit = not damaged.isdisjoint(pages)
        counted["on_damaged"] += hit
        if key in salvaged:
            counted["rows"] += 1
            seen += 1
        elif any((page, row[0]) in aside for page in pages):
            counted["in_lost_and_found"] += 1
        else:
            counted["missing"] += 1
            if not hit:
                wrong.append("table %s: row %r on pages %r is missing" % (name, row[:2], sorted(pages)[:5]))
    if seen != len(salvaged):
        wrong.append("table %s has %d rows that were not there" % (name, len(salvaged) - seen))
print(json.dumps(counted))
for line in wrong[:20]:
    print(line, file=sys.stderr)
sys.exit(1 if wrong else 0)
