#!/bin/sh
# Makes fuzz/corpus/TARGET from the bodies of vectors/.
set -eu
cd "$(dirname "$0")"
for vector in ../vectors/*_*; do
  name=${vector##*/}
  case $name in
    header_*) target=header ;;
    sector-0_*|wear_*) target=sector ;;
    wal-*) target=wal ;;
    journal-*) target=journal ;;
    keyring_*) target=keyring ;;
    *) continue ;;
  esac
  mkdir -p "corpus/$target"
  sed '1,/^$/d' "$vector" | tr -d '\n' | xxd -r -p > "corpus/$target/$name"
done
# A protector is what a header of the vectors holds from byte 232 on.
mkdir -p corpus/protector
for header in corpus/header/*; do
  tail -c +233 "$header" > "corpus/protector/${header##*/}"
done
