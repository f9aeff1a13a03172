#!/bin/bash
# Builds the Python wheel from what was built before: packaging/wheel.sh [DIRECTORY]  (default target/packages)
# Without the lab, which would double it and needs the program `pellucid`, which is not in it either.
set -euo pipefail
cd "$(dirname "$0")/.."
release=$(realpath "${CARGO_TARGET_DIR:-target}/release")
[ -f "$release/libpellucid.so" ] || { echo "wheel: $release/libpellucid.so is missing; run 'make build' first" >&2; exit 1; }
out=${1:-target/packages}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r packaging/python/. "$work"
cp "$release/libpellucid.so" "$work/pellucid/"
PELLUCID_VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
export PELLUCID_VERSION
python3 -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$out" "$work"
ls "$out"/pellucid-*.whl
