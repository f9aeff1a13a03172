#!/bin/bash
# Builds SQLite's speedtest1 into target/speedtest1, with the SQLite that the lab has (libsqlite3-sys) and its flags; the
# test program is that of Debian's source package. tests/tcl/init.c brings the shim in, if PELLUCID_TCL_EXTENSION names it.
#
# Exit: 0 built, 1 something is missing or failed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
made=$target/speedtest1
mkdir -p "$made"

source=$(cd "$root" && python3 -B -c '
import sys
sys.path.insert(0, "tests/tcl")
import run
(run.WORK / "build").mkdir(parents=True, exist_ok=True)
if not list(run.WORK.glob("sqlite3-3*/configure")):
    run.fetch()
print(next(run.WORK.glob("sqlite3-3*/configure")).parent)')
sqlite=$(cargo metadata --format-version 1 --locked --manifest-path "$root/Cargo.toml" | python3 -c '
import json, os, sys
for package in json.load(sys.stdin)["packages"]:
    if package["name"] == "libsqlite3-sys":
        print(os.path.dirname(package["manifest_path"]) + "/sqlite3")')

flags=(
  -O3 -w -DSQLITE_DEFAULT_FOREIGN_KEYS=1 -DSQLITE_ENABLE_API_ARMOR -DSQLITE_ENABLE_COLUMN_METADATA
  -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_FTS3 -DSQLITE_ENABLE_FTS3_PARENTHESIS -DSQLITE_ENABLE_FTS5
  -DSQLITE_ENABLE_JSON1 -DSQLITE_ENABLE_LOAD_EXTENSION=1 -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_STAT4 -DSQLITE_SOUNDEX
  -DSQLITE_THREADSAFE=1 -DSQLITE_USE_URI -DHAVE_USLEEP=1 -DHAVE_ISNAN -DSQLITE_EXTRA_INIT=pellucid_extra_init
)
inputs=("$source/test/speedtest1.c" "$sqlite/sqlite3.c" "$root/tests/tcl/init.c")
wanted=$(echo "${flags[@]}"; cat "${inputs[@]}" | sha256sum)
[ -x "$made/speedtest1" ] && [ "$(cat "$made/made" 2>/dev/null)" = "$wanted" ] && exit
echo "speedtest1.sh: building (a minute)"
rm -f "$made/made"
"${CC:-cc}" "${flags[@]}" -I"$sqlite" -o "$made/speedtest1" "${inputs[@]}" -lm -lpthread -ldl
echo "$wanted" >"$made/made"
