#!/bin/bash
# The walk through: a database, what a thief sees, one command, the same programs, a flipped byte, a picture.
#
#   demo/run.sh [DB=path]     Northwind, or a copy of the database at path (which is not touched)
#
# Works in target/demo, with keys of its own there. Checks what it shows: exit 1 when something is not as it says.
set -euo pipefail

db=
case ${1-} in
  "") ;;
  DB=*) db=$(realpath -e -- "${1#DB=}") ;;
  *) echo "usage: demo/run.sh [DB=path]" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
demo=$PWD/demo
command -v cargo >/dev/null || PATH=$PATH:$HOME/.cargo/bin

if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi
heading() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
say() { printf '%s\n' "$*"; }
die() { printf 'demo: error: %s\n' "$*" >&2; exit 1; }
command_line() { # as one would type it
  local word line=
  for word in "$@"; do
    case $word in *[!A-Za-z0-9_./=:@+-]*|'') word="'${word//\'/\'\\\'\'}'" ;; esac
    line+=" $word"
  done
  printf '%s$%s%s\n' "$dim" "$line" "$off"
}
show() { command_line "$@"; "$@" 2>&1; }
fails() { # what has to fail; its status is in $status, its output also in last.txt
  command_line "$@"
  status=0
  "$@" >last.txt 2>&1 || status=$?
  cat last.txt
  [ $status -ne 0 ] || die "this had to fail: $*"
}

heading "Building"
if ! cargo build --release --workspace --locked >target/demo-build.log 2>&1; then
  cat target/demo-build.log >&2
  die "the build failed"
fi
release=$(realpath "${CARGO_TARGET_DIR:-target}/release")
[ -x "$release/pellucid" ] || die "$release/pellucid is missing after the build"
say "done"

rm -rf target/demo
mkdir -m 700 target/demo
cd target/demo
export PELLUCID_HOME=$PWD/keys
# The distribution's own programs first: they are what has to work unchanged.
PATH=$release:/usr/bin:/bin:$PATH
export HOME=$PWD # nobody's own settings for sqlite3
unset PELLUCID_ENCRYPT_NEW PELLUCID_REQUIRE PELLUCID_LOG

heading "1. A database"
if [ -z "$db" ]; then
  sqlite3 app.db <"$demo/northwind.sql" >/dev/null
  say "app.db: Northwind, as an application has it"
  table=Customers
  text='Alfreds Futterkiste'
  query='SELECT CompanyName, ContactName, City FROM Customers ORDER BY CustomerID LIMIT 3'
else
  sqlite3 -readonly "$db" ".backup app.db" 2>/dev/null || sqlite3 "$db" ".backup app.db" ||
    die "$db could not be copied: is it a plain SQLite database?"
  say "app.db: a copy of $db"
  # A table, and a text in it that can be recognised on the disk.
  pick=$(python3 - <<'PY'
import sqlite3
db = sqlite3.connect("app.db")
db.text_factory = lambda b: b.decode("utf-8", "replace")
quote = lambda name: '"%s"' % name.replace('"', '""')
best = None
for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 1 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"):
    rows = db.execute("SELECT * FROM %s LIMIT 200" % quote(table)).fetchall()
    best = best or (table, "", quote(table)) if rows else best
    for value in (v for row in rows for v in row if isinstance(v, str)):
        if 8 <= len(value) <= 40 and value.isascii() and value.isprintable() and len(set(value)) > 5:
            print(table, value, quote(table), sep="\n")
            raise SystemExit
print("\n".join(best or ("", "", "")))
PY
)
  { read -r table; read -r text; read -r quoted; } <<<"$pick"$'\n\n\n'
  [ -n "$table" ] || die "$db has no table with rows"
  [ -n "$text" ] || die "$db has no text of 8 to 40 plain characters to look for"
  query="SELECT count(*) FROM $quoted"
fi
cp app.db before.db
page_size=$(sqlite3 before.db 'PRAGMA page_size')
case $(sqlite3 before.db 'PRAGMA encoding') in
  UTF-16le) strings="strings -e l" ;;
  UTF-16be) strings="strings -e b" ;;
  *) strings=strings ;;
esac
show sqlite3 app.db "$query"
sqlite3 before.db .dump | sha256sum >before.sha256

heading "2. What a thief sees"
search="$strings app.db | grep -F '$text'"
say "$dim\$ $search$off"
{ $strings app.db | grep -F -m 3 -- "$text" || true; } | cut -c 1-100
show od -A d -t x1z -N 64 app.db

heading "3. One command"
show pellucid encrypt app.db

heading "4. What a thief sees now"
say "$dim\$ $search$off"
if $strings app.db | grep -F -- "$text"; then
  die "the text is still there"
fi
say "(nothing)"
show od -A d -t x1z -j 16384 -N 64 app.db
say "SQLite without the key has nothing to open:"
fails sqlite3 app.db "$query"

heading "5. The same programs, unchanged"
show pellucid run -- sqlite3 app.db "$query"
cat >query.py <<'PY'
import sqlite3, sys
for row in sqlite3.connect("app.db").execute(sys.argv[1]):
    print(*row, sep=" | ")
PY
show pellucid run -- python3 query.py "$query"
pellucid run -- sqlite3 app.db .dump | sha256sum >sealed.sha256
cmp -s before.sha256 sealed.sha256 || die "the dump differs from the plain database's"
say "Its whole dump is the plain database's, byte for byte."

heading "6. One flipped bit"
root=$(pellucid run -- sqlite3 app.db "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = '${table//\'/\'\'}'")
cp app.db flipped.db
at=$((16384 + (root - 1) * page_size + page_size / 2))
python3 - "$at" <<'PY'
import sys
with open("flipped.db", "r+b") as file:
    file.seek(int(sys.argv[1]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[1]))
    file.write(bytes([byte ^ 0x10]))
PY
say "In flipped.db, a copy, one bit of byte $at is flipped. That is in page $root, where table $table begins."
fails pellucid run -- sqlite3 flipped.db "$query"
cp last.txt error.txt
fails pellucid check flipped.db
[ "$status" -eq 3 ] || die "check said $status, not 3 (damage found)"
say "(exit $status: damage found)"
{ echo; cat last.txt; } >>error.txt

heading "7. Check and status"
show pellucid check app.db
show pellucid status app.db || [ $? -eq 4 ]

heading "8. And back"
cp app.db back.db
show pellucid decrypt back.db
show sqlite3 back.db 'PRAGMA integrity_check'
sqlite3 back.db .dump | sha256sum | cmp -s - before.sha256 || die "the decrypted dump differs"
say "Stock SQLite reads it, and its dump is the one it began with."

heading "9. The picture"
python3 "$demo/picture.py" before.db app.db picture.html --find "$text" --error-file error.txt
say "file://$PWD/picture.html"
