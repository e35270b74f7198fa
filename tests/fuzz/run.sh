#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# make fuzz, make fuzz-merge: tests/fuzz/run.sh fuzz|merge [TARGET]. Prints a fact for each target.
# Findings are in build/fuzz, as TARGET-crash-…, TARGET-timeout-…, with TARGET.log.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=lib.sh
. tests/fuzz/lib.sh

# cpu_seconds LOG: CPU time of the processes that this shell has started, which a busy machine does
# not change
cpu_seconds()
{
	awk -F'[m.]' 'NR == 2 { print $1 * 60 + $2 }' "$1.times"
}

fuzz_target()
{
	local target=$1 log=$FUZZ_WORK/$1.log work=$FUZZ_WORK/corpus/$1

	mkdir -p "$work"
	if fuzz "$target" "$log" -max_total_time="${FUZZ_SECONDS:?}" "$work" "$corpora/$target"; then
		times >"$log.times"
		echo "ok - $target: $(executions "$log") runs in $(cpu_seconds "$log") s of CPU," \
			"$(figure "$log" cov) edges, nothing found"
	else
		echo "not ok - $target: $(finding "$log"): see $log and $FUZZ_WORK/$target-*"
	fi
}

# copy_small FROM TO: the smallest files, up to 128 KiB in all, because the corpora are in the
# repository
copy_small()
{
	local file left=131072

	find "$1" -type f -printf '%s %p\n' | sort -n | while read -r size file; do
		left=$((left - size))
		[ "$left" -lt 0 ] || cp "$file" "$2"
	done
}

# As few inputs as reach all edges. Keeping all features would need ten times as many.
merge_target()
{
	local target=$1 log=$FUZZ_WORK/$1.merge.log merged=$FUZZ_WORK/merged/$1

	rm -rf "$merged"
	mkdir -p "$merged" "$FUZZ_WORK/corpus/$target" "$corpora/$target"
	if fuzz "$target" "$log" -set_cover_merge=1 -use_counters=0 "$merged" \
		"$corpora/$target" "$FUZZ_WORK/corpus/$target"; then
		# Regression inputs have names of their own, and stay whatever they reach.
		find "$corpora/$target" -type f -regextype egrep -regex '.*/[0-9a-f]{40}' -delete
		copy_small "$merged" "$corpora/$target"
		echo "ok - $target: $(find "$corpora/$target" -type f | wc -l) inputs"
	else
		echo "not ok - $target: $(finding "$log"): see $log"
	fi
}

mkdir -p "$FUZZ_WORK"
if [ $# = 2 ]; then
	"$1_target" "$2"
	exit
fi
result=$(mktemp)
trap 'rm -f "$result"' EXIT
tr -s ' ' '\n' <<<"$TARGETS" | xargs -P "${FUZZ_JOBS:-1}" -I{} tests/fuzz/run.sh "${1:?fuzz or merge}" {} |
	tee "$result"
bad=$(grep -c '^not ok' "$result")
echo "$(grep -c '^ok' "$result") passed, $bad failed"
[ "$bad" = 0 ]
