#!/bin/bash
# Builds a release: Debian package, Python wheel, archive, list of contents (CycloneDX), checksums, signature.
#
#   packaging/release.sh [DIRECTORY]   default target/dist
#
# The same commit, built by the same toolchain on the same system, gives the same files bit for bit, wherever it lies: paths
# and times of the build are not in them. Builds in DIRECTORY/build.
#
# PELLUCID_SIGN: signs SHA256SUMS by a key that is not here: `gpg:KEYID`, or `ssh:FILE` (a key, or the public half of one that an
# agent holds). Without it nothing is signed, and a line says so.
#
# Exit: 0 done, 1 not: the tree differs from HEAD, something did not build, or a file is larger than it may be.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-target/dist}"
out=$(realpath "${1:-target/dist}")
die() { echo "release: $*" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || die "the tree differs from HEAD: what is released has to be a commit"
cargo=$(command -v cargo || echo "$HOME/.cargo/bin/cargo")
home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
PELLUCID_BIN=$out/build/release
export SOURCE_DATE_EPOCH PELLUCID_BIN

map=("$PWD=/pellucid" "$out/build=/build" "$home=/cargo" "$sysroot=/rust")
# Stripped here: a profile of its own for the program's package, below, takes the release profile's word for that away.
RUSTFLAGS="$(printf -- '--remap-path-prefix=%s ' "${map[@]}") -C strip=symbols"
CFLAGS=$(printf -- '-ffile-prefix-map=%s ' "${map[@]}")
CXXFLAGS=$CFLAGS
export RUSTFLAGS CFLAGS CXXFLAGS
# One unit of code generation for what is large and has no part in reading and writing pages: it shrinks the program.
small=()
for package in pellucid-{cli,sql,tsql,backup,exchange,keyring,engine} clap_builder object_store hyper reqwest rustls; do
  small+=(--config "profile.release.package.$package.codegen-units=1")
done
small+=(--config 'profile.release.package.pellucid-cli.opt-level="s"')
"$cargo" build --release --workspace --locked --target-dir "$out/build" "${small[@]}"
unset RUSTFLAGS CFLAGS CXXFLAGS
.ci/shipped "$PELLUCID_BIN"

# most BYTES LIMIT WHAT: a release does not grow unseen
most() { [ "$1" -le "$2" ] || die "$3 has $1 bytes, and may have $2"; }
most "$(stat -c %s "$PELLUCID_BIN/pellucid")" 25000000 pellucid
# 5.08 MB since it asks plugins (67 KB), opens hybrid wraps (26) and lies over named VFSes (21).
most "$(stat -c %s "$PELLUCID_BIN/libpellucid.so")" 5250000 libpellucid.so
for plugin in pkcs11 tpm; do
  most "$(stat -c %s "$PELLUCID_BIN/pellucid-plugin-$plugin")" 4000000 "pellucid-plugin-$plugin"
done

rm -f "$out"/pellucid[-_]* "$out"/SHA256SUMS*
packaging/deb.sh "$out"
most "$(($(dpkg-deb -f "$out"/pellucid_*.deb Installed-Size) * 1024))" 40000000 "the installed package"
packaging/wheel.sh "$out"
packaging/archive.sh "$out"
packaging/contents.py sbom > "$out/pellucid-$version.cdx.json"
cd "$out"
sha256sum -- pellucid[-_]* > SHA256SUMS
case ${PELLUCID_SIGN-} in
  gpg:*) gpg --batch --yes --local-user "${PELLUCID_SIGN#gpg:}" --armor --detach-sign SHA256SUMS ;;
  ssh:*) ssh-keygen -q -Y sign -n pellucid-release -f "${PELLUCID_SIGN#ssh:}" SHA256SUMS ;;
  '') echo "release: not signed; PELLUCID_SIGN names a key" >&2 ;;
  *) die "PELLUCID_SIGN is neither gpg:KEYID nor ssh:FILE" ;;
esac
ls -l -- pellucid[-_]* SHA256SUMS*
