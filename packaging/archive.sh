#!/bin/bash
# Builds the archive, with scripts that install and remove, from what was built before: packaging/archive.sh [DIRECTORY]  (default target/packages)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-target/packages}
umask 022
mkdir -p "$out"
release=$(realpath "${PELLUCID_BIN:-${CARGO_TARGET_DIR:-target}/release}")
version=${PELLUCID_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}
glibc=$(packaging/glibc.sh "$release/pellucid" "$release/libpellucid.so" "$release/lab" "$release"/pellucid-plugin-{pkcs11,tpm})
name=pellucid-$version-linux-$(uname -m)
made=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packaging/tree.sh "$work/$name"
sed "s/@GLIBC@/$glibc/" packaging/archive/install > "$work/$name/install"
chmod 755 "$work/$name/install"
tar --sort=name --mtime="@$made" --owner=0 --group=0 --numeric-owner --format=gnu -C "$work" -c "$name" | xz -6 --threads=1 > "$out/$name.tar.xz"
ls "$out/$name.tar.xz"
