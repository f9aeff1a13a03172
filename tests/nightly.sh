#!/bin/bash
# Goal: `make nightly` runs every campaign, the one whose record is oldest first, ends with its hours, and tells what failed.
#
# Method: a directory of four campaigns that do nothing: two pass and say so in their records, one fails, one never ends. The
# order is what .ci/nightly prints. Last line as Cargo's; exit 1 if something is not so.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CAMPAIGNS=$work/campaigns CARGO_TARGET_DIR=$work/target
mkdir -p "$CAMPAIGNS/records"
passed=0 failed=0
is() { # is WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$1: expected '$2', found '$3'"; fi
}
campaign() { # campaign NAME COMMAND...
  printf '#!/bin/bash\n# %s\n%s\n' "$1" "${*:2}" >"$CAMPAIGNS/$1"
  chmod +x "$CAMPAIGNS/$1"
}
record() { # record NAME DATE RESULT...
  { printf 'date\ttree\tmachine\tresult\n'; printf "$2\tabc1234\ta machine\t%s\n" "${@:3}"; } >"$CAMPAIGNS/records/$1.tsv"
}
line="printf '%s\tdef5678\ta machine\tok\n' \$(date -u +%F) >>'$CAMPAIGNS/records/'\${0##*/}.tsv"
campaign young "$line"
record young 2026-02-02 ok ok
campaign old "$line"
record old 2026-01-01 ok
campaign broken "exit 1"
record broken 2026-01-15 ok FAILED
campaign new "exit 0"
echo "not a campaign" >"$CAMPAIGNS/pieces.sh"

status=$(.ci/nightly 0)
is "nothing runs in no hours" "" "$(grep '^==' <<<"$status")"
is "each campaign has a line" "broken new old young" "$(sed 1d <<<"$status" | awk '{ print $1 }' | xargs)"
is "a record is summed up" "1 passed, 1 FAILED" "$(grep -o '1 passed, 1 FAILED' <<<"$status")"
is "one without a record" "never run" "$(sed -n 's/^new .*\(never run\).*/\1/p' <<<"$status")"

night=$(.ci/nightly 1)
is "what failed is the exit status" 1 $?
is "the oldest first" "new old broken young" "$(sed -n 's/^== \([a-z]*\),.*/\1/p' <<<"$night" | xargs)"
is "what failed is in the table" 1 "$(grep -c '^broken .*FAILED, see ' <<<"$night")"
is "the newest lines count" "1 passed" "$(sed -n 's/^young *def5678 *0  \(1 passed\) .*/\1/p' <<<"$night")"

# A second and more, whatever the machine's pace: it ends only by being stopped.
campaign endless "sleep 1000"
night=$(.ci/nightly 0.0004)
is "what is stopped has not failed" 0 $?
is "the oldest of all is stopped" "endless" "$(sed -n 's/^\([a-z]*\) .*stopped, the hours were over.*/\1/p' <<<"$night")"
record endless 2026-12-31 ok
night=$(timeout 100 .ci/nightly 0.0004)
is "the next night goes on with the next one" "new" "$(sed -n 's/^== \([a-z]*\),.*/\1/p' <<<"$night" | head -1)"
.ci/nightly eight 2>/dev/null
is "hours are a number" 2 $?

echo "test result: $passed passed; $failed failed; 0 ignored;"
exit $((failed > 0))
