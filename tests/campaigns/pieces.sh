# What campaigns in pieces share: a piece that has passed for the same sources is not run again. Sourced, not run.
#
# $record and $tree are the campaign's. A line of a record: date, sources, machine, what names the piece (its key: one
# column or more), figures, `ok` or what went wrong.

# Databases of format version 2 (PELLUCID_FORMAT=2) have a record of their own.
[ "${PELLUCID_FORMAT:-1}" = 1 ] || record=${record%.tsv}-2.tsv

passed=0 failed=0
machine="$(nproc) x $(sed -n 's/^model name[^:]*: //p;' /proc/cpuinfo | head -1), $(uname -sr)"

# sources KIND [PATH...]: $tree as .ci/tree names it; without it nothing is run
sources() {
  tree=$(.ci/tree "$@") || exit 1
}

# passed_before KEY...: whether the record says so. What differs from HEAD has no name of its own: it is run each time
passed_before() {
  local IFS=$'\t'
  [[ $tree != *+ ]] && awk -F'\t' -v tree="$tree" -v key="$*" '
    $2 == tree && $NF == "ok" {
      line = $0
      for (column = 1; column <= 3; column++) line = substr(line, index(line, FS) + 1)
      if (index(line, key FS) == 1) { found = 1; exit }
    }
    END { exit !found }' "$record"
}

# piece NAME FIGURES KEY... -- COMMAND...: runs it for at most ten minutes, unless it has passed before, and appends its line
#
# The figures are the last ones of its line `RESULT ...`. Without that line nothing ran, whatever the command says. A
# function `heard` of the campaign's gets the key and, on its standard input, all that was said.
piece() {
  local name=$1 figures=$2 key=() log said result
  shift 2
  while [ "$1" != -- ]; do key+=("$1"); shift; done
  shift
  if passed_before "${key[@]}"; then
    echo "$name: passed before"
    passed=$((passed + 1))
    return
  fi
  log=$(mktemp)
  timeout 600 "$@" > "$log" 2>&1
  case $? in 0) result=ok ;; 124) result=timeout ;; *) result=FAILED ;; esac
  ! declare -F heard >/dev/null || heard "${key[@]}" < "$log"
  said=$(awk -v figures="$figures" '
    sub(/^(.* )?RESULT /, "") && NF >= figures { for (at = NF - figures + 1; at <= NF; at++) printf "\t%s", $at; exit }' "$log")
  if [ -z "$said" ]; then
    said=$(printf '\t-%.0s' $(seq "$figures"))
    [ $result != ok ] || result=FAILED
  fi
  (IFS=$'\t'; printf '%s\t%s\t%s\t%s%s\t%s\n' "$(date -u +%F)" "$tree" "$machine" "${key[*]}" "$said" "$result") | tee -a "$record"
  if [ $result = ok ]; then
    passed=$((passed + 1))
    rm -f "$log"
  else
    failed=$((failed + 1))
    echo "${0##*/}: failed; its output: $log" >&2
  fi
}

# ended: the last line, and whether all passed
ended() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
