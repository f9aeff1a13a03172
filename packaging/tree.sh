#!/bin/bash
# Lays out what every package installs, below DIRECTORY as below /usr: packaging/tree.sh DIRECTORY
#
# Programs, library, manual pages, completions, documents, licences, units for systemd.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$1
mkdir -p "$tree"
tree=$(realpath "$tree")
make --no-print-directory -s install PREFIX="$tree" DESTDIR= >/dev/null
# The documents are there by now.
doc=$tree/share/doc/pellucid
cat LICENSE-MIT LICENSE-APACHE NOTICE > "$doc/copyright"
packaging/contents.py licences > "$doc/licences-of-others"
packaging/contents.py sbom > "$doc/sbom.cdx.json"
install -D -m 644 packaging/pellucid.service.example "$doc/examples/pellucid.service"
install -D -m 644 packaging/prometheus/pellucid.rules.yml "$doc/examples/pellucid.rules.yml"
# Those that ask a server are root's to put in place.
for plugin in packaging/plugins/pellucid-plugin-*; do
  install -D -m 755 "$plugin" "$doc/examples/plugins/${plugin##*/}"
done
for unit in packaging/pellucid-{policy,backup@}.{service,timer} packaging/pellucid-{agent,archive,standby}@.service packaging/pellucid-broker.service; do
  install -D -m 644 "$unit" "$tree/lib/systemd/system/${unit##*/}"
done
# Whatever may be read of the sources here, or of what is new: all of it is for everybody.
chmod -R u=rwX,go=rX "$tree"
