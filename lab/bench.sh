#!/bin/bash
# The benchmark: every piece in order, the records of all in one file, the verdict at the end.
#
#   lab/bench.sh                 run it all; says beforehand how long that takes
#   lab/bench.sh --estimate      only say so
#   PIECES="cells peers" lab/bench.sh    just these
#   ROUNDS=20 lab/bench.sh       more rounds of each piece
#
# Wants an idle machine, a release build of a committed tree, and 8 GiB of space (BENCH_DIR, default target/).
# Exit: 0 all goals reached, 1 not, or something failed, 2 usage.
set -eu
case ${1-} in ''|--estimate) ;; *) echo "bench.sh: there is no '$1'; see the head of $0" >&2; exit 2 ;; esac
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
rounds=${ROUNDS:-10}
records=lab/records/bench-$(date -u +%Y%m%dT%H%M%SZ).jsonl
lab=$target/release/lab peers=$target/peers/lab
mix=1-NORMAL-4/3/3,1-FULL-4/3/3,10-NORMAL-4/3/3,10-FULL-4/3/3

piece() { # piece NAME: its command
  case $1 in
    cells)      command=("$lab" purchase --sides plain,again,sealed --cells all) ;;
    peers)      command=("$peers" purchase --sides plain,sealed,aegis,sqlcipher --cells peers) ;;
    delete)     command=("$lab" purchase --sides plain,sealed --journal DELETE --cells "$mix") ;;
    large)      command=("$lab" purchase --sides plain,sealed --cards 100000 --cells "1-NORMAL-10/0/0,10-NORMAL-10/0/0,$mix") ;;
    page1024)   command=("$lab" purchase --sides plain,sealed --page-size 1024 --cells "$mix") ;;
    page16384)  command=("$lab" purchase --sides plain,sealed --page-size 16384 --cells "$mix") ;;
    3des)       command=("$lab" purchase --sides plain,sealed --algorithm TRIPLE_DES_3KEY --cells "$mix") ;;
    whole)      command=("$lab" whole --sides plain,again,sealed) ;;
    speedtest1) command=("$lab" speedtest1 --sides plain,again,sealed) ;;
    opening)    command=("$lab" opening --sides plain,again,sealed) ;;
    scan-load)  command=("$lab" scan-load) ;;
    scan-load-delete) command=("$lab" scan-load --journal DELETE) ;;
    scan-load-3des) command=("$lab" scan-load --size-mib 256 --algorithms TRIPLE_DES_3KEY,AES_256) ;;
    scan-speed) command=("$lab" scan-speed --sides plain,again,sealed) ;;
    scan-peers) command=("$peers" scan-speed --sides plain,sealed,aegis,sqlcipher --journal DELETE --size-mib 256
                         --algorithms AES_256) ;;
    backup-speed) command=("$lab" backup-speed) ;;
    backup-load) command=("$lab" backup-load --size-mib 2048) ;;
    backup-load-delete) command=("$lab" backup-load --size-mib 2048 --journal DELETE --busy-timeout-ms 10000) ;;
    *) echo "bench.sh: there is no piece '$1'" >&2; exit 1 ;;
  esac
  command+=(--rounds "$rounds" ${BENCH_DIR:+--dir "$BENCH_DIR"})
}

backups="backup-speed backup-load backup-load-delete"
scans="scan-load scan-load-delete scan-load-3des scan-speed scan-peers"
pieces=(${PIECES:-cells peers delete large page1024 page16384 3des whole speedtest1 opening $scans $backups})
case " ${pieces[*]} " in *peers" "*) lab/peers/build.sh ;; esac
case " ${pieces[*]} " in *" speedtest1 "*) lab/speedtest1.sh ;; esac

total=0
for name in "${pieces[@]}"; do
  piece "$name"
  seconds=$("${command[@]}" --estimate)
  total=$((total + seconds))
  printf '%-16s about %4d min\n' "$name" $(((seconds + 59) / 60))
done
printf '%-16s about %4d min, until %s\n' all $(((total + 59) / 60)) "$(date -d "+$total seconds" +%H:%M)"
[ "${1-}" = --estimate ] && exit

for name in "${pieces[@]}"; do
  piece "$name"
  echo "== $name: ${command[*]}"
  "${command[@]}" --records "$records"
done
echo "== verdict of $records"
"$lab" verdict "$records"
