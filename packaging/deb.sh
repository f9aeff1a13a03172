#!/bin/bash
# Builds the Debian package from what was built before: packaging/deb.sh [DIRECTORY]  (default target/packages)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-target/packages}
mkdir -p "$out"
version=${PELLUCID_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
make --no-print-directory -s install PREFIX=/usr DESTDIR="$work" >/dev/null
gzip -9n "$work"/usr/share/man/man1/*.1
install -D -m 644 LICENSE-MIT "$work/usr/share/doc/pellucid/copyright"
cat LICENSE-APACHE >>"$work/usr/share/doc/pellucid/copyright"
for page in docs/{guide,how-it-works,design,format,glossary}.md docs/{design,guide}/*.md docs/pictures/*.svg; do
  install -D -m 644 "$page" "$work/usr/share/doc/pellucid/${page#docs/}"
done
install -D -m 644 packaging/pellucid.service.example "$work/usr/share/doc/pellucid/examples/pellucid.service"
for unit in packaging/pellucid-{policy,backup@}.{service,timer}; do
  install -D -m 644 "$unit" "$work/usr/lib/systemd/system/${unit##*/}"
done
mkdir "$work/DEBIAN"
cat >"$work/DEBIAN/control" <<CONTROL
Package: pellucid
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: Pellucid <maintainers@invalid>
Depends: libc6 (>= 2.31), libgcc-s1
Suggests: sqlite3
Section: database
Priority: optional
Installed-Size: $(du -sk "$work/usr" | cut -f1)
Description: transparent encryption for SQLite databases
 Databases, write-ahead logs, journals and temporary files are never in clear
 on disk, under the SQLite that is installed. Programs go on unchanged.
CONTROL
dpkg-deb --root-owner-group --build "$work" "$out/pellucid_${version}_$(dpkg --print-architecture).deb" >/dev/null
ls "$out"/pellucid_"$version"_*.deb
