#!/bin/bash
# Prints the glibc that files need, as 2.34: the newest version that one of their symbols asks for.
#
#   packaging/glibc.sh FILE...
#
# Exit: 0 printed, 1 a file cannot be read or needs no glibc.
set -euo pipefail
needed=
for file in "$@"; do
  symbols=$(readelf --dyn-syms --wide -- "$file")
  # A pipe into `head` would end the sort early.
  of=$(grep -oE '@GLIBC_[0-9]+(\.[0-9]+)+' <<<"$symbols" | sed 's/.*_//' | sort -uV | tail -n 1)
  [ -n "$of" ] || { echo "glibc: $file asks for no version of glibc" >&2; exit 1; }
  needed+="$of"$'\n'
done
sort -V <<<"${needed%$'\n'}" | tail -n 1
