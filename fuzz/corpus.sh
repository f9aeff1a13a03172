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
    media_*) target=media ;;
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
# Files of openssl's for the imports: length of the certificate's file in two bytes, that file, the key's file. Cheap
# passwords, so that a run is not spent in them.
mkdir -p corpus/import
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
put() { # put NAME CERTIFICATE [KEY]
  if [ $# -eq 3 ]; then length=$(wc -c < "$2"); else length=65535; fi
  { printf "\\$(printf %03o $((length / 256)))\\$(printf %03o $((length % 256)))"; shift; cat "$@"; } > "corpus/import/$1"
}
(
  cd "$made"
  openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 3650 -subj /CN=fuzz
  openssl x509 -in c.pem -outform DER -out c.der
  openssl rsa -in k.pem -outform DER -out k1.der
  openssl rsa -in k.pem -traditional -out k1.pem
  openssl pkcs8 -topk8 -in k.pem -nocrypt -outform DER -out k8.der
  openssl pkcs8 -topk8 -in k.pem -v2 aes-256-cbc -iter 10 -passout pass:password -outform DER -out k8e.der
  openssl pkcs8 -topk8 -in k.pem -scrypt -scrypt_N 16 -scrypt_r 1 -scrypt_p 1 -passout pass:password -out k8s.pem
  openssl pkcs12 -export -in c.pem -inkey k.pem -iter 10 -passout pass:password -out both.pfx
  openssl rsa -in k.pem -outform PVK -pvk-none -out k.pvk
) 2>/dev/null
put both-pem "$made/c.pem" "$made/k.pem"
put both-pkcs1-pem "$made/c.pem" "$made/k1.pem"
put both-der "$made/c.der" "$made/k8.der"
put pkcs1 "$made/c.der" "$made/k1.der"
put encrypted "$made/c.der" "$made/k8e.der"
put scrypt "$made/c.der" "$made/k8s.pem"
put pvk "$made/c.der" "$made/k.pvk"
put alone "$made/c.der"
put pfx "$made/both.pfx"
