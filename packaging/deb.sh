#!/bin/bash
# Builds the Debian package from what was built before: packaging/deb.sh [DIRECTORY]  (default target/packages)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-target/packages}
umask 022
mkdir -p "$out"
release=$(realpath "${PELLUCID_BIN:-${CARGO_TARGET_DIR:-target}/release}")
version=${PELLUCID_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}
# What a symbol asks for, the package asks for: else it installs where it cannot start.
glibc=$(packaging/glibc.sh "$release/pellucid" "$release/libpellucid.so" "$release/lab" "$release"/pellucid-plugin-{pkcs11,tpm})
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
packaging/tree.sh "$work/usr"
gzip -9n "$work"/usr/share/man/man1/*.1
mkdir "$work/DEBIAN"
cat >"$work/DEBIAN/control" <<CONTROL
Package: pellucid
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: Pellucid <maintainers@invalid>
Depends: libc6 (>= $glibc), libgcc-s1
Suggests: sqlite3, tpm2-tools
Section: database
Priority: optional
Installed-Size: $(du -sk --apparent-size "$work/usr" | cut -f1)
Description: transparent encryption for SQLite databases
 Databases, write-ahead logs, journals and temporary files are never in clear
 on disk, under the SQLite that is installed. Programs go on unchanged.
CONTROL
# Keys are nobody's to remove but their owner's, purge included.
cat >"$work/DEBIAN/postrm" <<'POSTRM'
#!/bin/sh
set -e
case $1 in
remove | purge)
  if [ -d /var/lib/pellucid ]; then
    echo "pellucid: kept: the keys in /var/lib/pellucid, without which its databases and backups never open again"
  fi
  ;;
esac
POSTRM
chmod 755 "$work/DEBIAN/postrm"
dpkg-deb --root-owner-group --build "$work" "$out/pellucid_${version}_$(dpkg --print-architecture).deb" >/dev/null
ls "$out"/pellucid_"$version"_*.deb
