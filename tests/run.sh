#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Runs tests and sums their facts: tests/run.sh [KIND | FILE]…, KIND being unit, golden, live, e2e or
# lint. Quiet but for failures; V=1 shows every fact. The last line is
#
#	N passed, N failed[, N skipped]
#
# A test is a program. It prints a line "ok - NAME" or "not ok - NAME" for each fact, or exits 77
# after "SKIP why". One that exits with an error, says nothing, or outlives its time has failed.
# Tests find what was built through FBT_BUILD (a folder), FBT (the tool) and FBT_ENGINE.
set -u
cd "$(dirname "$0")/.." || exit 1

arch=$(uname -m | sed 's/aarch64/arm64/')
export FBT_BUILD=${FBT_BUILD:-build/$arch-gcc}
export FBT=${FBT:-$FBT_BUILD/ferrum-bpftrace}
export FBT_ENGINE=${FBT_ENGINE:-$FBT_BUILD/tests/engine}
export LC_ALL=C
logs=$FBT_BUILD/logs
passed=0
failed=0
skipped=0

# Seconds a test may take: generous, a hung one is what they are for. The longest take a tenth of it
# on a machine that has nothing else to do.
seconds_for()
{
	case $1 in
	unit) echo "${TEST_SECONDS:-600}" ;;
	*) echo "${TEST_SECONDS:-900}" ;;
	esac
}

files_of()
{
	case $1 in
	unit)
		local source
		for source in tests/unit/*_test.c; do
			[ -e "$source" ] && echo "$FBT_BUILD/tests/$(basename "$source" .c)"
		done
		;;
	golden) echo tests/golden/run.sh ;;
	live | e2e | lint)
		local script
		for script in tests/"$1"/*.sh; do
			# lib.sh is what the others source.
			[ -e "$script" ] && [ "$script" != "tests/$1/lib.sh" ] && echo "$script"
		done
		;;
	*) echo "$1" ;;
	esac
}

kind_of()
{
	case $1 in
	*_test) echo unit ;;
	tests/*) echo "$1" | cut -d/ -f2 ;;
	*) echo other ;;
	esac
}

# Runs one test and adds up what it said.
run_test()
{
	local file=$1 kind name log seconds status good bad skips

	kind=$(kind_of "$file")
	name=$kind/$(basename "$file" .sh)
	log=$logs/${name//\//-}.log
	seconds=$(seconds_for "$kind")
	CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 "$seconds" "$file" </dev/null >"$log" 2>&1
	status=$?
	good=$(grep -cE '^ok( [0-9]+)? - ' "$log")
	bad=$(grep -cE '^not ok( [0-9]+)? - ' "$log")
	skips=$(grep -cE '^SKIP ' "$log")
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		echo "not ok - $name: still running after $seconds s, killed" | tee -a "$log"
		bad=$((bad + 1))
	elif [ "$status" = 77 ] && [ "$skips" -gt 0 ]; then
		status=0
	elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		echo "not ok - $name: exit status $status" | tee -a "$log"
		bad=1
	elif [ $((good + bad + skips)) = 0 ]; then
		echo "not ok - $name: it stated no fact" | tee -a "$log"
		bad=1
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
	skipped=$((skipped + skips))
	if [ "$bad" != 0 ]; then
		echo "----- $name failed; $log ends:"
		tail -n "${TEST_LOG_LINES:-60}" "$log" | sed 's/^/    /'
	elif [ "${V:-0}" = 1 ]; then
		grep -E '^(ok|SKIP)' "$log" | sed "s|^|$name: |"
	else
		printf '  %-8s %-32s %s\n' "$([ "$skips" = 0 ] && echo PASS || echo SKIP)" "$name" \
			"$good$([ "$skips" = 0 ] || sed -n 's/^SKIP /, skipped: /p' "$log" | head -1)"
	fi
}

mkdir -p "$logs"
for argument in "$@"; do
	for file in $(files_of "$argument"); do
		run_test "$file"
	done
done
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
[ "$failed" = 0 ]
