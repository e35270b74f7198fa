#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Runs tests and sums their facts: tests/run.sh [KIND | FILE]…, KIND being unit, golden, live, e2e or
# lint. Quiet but for failures; V=1 shows every fact. The last line is
#
#	N passed, N failed[, N skipped]
#
# and the ten slowest tests and the reason of each skip are listed before it.
#
# A test is a program. It prints a line "ok - NAME" or "not ok - NAME" for each fact, or exits 77
# after "SKIP why". A line "SKIP NAME: why" stands for one fact that cannot be held here. A test that
# exits with an error, says nothing, or outlives its time has failed.
# Tests find what was built through FBT_BUILD (a folder), FBT (the tool) and FBT_ENGINE.
#
# Four unit tests run at once, and two of live and e2e, those first that tests/sets.txt gives the most
# seconds. Tests whose lane there is `alone` run last, with nothing beside them. JOBS=N sets the
# number for both; LANE=any or LANE=alone leaves out the tests of the other lane.
set -u
cd "$(dirname "$0")/.." || exit 1

arch=$(uname -m | sed 's/aarch64/arm64/')
export FBT_BUILD=${FBT_BUILD:-build/$arch-gcc}
export FBT=${FBT:-$FBT_BUILD/ferrum-bpftrace}
export FBT_ENGINE=${FBT_ENGINE:-$FBT_BUILD/tests/engine}
export LC_ALL=C
# Tests of page faults need a disk, and /tmp is memory on some distributions.
[ "$(stat -f -c %T /tmp)" != tmpfs ] || export TMPDIR=${TMPDIR:-/var/tmp}
logs=$FBT_BUILD/logs
passed=0
failed=0
skipped=0
took=()    # "MILLISECONDS NAME" of each test that ended
reasons=() # "NAME: why" of each skip
declare -A running=() began=() set_of=()

# A version manager's python3 is a shell script whose start costs more than what most tests do with
# it. The interpreter behind it is put first in PATH.
resolve_python()
{
	local shim real

	shim=$(command -v python3) && [ "$(head -c 2 "$shim")" = '#!' ] || return 0
	real=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) && [ -x "$real" ] || return 0
	mkdir -p "$FBT_BUILD/python"
	ln -sfn "$real" "$FBT_BUILD/python/python3"
	PATH=$(realpath "$FBT_BUILD/python"):$PATH
}

files_of()
{
	local file

	case $1 in
	unit)
		for file in tests/unit/*/*_test.c; do
			[ -e "$file" ] && echo "$file"
		done
		;;
	golden | live | e2e | lint)
		for file in tests/"$1"/*.sh; do
			# The other scripts source lib.sh.
			[ -e "$file" ] && [ "$file" != "tests/$1/lib.sh" ] && echo "$file"
		done
		;;
	*) echo "$1" ;;
	esac
}

kind_of()
{
	case $1 in
	tests/*) cut -d/ -f2 <<<"$1" ;;
	*) echo other ;;
	esac
}

# unit/gpu/join, live/counts, golden/run
name_of()
{
	local name=${1#tests/}

	name=${name%.sh}
	echo "${name%_test.c}"
}

# seconds_for FILE: the maximum for a test. Only a hung one should reach it: on an idle machine most
# take a tenth of it, and none more than a third.
seconds_for()
{
	local kind usual least=900

	kind=$(kind_of "$1")
	[ "$kind" != unit ] || least=600
	# clang-tidy takes 8 minutes, where a header has changed that all files include.
	[ "$kind" != lint ] || least=1800
	read -r usual _ <<<"${set_of[$(name_of "$1")]:-0}"
	[ $((3 * usual)) -le $least ] || least=$((3 * usual))
	echo "${TEST_SECONDS:-$least}"
}

log_of()
{
	local name

	name=$(name_of "$1")
	echo "$logs/${name//\//-}.log"
}

# The columns of tests/sets.txt that matter here: duration and lane.
read_sets()
{
	local name seconds lane

	[ -e tests/sets.txt ] || return 0
	while read -r name seconds _ lane _; do
		set_of[$name]="$seconds $lane"
	done < <(grep "^[a-z]" tests/sets.txt)
}

start_test()
{
	local file=$1 kind command

	kind=$(kind_of "$file")
	command=("$file")
	# One binary a folder; its argument is the file to run.
	[ "$kind" != unit ] ||
		command=("$FBT_BUILD/tests/unit_$(basename "$(dirname "$file")")" "$(basename "$file" .c)")
	# A shell's background jobs ignore SIGINT, and so would all that the test starts.
	CMOCKA_MESSAGE_OUTPUT=TAP env --default-signal=INT,QUIT timeout -k 5 "$(seconds_for "$file")" \
		"${command[@]}" </dev/null >"$(log_of "$file")" 2>&1 &
	running[$!]=$file
	began[$!]=${EPOCHREALTIME/./}
}

# skips_of LOG: the reason of each skip. A unit test prints "SKIP why", then cmocka reports the
# skip.
skips_of()
{
	awk '
		/^SKIP / { if (why) print why; why = substr($0, 6); next }
		/^(not )?ok [0-9]+ # SKIP / { print why ? why : $NF; why = ""; next }
		/^(not )?ok / && why { print why; why = "" }
		END { if (why) print why }' "$1"
}

# failures_of NAME: each fact that failed, with the line "# …" beside it in the log. Scripts print
# that before the fact, cmocka after it.
failures_of()
{
	awk -v name="$1: " '
		function tell(why) {
			printf "  FAIL     %s%s%s\n", name, fact, why ? " (" substr(why, 1, 600) ")" : ""
			fact = note = ""
		}
		/^not ok( [0-9]+)? - / {
			if (fact)
				tell("")
			fact = $0
			sub(/^not ok( [0-9]+)? - /, "", fact)
			if (index(fact, name) == 1)
				fact = substr(fact, length(name) + 1)
			if (note)
				tell(note)
			next
		}
		/^# / && !/^# not ok/ {
			note = substr($0, 3)
			if (fact)
				tell(note)
			next
		}
		/^ / { next } # it goes on
		{
			if (fact)
				tell("")
			note = ""
		}
		END {
			if (fact)
				tell("")
		}'
}

# end_test FILE STATUS MILLISECONDS: adds up the facts that the test printed
end_test()
{
	local file=$1 status=$2 name log good bad skips why=()

	name=$(name_of "$file")
	log=$(log_of "$file")
	good=$(grep -cE '^ok( [0-9]+)? - ' "$log")
	bad=$(grep -cE '^not ok( [0-9]+)? - ' "$log")
	mapfile -t why < <(skips_of "$log")
	skips=${#why[@]}
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		echo "not ok - $name: still running after $(seconds_for "$file") s, killed" |
			tee -a "$log"
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
	took+=("$3 $name")
	[ "$skips" = 0 ] || reasons+=("${why[@]/#/$name: }")
	if [ "$bad" != 0 ]; then
		echo "----- $name failed; $log ends:"
		tail -n "${TEST_LOG_LINES:-60}" "$log" | sed 's/^/    /'
		failures_of "$name" <"$log"
	elif [ "${V:-0}" = 1 ]; then
		grep -E '^(ok|SKIP)' "$log" | sed "s|^|$name: |"
	else
		printf '  %-8s %-32s %4d %8s s%s\n' "$([ "$skips" = 0 ] && echo PASS || echo SKIP)" \
			"$name" "$good" "$(in_seconds "$3")" \
			"${why[0]:+, skipped: ${why[0]}}"
	fi
}

in_seconds()
{
	printf '%d.%d' $(($1 / 1000)) $(($1 % 1000 / 100))
}

wait_one()
{
	local pid status

	wait -n -p pid "${!running[@]}"
	status=$?
	end_test "${running[$pid]}" $status $(((${EPOCHREALTIME/./} - began[$pid]) / 1000))
	unset "running[$pid]" "began[$pid]"
}

# run_lanes JOBS FILE…
run_lanes()
{
	local count=$1 file

	shift
	for file; do
		[ ${#running[@]} -lt "$count" ] || wait_one
		start_test "$file"
	done
	while [ ${#running[@]} -gt 0 ]; do
		wait_one
	done
}

give_up()
{
	kill "${!running[@]}" 2>/dev/null
	wait
	exit 130
}
trap give_up INT TERM

# Puts each file into its lane. A test without a lane runs by itself, in the order given.
plan()
{
	local argument file name seconds lane kind

	for argument; do
		for file in $(files_of "$argument"); do
			name=$(name_of "$file")
			read -r seconds lane <<<"${set_of[$name]:-0 any}"
			kind=$(kind_of "$file")
			[ -z "${LANE:-}" ] || [ "$LANE" = "$lane" ] || continue
			case $kind-$lane in
			*-alone) alone+=("$seconds $file") ;;
			unit-*) units+=("$seconds $file") ;;
			live-* | e2e-*) pairs+=("$seconds $file") ;;
			*) others+=("$seconds $file") ;;
			esac
		done
	done
}

# longest_first JOBS ENTRY…: the order in which to run the files
longest_first()
{
	local count=$1

	shift
	[ $# -gt 0 ] || return 0
	if [ "$count" = 1 ]; then printf '%s\n' "$@"; else printf '%s\n' "$@" | sort -srnk1,1; fi | cut -d' ' -f2-
}

# run_all JOBS ENTRY…
run_all()
{
	local order

	mapfile -t order < <(longest_first "$@")
	run_lanes "$1" "${order[@]}"
}

# Processes that a test leaves behind must not hold a lock or pipe of the caller of this script.
for fd in /proc/self/fd/*; do
	fd=${fd##*/}
	[ "$fd" -le 2 ] || [ "$fd" = 255 ] || eval "exec $fd>&-"
done
mkdir -p "$logs"
[ -n "${FBT_QUERY_SERVER:-}" ] || resolve_python
read_sets
units=() pairs=() others=() alone=()
plan "$@"
run_all "${JOBS:-4}" "${units[@]}"
run_all 1 "${others[@]}"
run_all "${JOBS:-2}" "${pairs[@]}"
run_all 1 "${alone[@]}"
if [ ${#took[@]} -gt 10 ]; then
	echo 'the slowest:'
	printf '%s\n' "${took[@]}" | sort -rnk1,1 | head -n 10 | while read -r milliseconds name; do
		printf '  %8s s  %s\n' "$(in_seconds "$milliseconds")" "$name"
	done
fi
if [ ${#reasons[@]} -gt 0 ] && [ ${#took[@]} -gt 1 ]; then
	echo 'skipped:'
	printf '  %s\n' "${reasons[@]}"
fi
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
[ "$failed" = 0 ]
