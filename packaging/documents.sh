#!/bin/bash
# Copies the documents that are installed: packaging/documents.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
for page in docs/{guide,how-it-works,design,format,glossary}.md docs/{design,guide}/*.md docs/pictures/*.svg; do
  install -D -m 644 "$page" "$1/${page#docs/}"
done
