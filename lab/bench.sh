#!/bin/bash
# The benchmark: builds the peers and speedtest1, then `lab full`, and at the end the verdict on its records.
#
#   lab/bench.sh                 run it all; says beforehand how long that takes
#   lab/bench.sh --estimate      build both and only say so
#   PIECES="cells peers" lab/bench.sh    just these, or `measurements`, or `experiments`
#   ROUNDS=20 lab/bench.sh       more rounds of each piece
#   RECORDS=DIR lab/bench.sh     the records there; if it has some already, goes on with them
#
# Wants an idle machine, a release build of a committed tree, and space (BENCH_DIR, default target/).
# Exit: 0 all goals reached, 1 not, or something failed, 2 usage.
set -eu
case ${1-} in ''|--estimate) ;; *) echo "bench.sh: there is no '$1'; see the head of $0" >&2; exit 2 ;; esac
cd "$(dirname "$0")/.."
lab=${CARGO_TARGET_DIR:-target}/release/lab
records=${RECORDS:-lab/records/full-$(date -u +%Y%m%dT%H%M%SZ)}
pieces=${PIECES:+${PIECES// /,}}
command=("$lab" full --resume --records "$records")
command+=(${pieces:+--pieces "$pieces"} ${ROUNDS:+--rounds "$ROUNDS"} ${BENCH_DIR:+--dir "$BENCH_DIR"})
case ",${pieces:-all}," in *peers,*|*,all,*|*,measurements,*) lab/peers/build.sh ;; esac
case ",${pieces:-all}," in *,speedtest1,*|*,all,*|*,measurements,*) lab/speedtest1.sh ;; esac
[ "${1-}" = --estimate ] && exec "${command[@]}" --estimate
"${command[@]}"
echo "== verdict of $records"
"$lab" verdict "$records"/*.jsonl
