#!/bin/sh
# Makes what a release leaves on people's disks: make.sh PROGRAM_DIR OUT [--with-program], with `pellucid` and
# `libpellucid.so` in PROGRAM_DIR. README.md beside it says when.
here=$(dirname "$0")
# Backups say on which machine they were made: on none in particular, where that can be had.
if unshare --map-root-user --uts hostname release 2>/dev/null; then
  exec unshare --map-root-user --uts sh -c 'hostname release && exec python3 "$@"' sh "$here/make.py" "$@"
fi
exec python3 "$here/make.py" "$@"
