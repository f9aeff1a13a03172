#!/bin/bash
# Builds plain SQLite, SQLCipher and SQLite3 Multiple Ciphers as shared libraries, with one compiler and the same flags,
# and a lab that is linked with a libsqlite3.so.0 instead of its own SQLite: its workers get one of the three each.
#
#   lab/peers/build.sh        into target/peers: lab, libpellucid.so, and NAME/libsqlite3.so.0
#
# Needs: a C compiler, OpenSSL's headers (libssl-dev), python3, npm. Both ciphers' sources are pinned.
# Exit: 0 built, 1 something is missing or failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
peers=$target/peers
cc=${CC:-cc}
mkdir -p "$peers/source"

ciphers=better-sqlite3-multiple-ciphers-12.11.1
ciphers_sha256=670d8d053176b53a68073b168f8e68fb72db67bdf964a0eb130338e9391198b9

# The flags of libsqlite3-sys, whose SQLite the shipped programs have (its build.rs), and of .cargo/config.toml. Peers need a codec's hooks; that
# temporary files stay in memory is SQLCipher's condition, so it is everybody's.
flags=(
  -O3 -fPIC -shared -w -DSQLITE_DEFAULT_FOREIGN_KEYS=1 -DSQLITE_ENABLE_API_ARMOR -DSQLITE_ENABLE_COLUMN_METADATA
  -DSQLITE_ENABLE_BYTECODE_VTAB -DSQLITE_ENABLE_DBPAGE_VTAB -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_FTS3
  -DSQLITE_ENABLE_FTS3_PARENTHESIS -DSQLITE_ENABLE_FTS4 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_GEOPOLY -DSQLITE_ENABLE_MATH_FUNCTIONS
  -DSQLITE_ENABLE_OFFSET_SQL_FUNC -DSQLITE_ENABLE_PERCENTILE -DSQLITE_ENABLE_STMTVTAB -DSQLITE_ENABLE_JSON1 -DSQLITE_ENABLE_LOAD_EXTENSION=1 -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_STAT4 -DSQLITE_SOUNDEX
  -DSQLITE_THREADSAFE=1 -DSQLITE_USE_URI -DHAVE_USLEEP=1 -DHAVE_ISNAN -DHAVE_STDINT_H=1 -DSQLITE_TEMP_STORE=2
)

die() { echo "build.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is missing${2:+: $2}"; }
need "$cc" "apt-get install gcc"
need python3
need npm "it fetches SQLite3 Multiple Ciphers"
need cargo
printf '#include <openssl/evp.h>\n' | "$cc" -E -x c - >/dev/null 2>&1 ||
  die "OpenSSL's headers are missing: apt-get install libssl-dev"

# crate MANIFEST NAME: the directory of a crate's source.
crate() {
  cargo metadata --format-version 1 --locked --manifest-path "$1" | python3 -c '
import json, os, sys
for package in json.load(sys.stdin)["packages"]:
    if package["name"] == sys.argv[1]:
        print(os.path.dirname(package["manifest_path"]))' "$2"
}

# library NAME SOURCE FLAG...: NAME/libsqlite3.so.0, if it is not there with these flags and this source.
library() {
  local name=$1 source=$2 made wanted
  shift 2
  made=$peers/$name/made
  wanted=$("$cc" --version | head -1; printf '%s ' "${flags[@]}" "$@"; sha256sum <"$source")
  [ -f "$peers/$name/libsqlite3.so.0" ] && [ "$(cat "$made" 2>/dev/null)" = "$wanted" ] && return
  echo "build.sh: $name"
  mkdir -p "$peers/$name"
  rm -f "$made"
  "$cc" "${flags[@]}" -Wl,-soname,libsqlite3.so.0 -o "$peers/$name/libsqlite3.so.0" "$source" "$@" -lm -lpthread -ldl
  ln -sf libsqlite3.so.0 "$peers/$name/libsqlite3.so"
  echo "$wanted" >"$made"
}

plain=$(crate "$root/Cargo.toml" libsqlite3-sys)/sqlite3
sqlcipher=$(crate "$here/sources/Cargo.toml" sqlcipher-src)/sqlcipher
aegis=$peers/source/$ciphers/package/deps/sqlite3
if [ ! -f "$aegis/sqlite3.c" ]; then
  (cd "$peers/source" && npm pack --silent "${ciphers%-*}@${ciphers##*-}" >/dev/null)
  mkdir -p "$peers/source/$ciphers"
  tar -xzf "$peers/source/$ciphers.tgz" -C "$peers/source/$ciphers"
fi
echo "$ciphers_sha256  $aegis/sqlite3.c" | sha256sum --check --quiet || die "$ciphers is not what it was"

library plain "$plain/sqlite3.c"
library sqlcipher "$sqlcipher/sqlcipher.c" -DSQLITE_HAS_CODEC -DSQLCIPHER_CRYPTO_OPENSSL \
  -DSQLITE_EXTRA_INIT=sqlcipher_extra_init -DSQLITE_EXTRA_SHUTDOWN=sqlcipher_extra_shutdown -lcrypto
library aegis "$aegis/sqlite3.c"

echo "build.sh: lab"
SQLITE3_LIB_DIR=$peers/plain SQLITE3_INCLUDE_DIR=$plain CARGO_TARGET_DIR=$peers/cargo \
  RUSTFLAGS="-C link-arg=-Wl,--enable-new-dtags,-rpath,\$ORIGIN/plain" \
  cargo build --release --locked --quiet --manifest-path "$root/Cargo.toml" -p pellucid-lab --no-default-features
cp "$peers/cargo/release/lab" "$peers/.lab.new"
mv -f "$peers/.lab.new" "$peers/lab"
ln -sf "$(cd "$target/release" && pwd)/libpellucid.so" "$peers/libpellucid.so"
