#!/usr/bin/env python3
"""Makes a test database: any size, every kind of object, always the same for the same arguments.

Needs only Python's own sqlite3. The same arguments and the same SQLite give the same file, byte for byte.

    tests/data/generate.py --size 1GiB big.db
    tests/data/generate.py --size 100MiB --encoding UTF-16le --page-size 8192 utf16.db
    tests/data/generate.py --size 4MiB --marker 9f1c...e7 --journal-mode wal marked.db

With --marker, the given bytes stand in many rows: short and overflowing blobs, an index and a WITHOUT ROWID
table as raw bytes, and as hexadecimal text (lower case) in ordinary text and in the full-text index. Without it, nothing is marked.

Exit: 0 done, 1 failed, 2 usage, 3 the SQLite at hand lacks FTS5 or R-Tree (--allow-missing leaves them out, and says so).
"""

import argparse
import os
import random
import sqlite3
import sys

WORDS = (
    "amber anchor apple archive arrow autumn basin beacon birch bottle bridge bronze candle canyon carbon cedar cellar "
    "chapel cinder circle clover cobalt copper coral cotton crystal damask delta desert diamond ember engine fabric "
    "falcon feather ferry flint forest fountain galley garnet ginger glacier granite harbor harvest hazel helmet hollow "
    "indigo iris island ivory jasmine juniper kettle lantern lattice ledger lemon linen lumber magnet maple marble "
    "meadow mercury mirror mortar needle nickel oasis ocean olive onyx orchard osprey paper pebble pepper pillar "
    "plaster prairie quarry quartz raven reed ribbon river saddle saffron sandal sapphire satin shadow silver slate "
    "spruce stable summit tallow temple thistle thunder timber topaz tunnel turquoise umber valley velvet vessel "
    "walnut willow winter zephyr übermut naïve façade Ångström λόγος слово 日本語 𝄞"
).split()

SCHEMA = """
CREATE TABLE customers(
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL COLLATE NOCASE, email TEXT UNIQUE, joined TEXT,
  limit_cents INT CHECK (limit_cents >= 0), note TEXT DEFAULT 'none');
CREATE TABLE orders(
  id INTEGER PRIMARY KEY, customer INT NOT NULL REFERENCES customers(id) ON DELETE CASCADE, placed TEXT,
  quantity INT, price_cents INT, discount REAL,
  total_cents INT GENERATED ALWAYS AS (CAST(quantity * price_cents * (1 - discount) AS INT)) STORED,
  label TEXT GENERATED ALWAYS AS ('order ' || id || ' for ' || customer) VIRTUAL);
CREATE INDEX orders_by_customer ON orders(customer, placed DESC);
CREATE INDEX orders_large ON orders(total_cents) WHERE total_cents > 500000;
CREATE INDEX orders_by_month ON orders(substr(placed, 1, 7));
-- no INTEGER PRIMARY KEY: rowids have gaps, and must survive
CREATE TABLE events(at TEXT, kind TEXT, payload BLOB);
CREATE INDEX events_by_payload ON events(payload);
-- rows of one to many overflow pages
CREATE TABLE documents(id INTEGER PRIMARY KEY, title TEXT, body TEXT, scan BLOB);
CREATE TABLE readings(sensor TEXT, at INT, value REAL, raw BLOB, PRIMARY KEY (sensor, at)) WITHOUT ROWID;
CREATE TABLE strict_types(i INTEGER, r REAL, t TEXT, b BLOB, a ANY) STRICT;
CREATE TABLE "odd ""name""; 表"("a column" TEXT, "select" INT, PRIMARY KEY ("select", "a column"));
CREATE TABLE never_filled(x);
CREATE TABLE audit(id INTEGER PRIMARY KEY, what TEXT, old INT, new INT);
CREATE TRIGGER orders_audit AFTER UPDATE OF quantity ON orders BEGIN
  INSERT INTO audit(what, old, new) VALUES ('order ' || new.id, old.quantity, new.quantity); END;
CREATE TRIGGER customers_gone BEFORE DELETE ON customers BEGIN
  INSERT INTO audit(what, old) VALUES ('customer gone', old.id); END;
CREATE VIEW customer_totals AS
  SELECT c.id, c.name, count(o.id) AS orders, coalesce(sum(o.total_cents), 0) AS total_cents
  FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id;
CREATE VIEW months AS WITH m AS (SELECT substr(placed, 1, 7) AS month, total_cents FROM orders)
  SELECT month, sum(total_cents) AS cents, rank() OVER (ORDER BY sum(total_cents) DESC) AS place FROM m GROUP BY month;
CREATE TRIGGER totals_rename INSTEAD OF UPDATE OF name ON customer_totals BEGIN
  UPDATE customers SET name = new.name WHERE id = old.id; END;
"""
FTS5 = """
CREATE VIRTUAL TABLE articles USING fts5(title, body, tokenize = 'porter unicode61');
CREATE VIRTUAL TABLE document_titles USING fts5(title, content = 'documents', content_rowid = 'id');
"""
RTREE = """
CREATE VIRTUAL TABLE places USING rtree(id, west, east, south, north, +name TEXT);
CREATE VIRTUAL TABLE cells USING rtree_i32(id, x0, x1, y0, y1);
"""


def size(text):
    for suffix, factor in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)):
        if text.endswith(suffix):
            return int(float(text[: -len(suffix)]) * factor)
    return int(text)


def power_of_two(text):
    value = int(text)
    if not 512 <= value <= 65536 or value & (value - 1):
        raise argparse.ArgumentTypeError("a power of two from 512 to 65536")
    return value


def marker(text):
    value = bytes.fromhex(text)
    if len(value) < 16:
        raise argparse.ArgumentTypeError("at least 16 bytes, so that it cannot appear by chance")
    return value


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("path", help="the database to make")
    parser.add_argument("--size", type=size, default=size("4MiB"), metavar="BYTES", help="at least; KiB, MiB, GiB too (4MiB)")
    parser.add_argument("--encoding", choices=["UTF-8", "UTF-16le", "UTF-16be"], default="UTF-8")
    parser.add_argument("--page-size", type=power_of_two, default=4096, metavar="N", help="512 to 65536 (4096)")
    parser.add_argument("--journal-mode", choices=["delete", "wal"], default="delete", help="the file's, when done")
    parser.add_argument("--auto-vacuum", choices=["none", "full", "incremental"], default="incremental")
    parser.add_argument("--marker", type=marker, metavar="HEX", help="16 bytes or more that blobs contain")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--allow-missing", action="store_true", help="go on without FTS5 or R-Tree")
    parser.add_argument("--force", action="store_true", help="replace the file")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()


class Content:
    """Deterministic values. Text and noise are cut from prepared pools, so that a GiB takes a minute or two."""

    def __init__(self, seed, mark):
        self.random = random.Random(seed)
        self.mark = mark
        self.text_pool = " ".join(self.random.choices(WORDS, k=1 << 17))
        self.noise_pool = self.random.randbytes(1 << 20)

    def below(self, n):
        return int(self.random.random() * n)

    def text(self, length):
        start = self.below(len(self.text_pool) - length)
        return self.text_pool[start : start + length]

    def noise(self, length):
        """Half noise, half text-like runs: pages of a real database are neither."""
        start = self.below(len(self.noise_pool) - length)
        return self.noise_pool[start : start + length]

    def words(self, n):
        return " ".join(self.random.choices(WORDS, k=n))

    def date(self):
        return "%04d-%02d-%02d %02d:%02d" % (
            1996 + self.below(30), 1 + self.below(12), 1 + self.below(28), self.below(24), self.below(60))

    def marked(self, i, blob):
        """Every fourth blob carries the marker: at its start, in its middle or at its end."""
        if self.mark is None or i % 4:
            return blob
        at = (0, len(blob) // 2, len(blob))[i // 4 % 3]
        return blob[:at] + self.mark + blob[at:]

    def marked_text(self, i, text):
        return text if self.mark is None or i % 4 else text + " " + self.mark.hex()


class Builder:
    def __init__(self, db, content, fts5, rtree):
        self.db, self.content, self.fts5, self.rtree = db, content, fts5, rtree
        self.count = dict.fromkeys(("customers", "orders", "events", "documents", "readings", "articles", "places"), 0)

    def rows(self, table, n):
        first = self.count[table] + 1
        self.count[table] += n
        return range(first, first + n)

    def fill(self, sql, rows):
        self.db.executemany(sql, rows)

    def round(self, scale):
        """One round: about 30 KiB times `scale`, in the proportions of the whole file."""
        c, below = self.content, self.content.below
        self.fill(
            "INSERT INTO customers(id, name, email, joined, limit_cents, note) VALUES (?,?,?,?,?,?)",
            ((i, c.words(2).title(), "c%d@example.com" % i, c.date(), below(10**6),
              None if i % 5 == 0 else c.marked_text(i, c.text(20 + below(60)))) for i in self.rows("customers", 8 * scale)))
        last = self.count["customers"]
        self.fill(
            "INSERT INTO orders(id, customer, placed, quantity, price_cents, discount) VALUES (?,?,?,?,?,?)",
            ((i * 3, 1 + below(last), c.date(), 1 + below(60), 100 + below(40000), below(5) / 20)
             for i in self.rows("orders", 40 * scale)))
        self.fill(
            "INSERT INTO events(at, kind, payload) VALUES (?,?,?)",
            ((c.date(), WORDS[below(40)], c.marked(i, c.noise(below(120)))) for i in self.rows("events", 25 * scale)))
        self.fill(
            "INSERT INTO documents(id, title, body, scan) VALUES (?,?,?,?)",
            ((i, c.words(4), c.text(200 + below(6000)), c.marked(i, c.noise(below(9000))))
             for i in self.rows("documents", 2 * scale)))
        self.fill(
            "INSERT INTO readings VALUES (?,?,?,?)",
            (("sensor-%02d" % (i % 37), i * 10, below(10**6) / 977, c.marked(i, c.noise(below(80))))
             for i in self.rows("readings", 40 * scale)))
        if self.fts5:
            self.fill(
                "INSERT INTO articles(rowid, title, body) VALUES (?,?,?)",
                ((i, c.words(3), c.marked_text(i, c.text(150 + below(300)))) for i in self.rows("articles", 4 * scale)))
        if self.rtree:
            def place(i):
                x, y = below(3600000) / 10000 - 180, below(1800000) / 10000 - 90
                return (i, x, x + below(100) / 1000, y, y + below(100) / 1000, c.words(2))
            self.fill("INSERT INTO places VALUES (?,?,?,?,?,?)", (place(i) for i in self.rows("places", 6 * scale)))

    def rare(self):
        """What needs to be there once: extreme values, a long row, gaps, free pages, work for the triggers."""
        db, c = self.db, self.content
        db.executemany("INSERT INTO strict_types VALUES (?,?,?,?,?)", [
            (0, 0.0, "", b"", None), (2**63 - 1, 1.7976931348623157e308, "a\0b", b"\0" * 40, 1),
            (-(2**63), 2.2250738585072014e-308, "𝄞" * 300, bytes(range(256)), "text"), (-1, float("inf"), "\ufeffé", None, b"blob"),
            (127, -0.1, " ", b"SQLite format 3\0", -0.5), (None, float("-inf"), None, c.marked(0, b""), 2**40)])
        db.executemany('INSERT INTO "odd ""name""; 表" VALUES (?,?)', [(w, i) for i, w in enumerate(WORDS)])
        db.execute("INSERT INTO documents(id, title, body, scan) VALUES (?,?,?,?)",
                   (self.count["documents"] + 1000, "one long row", c.text(300000), c.marked(0, c.noise(900000))))
        if self.rtree:
            db.executemany("INSERT INTO cells VALUES (?,?,?,?,?)",
                           [(i, i * 7, i * 7 + 5, -i * 3, -i * 3 + 2) for i in range(1, 400)])
        if self.fts5:
            db.execute("INSERT INTO document_titles(document_titles) VALUES ('rebuild')")
            db.execute("DELETE FROM articles WHERE rowid % 11 = 0")
        db.execute("DELETE FROM events WHERE rowid % 7 = 3 OR rowid BETWEEN 40 AND 160")
        db.execute("INSERT INTO events(rowid, at, kind) VALUES (1099511627776, '2038-01-19', 'far away')")
        db.execute("UPDATE orders SET quantity = quantity + 1 WHERE id % 50 = 0 AND id < 100000")
        db.execute("DELETE FROM customers WHERE id % 97 = 5 AND id < 20000")
        db.execute("UPDATE customer_totals SET name = 'Renamed Through A View' WHERE id = 4")
        # whole pages become free: VACUUM, incremental_vacuum and the freelist have something to do
        db.execute("CREATE TABLE passing AS SELECT body FROM documents LIMIT 60")
        db.execute("DROP TABLE passing")


def missing():
    """On a connection of its own: a temporary table would already settle the encoding."""
    db, lacks = sqlite3.connect(":memory:"), []
    for name, sql in (("FTS5", "CREATE VIRTUAL TABLE temp.probe USING fts5(x)"),
                      ("R-Tree", "CREATE VIRTUAL TABLE temp.probe USING rtree(id, a, b)")):
        try:
            db.execute(sql)
            db.execute("DROP TABLE temp.probe")
        except sqlite3.OperationalError:
            lacks.append(name)
    db.close()
    return lacks


def main():
    args = arguments()
    if os.path.exists(args.path):
        if not args.force:
            print("generate: error: `%s` exists; --force replaces it" % args.path, file=sys.stderr)
            return 1
        os.remove(args.path)
    if sqlite3.sqlite_version_info < (3, 37):
        print("generate: error: SQLite 3.37 or newer is needed, here is %s" % sqlite3.sqlite_version, file=sys.stderr)
        return 3
    lacks = missing()
    if lacks:
        print("generate: SQLite %s here lacks %s" % (sqlite3.sqlite_version, " and ".join(lacks)), file=sys.stderr)
        if not args.allow_missing:
            return 3

    db = sqlite3.connect(args.path, isolation_level=None)
    db.executescript("""
        PRAGMA page_size = %d; PRAGMA encoding = '%s'; PRAGMA auto_vacuum = %s;
        PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -32000; PRAGMA locking_mode = EXCLUSIVE;
        PRAGMA application_id = 0x50454C4C; PRAGMA user_version = 20240; PRAGMA recursive_triggers = OFF;
    """ % (args.page_size, args.encoding, args.auto_vacuum))
    builder = Builder(db, Content(args.seed, args.marker), "FTS5" not in lacks, "R-Tree" not in lacks)
    db.execute("BEGIN")
    for sql in (SCHEMA, FTS5 if builder.fts5 else "", RTREE if builder.rtree else ""):
        for statement in statements(sql):
            db.execute(statement)
    db.execute("COMMIT")

    def bytes_now():
        return db.execute("PRAGMA page_count").fetchone()[0] * args.page_size

    scale = max(1, min(200, args.size >> 19))
    while True:
        db.execute("BEGIN")
        builder.round(scale)
        db.execute("COMMIT")
        if not args.quiet and sys.stderr.isatty():
            print("\r%6d MiB" % (bytes_now() >> 20), end="", file=sys.stderr)
        if bytes_now() >= args.size:
            break
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("BEGIN")
    builder.rare()
    db.execute("COMMIT")
    db.execute("PRAGMA analysis_limit = 2000")
    db.execute("ANALYZE")
    db.execute("PRAGMA locking_mode = NORMAL")
    db.execute("PRAGMA journal_mode = %s" % args.journal_mode)
    db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    total, free = bytes_now(), db.execute("PRAGMA freelist_count").fetchone()[0]
    db.close()
    if not args.quiet:
        left_out = "; left out: " + ", ".join(lacks) if lacks else ""
        print("%s: %d bytes, %d free pages, seed %d, SQLite %s%s"
              % (args.path, total, free, args.seed, sqlite3.sqlite_version, left_out))
    return 0


def statements(script):
    """Splits a script at the ends of statements, as SQLite itself sees them."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            if pending.strip():
                yield pending
            pending = ""


if __name__ == "__main__":
    sys.exit(main())
