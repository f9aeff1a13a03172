#!/bin/bash
# A generated database is the same before, sealed and after: dump, SHA3 of its content, pragmas.
#
#   tests/identical.sh BYTES ENCODING PAGE-SIZE JOURNAL-MODE
#   tests/identical.sh                                          a small one of each kind
#
# Method: the generator's database (overflow rows, WITHOUT ROWID, FTS5, R-Tree, generated columns, triggers, views)
# is dumped by stock sqlite3, encrypted in place, dumped by stock sqlite3 through `pellucid run`, decrypted in place and
# dumped by stock sqlite3 again. Prints one line with the times. Exit: 1 at the first difference.
set -euo pipefail
if [ $# -eq 0 ]; then
  passed=0 failed=0
  for kind in "8000000 UTF-8 4096 wal" "4000000 UTF-16le 1024 delete" "4000000 UTF-8 65536 wal" "2000000 UTF-16be 512 delete"; do
    # shellcheck disable=SC2086 # four words
    if "$0" $kind; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  done
  echo "test result: $passed passed; $failed failed; 0 ignored;"
  exit $((failed > 0))
fi
bytes=$1 encoding=$2 page_size=$3 journal=$4
cd "$(dirname "$0")/.."
built=$(realpath "${PELLUCID_BIN:-${CARGO_TARGET_DIR:-target}/debug}")
work=$(mktemp -d "${TMPDIR:-/tmp}/identical.XXXXXX")
trap 'rm -rf "$work"' EXIT
export PELLUCID_HOME=$work/keys HOME=$work
db=$work/app.db
die() { echo "identical: $*" >&2; exit 1; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

python3 tests/data/generate.py --size "$bytes" --encoding "$encoding" --page-size "$page_size" \
  --journal-mode "$journal" "$db" >/dev/null
facts='PRAGMA application_id; PRAGMA user_version; PRAGMA auto_vacuum; PRAGMA encoding; PRAGMA page_size; PRAGMA journal_mode;'
look() { # NAME [RUN...]: what sqlite3 says of it
  local name=$1; shift
  "$@" sqlite3 "$db" "$facts" >"$work/$name.facts"
  "$@" sqlite3 "$db" .dump | sha256sum >"$work/$name.dump"
  "$@" sqlite3 "$db" .sha3sum >"$work/$name.sha3"
}
same() {
  for what in facts dump sha3; do
    cmp -s "$work/plain.$what" "$work/$1.$what" || die "$what differs: plain and $1 ($bytes $encoding $page_size $journal)"
  done
}
inode=$(stat -c '%i %a %u %g' "$db")
start=$(now); look plain; t_plain=$(since "$start")
start=$(now); "$built/pellucid" --quiet encrypt "$db" 2>/dev/null; t_encrypt=$(since "$start")
if sqlite3 "$db" .tables >/dev/null 2>&1; then die "stock sqlite3 opens the sealed file"; fi
start=$(now); look sealed "$built/pellucid" run --; t_sealed=$(since "$start")
same sealed
"$built/pellucid" --quiet check "$db" || die "check found damage"
start=$(now); "$built/pellucid" --quiet decrypt "$db"; t_decrypt=$(since "$start")
look decrypted
same decrypted
[ "$inode" = "$(stat -c '%i %a %u %g' "$db")" ] || die "inode, mode or owner changed"
size=$(stat -c %s "$db")
echo "identical: $size bytes, $encoding, $page_size, $journal: encrypt $t_encrypt s, decrypt $t_decrypt s, dump and sha3 plain $t_plain s, sealed $t_sealed s"
