#!/bin/bash
# Goal: what is released installs, works from where it lies, says what it needs and is made of, and is removed without a rest.
#
# Method: the archive's tree and the wheel, made of the programs that tests run (PELLUCID_BIN), installed below a temporary
# directory and in a virtual environment. The Debian package, older systems and upgrades: `make campaign NAME=packages`.
# Last line as Cargo's; exit 1 if something is not so.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
is() { # is WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$1: expected '$2', found '$3'"; fi
}
holds() { # holds WHAT COMMAND...
  if "${@:2}" >"$work/said" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$1: $(cat "$work/said")"; fi
}
unset PELLUCID_EXTENSION PELLUCID_KEY_FILE PELLUCID_PASSPHRASE_FILE
export PELLUCID_HOME=$work/keys
mkdir "$work/bin"
built=${PELLUCID_BIN:-target/debug}
for file in pellucid libpellucid.so lab pellucid-plugin-{pkcs11,tpm}; do strip -o "$work/bin/$file" "$built/$file" || exit 1; done
export PELLUCID_BIN=$work/bin
path=$PATH

# --- what it needs
here=$(getconf GNU_LIBC_VERSION | sed 's/^glibc //')
needed=$(packaging/glibc.sh "$work/bin/pellucid" "$work/bin/libpellucid.so" "$work/bin/lab" "$work"/bin/pellucid-plugin-{pkcs11,tpm})
is "no more glibc is asked for than there was to build with" "$here" "$(printf '%s\n' "$here" "$needed" | sort -V | tail -n 1)"
for file in pellucid libpellucid.so lab pellucid-plugin-{pkcs11,tpm}; do
  # Each version that a symbol names is one that is asked for: the newest of them alone would do for one file.
  newest=$(readelf --version-info --wide "$work/bin/$file" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
  is "the glibc of $file" "$newest" "$(packaging/glibc.sh "$work/bin/$file")"
done
holds "a file that needs none is refused" bash -c "! packaging/glibc.sh README.md"

# --- what it is made of
packaging/contents.py sbom >"$work/sbom"
is "two lists of contents are equal" "" "$(packaging/contents.py sbom | cmp - "$work/sbom" 2>&1)"
holds "each crate that is linked has its licence and checksum in it" python3 - "$work/sbom" <<'PY'
import json, sys
bom = json.load(open(sys.argv[1]))
crates = {one["name"]: one for one in bom["components"]}
assert {"aws-lc-rs", "aws-lc-sys", "libsqlite3-sys", "zstd-sys", "clap", "pellucid-vfs"} <= crates.keys()
assert "pellucid-tests" not in crates and "trycmd" not in crates
for one in crates.values():
    assert one["licenses"][0]["expression"], one
    assert "hashes" in one or one["name"].startswith("pellucid"), one
refs = {one["bom-ref"] for one in bom["components"]}
assert all(to in refs for one in bom["dependencies"] for to in one["dependsOn"])
PY

# --- make install
is "nothing is left of it but folders" "" "$(make -s install PREFIX="$work/made" >"$work/said" 2>&1 && make -s uninstall PREFIX="$work/made" >>"$work/said" 2>&1; find "$work/made" ! -type d)"
holds "it installs once more" make -s install PREFIX="$work/made"
is "its documents are there" yes "$([ -s "$work/made/share/doc/pellucid/docs/guide.md" ] && echo yes)"
holds "no link of them leads nowhere" .ci/prose --installed "$work/made/share/doc/pellucid"

# --- the archive
# Whoever builds or installs may let nobody read what is new. `readable DIRECTORY`: how much of it not everybody can use.
readable() { find "$1" \( -type d ! -perm -755 -o -type f ! -perm -444 \) | wc -l; }
(umask 077; packaging/tree.sh "$work/tree") && cp packaging/archive/install "$work/tree/install" && sed -i "s/@GLIBC@/$needed/" "$work/tree/install"
prefix=$work/prefix
mkdir -p "$prefix/bin" "$prefix/share/man" && echo mine >"$prefix/bin/mine"
before=$(cd "$prefix" && find . | sort)
is "everybody may read what was laid out" 0 "$(readable "$work/tree/share")"
# In a directory that a group may write.
echo "root's own" >"$work/aim" && ln -s "$work/aim" "$prefix/bin/.pellucid.new"
holds "it installs" bash -c "umask 077; '$work/tree/install' '$prefix'"
is "no link is followed" "root's own" "$(cat "$work/aim")"
is "everybody may use it" 0 "$(readable "$prefix")"
is "the program finds its library" "$(realpath "$prefix/lib/pellucid/libpellucid.so")" "$("$prefix/bin/pellucid" extension)"
is "the licences of others are there" yes "$(grep -q 'aws-lc-rs' "$prefix/share/doc/pellucid/licences-of-others" && echo yes)"
is "the alerts are there" "" "$(cmp "$prefix/share/doc/pellucid/examples/pellucid.rules.yml" packaging/prometheus/pellucid.rules.yml 2>&1)"
holds "no link of its documents leads nowhere" .ci/prose --installed "$prefix/share/doc/pellucid"
sqlite3 "$work/app.db" "CREATE TABLE t(a); INSERT INTO t VALUES('kept')"
holds "it encrypts" "$prefix/bin/pellucid" --quiet encrypt "$work/app.db"
is "a program reads it" kept "$("$prefix/bin/pellucid" run -- sqlite3 "$work/app.db" 'SELECT a FROM t')"
cp "$prefix/lib/pellucid/libpellucid.so" "$work/first.so"
exec 3<"$prefix/lib/pellucid/libpellucid.so"
holds "it installs over itself" "$work/tree/install" "$prefix"
is "what runs keeps the library that it has" "" "$(cmp "/proc/$$/fd/3" "$work/first.so" 2>&1)"
is "and not the file of the new one" no "$([ "/proc/$$/fd/3" -ef "$prefix/lib/pellucid/libpellucid.so" ] && echo yes || echo no)"
exec 3<&-
removed=$("$work/tree/install" --remove "$prefix")
is "its removal leaves what was there before" "$before" "$(cd "$prefix" && find . | sort)"
is "and names the keys" 1 "$(grep -c "the keys in $work/keys" <<<"$removed")"
is "which are there" yes "$([ -s "$work/keys/service.key" ] && echo yes)"
mkdir "$work/old" && printf '#!/bin/sh\necho glibc 2.17\n' >"$work/old/getconf" && chmod +x "$work/old/getconf"
told=$(PATH="$work/old:$path" "$work/tree/install" "$work/none" 2>&1)
is "an older system is told what is needed" 1 "$(grep -c "glibc 2.17; $needed or newer" <<<"$told")"
is "and nothing is installed there" no "$([ -e "$work/none" ] && echo yes || echo no)"

# --- the wheel
if ! /usr/bin/python3 -c 'import setuptools, pip, wheel, ensurepip' 2>/dev/null; then
  echo "SKIP: /usr/bin/python3 builds no wheels: apt install python3-pip python3-wheel python3-venv"
else
  wheel=$(packaging/wheel.sh "$work" 2>"$work/said") || cat "$work/said"
  tag=$(packaging/glibc.sh "$work/bin/pellucid" "$work/bin/libpellucid.so" | tr . _)
  is "its tag says the glibc" "pellucid-$("$work/bin/pellucid" --version | cut -d' ' -f2)-py3-none-manylinux_${tag}_$(uname -m).whl" "${wheel##*/}"
  holds "there is a virtual environment" /usr/bin/python3 -m venv "$work/venv"
  holds "it installs alone" "$work/venv/bin/pip" install --quiet --no-index "$wheel"
  is "it brings the program" "$("$work/bin/pellucid" --version)" "$("$work/venv/bin/pellucid" --version)"
  is "also as a module" "$("$work/bin/pellucid" --version)" "$("$work/venv/bin/python" -m pellucid --version)"
  is "a program reads by it" kept "$("$work/venv/bin/pellucid" run -- sqlite3 "$work/app.db" 'SELECT a FROM t')"
  is "Python reads by it" "('kept',)" "$("$work/venv/bin/python" -c "
import pellucid
print(pellucid.connect('$work/app.db', require_sealed=True).execute('SELECT a FROM t').fetchone())")"
  mkdir "$work/odd"
  is "a name is that file's, whatever is in it" "3 rows" "$("$work/venv/bin/python" - "$work/odd" 2>&1 <<'PY'
import os, sys, pellucid
place = sys.argv[1]
for name in ("app.db", "a?b=1&plain_copies=1#c%41.db"):
    # Behind two slashes stands a host in a URI.
    for begin in ("", "/", "//"):
        with pellucid.connect(f"{begin}{place}/{name}") as db:
            db.execute("CREATE TABLE IF NOT EXISTS t(a)")
            db.execute("INSERT INTO t VALUES(1)")
        rows = db.execute("SELECT count(*) FROM t").fetchone()[0]
        db.close()
    assert os.path.getsize(f"{place}/{name}") > 0, name
for words in ({"database": f"{place}/app.db\0.db"}, {"database": f"{place}/app.db", "certificate": "pellucid\0"}):
    try:
        pellucid.connect(**words)
        sys.exit(f"{words} was opened")
    except ValueError:
        pass
print(rows, "rows")
PY
)"
  is "its status is the program's" 2 "$("$work/venv/bin/pellucid" encrypt --no-such-option >/dev/null 2>&1; echo $?)"
  holds "it is removed" "$work/venv/bin/pip" uninstall --quiet --yes pellucid
  is "without a rest" "" "$(find "$work/venv" -iname '*pellucid*')"
fi

echo "test result: $passed passed; $failed failed; 0 ignored;"
exit $((failed > 0))
