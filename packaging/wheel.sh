#!/bin/bash
# Builds the Python wheel, with program and library, from what was built before: packaging/wheel.sh [DIRECTORY]  (default target/packages)
# Without the lab, which would double it.
set -euo pipefail
cd "$(dirname "$0")/.."
release=$(realpath "${PELLUCID_BIN:-${CARGO_TARGET_DIR:-target}/release}")
for file in pellucid libpellucid.so; do
  [ -f "$release/$file" ] || { echo "wheel: $release/$file is missing; run 'make build' first" >&2; exit 1; }
done
out=${1:-target/packages}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r packaging/python/. "$work"
cp "$release/pellucid" "$release/libpellucid.so" "$work/pellucid/"
cat LICENSE-MIT LICENSE-APACHE NOTICE > "$work/pellucid/LICENCES"
packaging/contents.py licences >> "$work/pellucid/LICENCES"
PELLUCID_VERSION=${PELLUCID_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}
PELLUCID_GLIBC=$(packaging/glibc.sh "$release/pellucid" "$release/libpellucid.so")
# Else two wheels of the same files differ in the times within them.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export PELLUCID_VERSION PELLUCID_GLIBC SOURCE_DATE_EPOCH
chmod -R u=rwX,go=rX "$work"
find "$work" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
# The Python that is first in the path may be one without what builds wheels.
makes='import setuptools, pip
try: import setuptools.command.bdist_wheel
except ImportError: import wheel.bdist_wheel'
for python in python3 /usr/bin/python3 ''; do
  [ -n "$python" ] || { echo "wheel: no Python here builds wheels; on Debian: apt install python3-pip python3-wheel" >&2; exit 1; }
  ! "$python" -c "$makes" 2>/dev/null || break
done
"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$out" "$work"
ls "$out/pellucid-$PELLUCID_VERSION-"*.whl
