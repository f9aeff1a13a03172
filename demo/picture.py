#!/usr/bin/env python3
"""Draws one HTML page of a database before and after `pellucid encrypt`. Needs only Python.

    demo/picture.py PLAIN SEALED OUT.html --find 'Alfreds Futterkiste' [--error-file FILE]

It reads the two files as a thief would: bytes, no key. Only the names of tables, in the page map of the plain
file, come from SQLite. Of files over 64 MiB it looks at evenly spread pages, and the page says so.
"""

import argparse
import base64
import html
import math
import os
import re
import sqlite3
import struct
import sys
import zlib
from collections import Counter

HEADER_REGION_BYTES = 16384  # docs/format.md: pages begin behind it
CELLS_MAX = 1500
SAMPLE_BYTES_MAX = 64 << 20
DOTS_WIDE, DOTS_HIGH = 288, 160

KINDS = {  # name on the page, in legend order
    "schema": "schema, page 1",
    "interior": "table, inner page",
    "leaf": "table rows",
    "index": "index",
    "overflow": "long values",
    "free": "free or other",
    "header": "header region",
    "sealed": "sealed page",
}


class Image:
    """One file as bytes in pages: counts, entropy of each page, kinds."""

    def __init__(self, path, page_size, header_bytes):
        self.path, self.page_size, self.header_bytes = path, page_size, header_bytes
        self.size = os.path.getsize(path)
        self.pages = max(1, (self.size - header_bytes) // page_size)
        total = -(-self.size // page_size)
        self.group = -(-total // CELLS_MAX)  # pages to a cell
        step = max(1, -(-self.size // SAMPLE_BYTES_MAX))
        self.sampled = step > 1
        self.counts = Counter()
        self.entropies = {}  # position of a page in the file, from 0 -> bits per byte
        packed = looked_at = 0
        with open(path, "rb") as file:
            for position in range(0, total, step):
                file.seek(position * page_size)
                page = file.read(page_size)
                counts = Counter(page)
                self.entropies[position] = entropy(counts)
                if (position + 1) * page_size > header_bytes:
                    self.counts.update(counts)
                    packed += len(zlib.compress(page, 6))
                    looked_at += len(page)
        self.packed_ratio = packed / max(1, looked_at)
        self.entropy = entropy(self.counts)

    def read(self, offset, length):
        with open(self.path, "rb") as file:
            file.seek(max(0, offset))
            return file.read(length)

    def search(self, needle):
        """Number of places where `needle` stands, and the first one."""
        found, first, keep, base = 0, None, len(needle) - 1, 0
        with open(self.path, "rb") as file:
            tail = b""
            while chunk := file.read(1 << 22):
                window = tail + chunk
                at = window.find(needle)
                while at >= 0:
                    found += 1
                    first = base - len(tail) + at if first is None else first
                    at = window.find(needle, at + 1)
                base += len(chunk)
                tail = window[-keep:] if keep else b""
        return found, first

    def strings(self):
        """Runs of eight or more printable characters, as `strings -n 8` counts them; at most the first 64 MiB."""
        with open(self.path, "rb") as file:
            return len(re.findall(rb"[\x20-\x7e\t]{8,}", file.read(SAMPLE_BYTES_MAX)))


def entropy(counts):
    total = sum(counts.values())
    return -sum(n / total * math.log2(n / total) for n in counts.values()) if total else 0.0


def plain_kinds(path, image):
    """Kind and owner of each page of the plain file: from dbstat where SQLite has it, else from first bytes."""
    kinds = {}
    try:
        db = sqlite3.connect("file:%s?mode=ro" % path.replace("?", "%3f").replace("#", "%23"), uri=True)
        indexes = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
        for number, name, kind in db.execute("SELECT pageno, name, pagetype FROM dbstat"):
            kinds[number - 1] = ("overflow" if kind == "overflow" else "index" if name in indexes
                                 else "interior" if kind == "internal" else "leaf", name)
        db.close()
    except sqlite3.Error:
        first_bytes = {2: "index", 10: "index", 5: "interior", 13: "leaf"}
        for position in image.entropies:
            kinds[position] = (first_bytes.get(image.read(position * image.page_size, 1)[0], "overflow"), "")
    kinds[0] = ("schema", "sqlite_schema")
    return kinds


def cells(image, kind_of):
    """The page map: [(kind, entropy, tooltip)], one for each group of pages."""
    out = []
    total = -(-image.size // image.page_size)
    head = image.group if image.group == 1 else -(-max(1, image.header_bytes) // image.page_size)
    starts = [0, *range(head, total, image.group)]  # of a large file, page 1 or the header region has a cell of its own
    for start, end in zip(starts, [*starts[1:], total]):
        positions = range(start, end)
        known = [p for p in positions if p in image.entropies] or [max(p for p in image.entropies if p <= start)]
        kinds = Counter(kind_of(p)[0] for p in positions)
        owners = sorted({kind_of(p)[1] for p in positions} - {""})
        mean = sum(image.entropies[p] for p in known) / len(known)
        first, last = (p + 1 - image.header_bytes // image.page_size for p in (positions[0], positions[-1]))
        kind = kinds.most_common(1)[0][0]
        pages = "" if kind == "header" else "page %s · " % (first if first == last else "%d-%d" % (first, last))
        owner = " · " + ", ".join(owners[:3]) + ("…" if len(owners) > 3 else "") if owners else ""
        out.append((kind, mean, "%s%s%s · %.2f bits/byte" % (pages, KINDS[kind], owner, mean)))
    return out


def map_svg(items, columns, rows, label):
    cell, gap = 20, 2.5
    parts = []
    for i, (kind, bits, tip) in enumerate(items):
        x, y = i % columns * cell, i // columns * cell
        opacity = 0.38 + 0.62 * min(1.0, bits / 7.95) ** 2
        parts.append('<rect class="k-%s" x="%g" y="%g" width="%g" height="%g" rx="3" fill-opacity="%.2f"><title>%s</title></rect>'
                     % (kind, x, y, cell - gap, cell - gap, opacity, html.escape(tip)))
    return ('<svg class="map" viewBox="0 0 %g %g" role="img" aria-label="%s">%s</svg>'
            % (columns * cell - gap, rows * cell - gap, html.escape(label), "".join(parts)))


def histogram_svg(counts, kind, top):
    """256 bars. Heights are square roots, so that rare values can be seen; what is above `top` is cut and labelled."""
    total = sum(counts.values())
    height, base = 168, 146
    bars = []
    for value in range(256):
        share = counts[value] / total
        tall = base * math.sqrt(min(1.0, share / top))
        bars.append('<rect x="%d" y="%.2f" width="2.05" height="%.2f"><title>0x%02X: %.3f %%</title></rect>'
                    % (value * 2, base - tall, max(tall, 0.4 if counts[value] else 0), value, share * 100))
    cut = [v for v in range(256) if counts[v] / total > top]
    labels = "".join('<text x="%d" y="9">%02X: %.0f %%</text>' % (v * 2 + 5, v, 100 * counts[v] / total) for v in cut[:1])
    even = base - base * math.sqrt(1 / 256 / top)
    ticks = "".join('<text x="%d" y="%d" text-anchor="%s">%s</text>' % (x, height - 6, anchor, text) for x, anchor, text in (
        (0, "start", "00"), (188, "middle", "A-Z  a-z"), (270, "middle", "80"), (512, "end", "FF")))
    band = '<rect class="letters" x="130" y="%d" width="116" height="3" rx="1.5"/>' % (base + 2)
    return ('<svg class="histogram" viewBox="0 0 512 %d" role="img" aria-label="How often each byte value occurs">'
            '<g class="k-%s">%s</g><line class="even" x1="0" x2="512" y1="%.2f" y2="%.2f"/>'
            '<text class="even-label" x="510" y="%.2f" text-anchor="end">even: 1/256</text>%s%s%s</svg>'
            % (height, kind, "".join(bars), even, even, even - 5, labels, band, ticks))


def dots_png(data):
    """Bytes as dots, by class, so that text, zeros and noise tell themselves apart. Palette PNG; 0 is transparent."""
    palette = [(0, 0, 0), (58, 134, 214), (42, 157, 143), (233, 162, 59), (196, 84, 120)]
    classes = bytes(0 if b == 0 else 1 if 32 <= b < 127 else 2 if b < 32 else 4 if b == 255 else 3 for b in range(256))
    data = data.ljust(DOTS_WIDE * DOTS_HIGH, b"\0").translate(classes)
    rows = b"".join(b"\0" + data[y * DOTS_WIDE : (y + 1) * DOTS_WIDE] for y in range(DOTS_HIGH))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", DOTS_WIDE, DOTS_HIGH, 8, 3, 0, 0, 0))
           + chunk(b"PLTE", b"".join(bytes(c) for c in palette)) + chunk(b"tRNS", b"\0")
           + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))
    return '<img class="dots" alt="The bytes as coloured dots" src="data:image/png;base64,%s">' % base64.b64encode(png).decode()


def hex_dump(image, offset, mark=b""):
    """Eight lines as `hexdump -C` prints them; what was searched for is marked."""
    start = max(0, offset // 16 * 16 - 32)
    data = image.read(start, 128)
    at = data.find(mark) if mark else -1
    marked = set(range(at, at + len(mark))) if at >= 0 else set()
    lines = []
    for row in range(0, len(data), 16):
        def spans(render, joiner):
            return joiner.join(("<mark>%s</mark>" if row + i in marked else "%s") % html.escape(render(b))
                               for i, b in enumerate(data[row : row + 16]))
        text = spans(lambda b: chr(b) if 32 <= b < 127 else "·", "").replace("</mark><mark>", "")
        lines.append('<span class="at">%08x</span>  %s  %s' % (
            start + row, spans(lambda b: "%02x" % b, " ").replace("</mark> <mark>", " "), text))
    return "<pre>%s</pre>" % "\n".join(lines)


def size_text(n):
    return "{:,} bytes".format(n).replace(",", "\u202f")


def legend(*groups):
    present = Counter(kind for group in groups for kind, _, _ in group)
    return "".join('<li><i class="k-%s"></i>%s</li>' % (kind, text) for kind, text in KINDS.items() if present[kind])


def page(args):
    with open(args.plain, "rb") as file:
        start = file.read(100)
    if start[:16] != b"SQLite format 3\0":
        sys.exit("picture: error: `%s` is not a plain SQLite database" % args.plain)
    page_size = struct.unpack(">H", start[16:18])[0]
    page_size = 65536 if page_size == 1 else page_size
    plain = Image(args.plain, page_size, 0)
    sealed = Image(args.sealed, page_size, HEADER_REGION_BYTES)
    kinds = plain_kinds(args.plain, plain)

    def sealed_kind(position):
        return ("header", "") if (position + 1) * page_size <= HEADER_REGION_BYTES else ("sealed", "")
    plain_cells = cells(plain, lambda p: kinds.get(p, ("free", "")))
    sealed_cells = cells(sealed, sealed_kind)
    longest = max(len(plain_cells), len(sealed_cells))
    around = max(8, math.ceil(math.sqrt(longest * 1.9)))
    columns = min(range(around, around + 5), key=lambda n: -longest % n)
    rows = math.ceil(longest / columns)

    needle = args.find.encode({2: "utf-16-le", 3: "utf-16-be"}.get(struct.unpack(">I", start[56:60])[0], "utf-8"))
    plain_found, first = plain.search(needle)
    sealed_found, sealed_first = sealed.search(needle)
    shown = first if first is not None else page_size
    dots_from = max(0, shown // page_size - 1) * page_size
    dots = DOTS_WIDE * DOTS_HIGH
    top = 1.15 * sorted(plain.counts.values())[-2] / sum(plain.counts.values()) if len(plain.counts) > 1 else 1.0
    top = max(top, 1.5 / 256)
    name = html.escape(args.name or os.path.basename(args.sealed))
    most, most_times = plain.counts.most_common(1)[0]

    def found(n):
        return "not found" if n == 0 else "found once" if n == 1 else "found %d times" % n

    error = ""
    if args.error_file:
        with open(args.error_file, encoding="utf-8", errors="replace") as file:
            error = ('<section><h2>One byte changed</h2><p>In a copy, one bit of one byte was flipped. '
                     'What is changed does not open, and the answer says where.</p><pre class="error">%s</pre></section>'
                     % html.escape(file.read().strip()))
    notes = []
    if plain.group > 1 or sealed.group > 1:
        notes.append("Each cell stands for up to %d pages." % max(plain.group, sealed.group))
    if plain.sampled or sealed.sampled:
        notes.append("Counts come from evenly spread pages, %d MiB of each file; the search went through all of it."
                     % (SAMPLE_BYTES_MAX >> 20))
    facts = [
        ("First bytes", "<code>SQLite format 3</code>",
         "<code>%s</code>" % html.escape("".join(chr(b) if 32 <= b < 127 else "·" for b in sealed.read(0, 16)))),
        ("Size", size_text(plain.size), size_text(sealed.size)),
        ("Pages", "%d of %d bytes" % (plain.pages, page_size),
         "%d of %d bytes, of which 32 hold nonce, generation and tag" % (sealed.pages, page_size)),
        ("Readable strings, 8 or longer", "%d" % plain.strings(), "%d, by chance or in the header" % sealed.strings()),
        ("Entropy of the pages, bits per byte", "%.4f" % plain.entropy, "%.4f" % sealed.entropy),
        ("A page compresses to", "%.0f %%" % (plain.packed_ratio * 100), "%.0f %%" % (sealed.packed_ratio * 100)),
    ]
    return TEMPLATE % {
        "name": name, "find": html.escape(args.find),
        "plain_map": map_svg(plain_cells, columns, rows, "Pages of the plain file"),
        "sealed_map": map_svg(sealed_cells, columns, rows, "Pages of the sealed file"),
        "plain_size": size_text(plain.size), "sealed_size": size_text(sealed.size),
        "plain_legend": legend(plain_cells), "sealed_legend": legend(sealed_cells),
        "plain_dots": dots_png(plain.read(dots_from, dots)),
        "sealed_dots": dots_png(sealed.read(dots_from + HEADER_REGION_BYTES, dots)),
        "plain_histogram": histogram_svg(plain.counts, "leaf", top),
        "sealed_histogram": histogram_svg(sealed.counts, "sealed", top),
        "most": "The most frequent value, 0x%02X, makes up %.0f %%." % (most, 100 * most_times / sum(plain.counts.values())),
        "spread": "Every value is about as frequent as every other: from %.2f to %.2f %%." % tuple(
            100 * f(sealed.counts[v] for v in range(256)) / sum(sealed.counts.values()) for f in (min, max)),
        "plain_found": found(plain_found), "sealed_found": found(sealed_found),
        "sealed_class": "bad" if sealed_found else "good",
        "plain_dump": hex_dump(plain, shown, needle),
        "sealed_dump": hex_dump(sealed, (shown if sealed_first is None else sealed_first - HEADER_REGION_BYTES)
                                + HEADER_REGION_BYTES, needle),
        "facts": "".join("<tr><th scope=row>%s</th><td>%s</td><td>%s</td></tr>" % row for row in facts),
        "error": error, "notes": " ".join(notes),
    }


TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>%(name)s, before and after</title>
<style>
:root{color-scheme:light;--paper:#faf9f6;--card:#fff;--ink:#1b1e24;--soft:#5d6470;--line:#e4e1da;--accent:#3f4f86;--good:#1c7a55;--bad:#b3382f;
--schema:#8a5fc9;--interior:#1d4f91;--leaf:#3a86d6;--index:#2a9d8f;--overflow:#e9a23b;--free:#b4b8bf;--header:#c45478;--sealed:#4a5a94;--mark:#ffe08a;--shadow:0 1px 2px #0000000d,0 8px 24px #0000000a}
:root[data-theme=dark]{color-scheme:dark;--paper:#121418;--card:#1a1d23;--ink:#e8e9ec;--soft:#9aa1ad;--line:#2b2f37;--accent:#a9b8f0;--good:#63cf9f;--bad:#ff8a7d;
--schema:#b794f0;--interior:#bcd9fb;--leaf:#4d97e4;--index:#41bcae;--overflow:#f0b355;--free:#5b616c;--header:#e07a9b;--sealed:#8294da;--mark:#6b5514;--shadow:none}
@media (prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;--paper:#121418;--card:#1a1d23;--ink:#e8e9ec;--soft:#9aa1ad;--line:#2b2f37;--accent:#a9b8f0;--good:#63cf9f;--bad:#ff8a7d;
--schema:#b794f0;--interior:#bcd9fb;--leaf:#4d97e4;--index:#41bcae;--overflow:#f0b355;--free:#5b616c;--header:#e07a9b;--sealed:#8294da;--mark:#6b5514;--shadow:none}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;-webkit-font-smoothing:antialiased}
main{max-width:1200px;margin:0 auto;padding:44px 28px 56px}
header{display:flex;justify-content:space-between;align-items:flex-start;gap:24px;margin-bottom:26px}
.brand{font-size:13px;letter-spacing:.16em;text-transform:uppercase;color:var(--accent);font-weight:650}
h1{font-size:40px;line-height:1.12;letter-spacing:-.022em;margin:6px 0 8px;font-weight:680}
h2{font-size:19px;letter-spacing:-.008em;margin:0 0 2px;font-weight:650}
p{margin:0 0 14px;color:var(--soft);max-width:76ch}
header p{font-size:17px;margin:0}
button{font:inherit;font-size:13px;color:var(--soft);background:var(--card);border:1px solid var(--line);border-radius:999px;padding:6px 14px;cursor:pointer;white-space:nowrap}
button:hover{color:var(--ink)}
section{margin-top:38px}
.two{display:grid;grid-template-columns:1fr 1fr;gap:20px}
.card{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:18px 18px 16px;box-shadow:var(--shadow);min-width:0}
.top{display:flex;justify-content:space-between;align-items:baseline;gap:12px;margin-bottom:12px}
.side{font-size:13px;font-weight:650;letter-spacing:.02em}
.side small{font-weight:450;color:var(--soft);font-size:13px}
svg,img{display:block;width:100%%;height:auto}
.k-schema{fill:var(--schema);background:var(--schema)}.k-interior{fill:var(--interior);background:var(--interior)}.k-leaf{fill:var(--leaf);background:var(--leaf)}
.k-index{fill:var(--index);background:var(--index)}.k-overflow{fill:var(--overflow);background:var(--overflow)}.k-free{fill:var(--free);background:var(--free)}
.k-header{fill:var(--header);background:var(--header)}.k-sealed{fill:var(--sealed);background:var(--sealed)}
.map rect:hover{fill-opacity:1;stroke:var(--ink);stroke-width:1.5}
ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;margin:14px 0 0;padding:0;font-size:13px;color:var(--soft)}
li i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.dots{image-rendering:pixelated;border-radius:6px}
.histogram{overflow:visible}
.histogram text{font:11px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--soft)}
.histogram .letters{fill:var(--soft);fill-opacity:.35}
.histogram .even{stroke:var(--ink);stroke-opacity:.4;stroke-dasharray:3 4;stroke-width:1}
.card>p{font-size:14px;margin:10px 0 0}
pre{font:11px/1.7 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;margin:0;overflow-x:auto;white-space:pre}
pre .at{color:var(--soft)}
mark{background:var(--mark);color:inherit;border-radius:3px;padding:1px 0}
.verdict{font-size:13px;font-weight:650;white-space:nowrap}.verdict.bad{color:var(--bad)}.verdict.good{color:var(--good)}
code{font:.92em ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
table{width:100%%;border-collapse:collapse;font-size:15px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:9px 12px 9px 0;border-bottom:1px solid var(--line);font-weight:400;vertical-align:top}
tr:last-child>*{border-bottom:0}thead th{font-size:13px;font-weight:650}tbody th{color:var(--soft);width:30%%}td{width:35%%}
pre.error{font-size:13px;background:var(--card);border:1px solid var(--line);border-left:4px solid var(--bad);border-radius:8px;padding:14px 16px;white-space:pre-wrap}
footer{margin-top:40px;padding-top:18px;border-top:1px solid var(--line);font-size:14px;color:var(--soft)}
@media (max-width:860px){.two{grid-template-columns:1fr}h1{font-size:31px}main{padding:28px 18px}pre{font-size:11px}}
@media print{button{display:none}}
</style></head><body><main>
<header><div><div class="brand">Pellucid</div><h1>What a thief sees</h1>
<p><code>%(name)s</code> before and after <code>pellucid encrypt</code>, read from the disk without a key.</p></div>
<button type="button" id="theme">Light / dark</button></header>

<section style="margin-top:0"><h2>Every page of the file</h2>
<p>One cell for each page, in the file's order; stronger colour means more disorder. Before, a thief can tell what each page is and which table it belongs to.</p>
<div class="two">
<div class="card"><div class="top"><span class="side">Before</span><span class="side"><small>%(plain_size)s</small></span></div>%(plain_map)s<ul>%(plain_legend)s</ul></div>
<div class="card"><div class="top"><span class="side">After</span><span class="side"><small>%(sealed_size)s</small></span></div>%(sealed_map)s<ul>%(sealed_legend)s</ul></div>
</div></section>

<section><h2>Bytes as dots</h2>
<p>The same stretch of both files, a dot for each byte: text is blue, control bytes green, high values amber, FF red, zeros empty.</p>
<div class="two">
<div class="card"><div class="top"><span class="side">Before</span></div>%(plain_dots)s</div>
<div class="card"><div class="top"><span class="side">After</span></div>%(sealed_dots)s</div>
</div></section>

<section><h2>How often each byte value occurs</h2>
<p>Text, zeros and small numbers give a plain file a face. Sealed pages have none (the header region is left out here).</p>
<div class="two">
<div class="card"><div class="top"><span class="side">Before</span></div>%(plain_histogram)s<p>%(most)s</p></div>
<div class="card"><div class="top"><span class="side">After</span></div>%(sealed_histogram)s<p>%(spread)s</p></div>
</div></section>

<section><h2>Looking for “%(find)s”</h2>
<p>The same search through both files, and what stands at that place.</p>
<div class="two">
<div class="card"><div class="top"><span class="side">Before</span><span class="verdict bad">%(plain_found)s</span></div>%(plain_dump)s</div>
<div class="card"><div class="top"><span class="side">After</span><span class="verdict %(sealed_class)s">%(sealed_found)s</span></div>%(sealed_dump)s</div>
</div></section>

<section><h2>In figures</h2>
<div class="card" style="margin-top:12px"><table><thead><tr><th></th><th scope=col>Before</th><th scope=col>After</th></tr></thead><tbody>%(facts)s</tbody></table></div></section>
%(error)s
<footer>What stays visible: the size of the file, the number of its pages, the times it was written, and in its header the algorithm and which certificate opens it. %(notes)s</footer>
</main><script>
document.getElementById("theme").onclick=function(){var r=document.documentElement,d=r.dataset.theme||(matchMedia("(prefers-color-scheme:dark)").matches?"dark":"light");r.dataset.theme=d=="dark"?"light":"dark"}
</script></body></html>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plain")
    parser.add_argument("sealed")
    parser.add_argument("out", help="the HTML file to write")
    parser.add_argument("--find", required=True, help="a text that the plain file holds")
    parser.add_argument("--name", help="the database's name on the page (SEALED's)")
    parser.add_argument("--error-file", help="what was printed about a changed copy")
    args = parser.parse_args()
    text = page(args)
    with open(args.out, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
