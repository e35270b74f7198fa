# shellcheck shell=bash disable=SC2034,SC2119
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the live tests share: sourced first, it goes to the repository's root, skips where there is no
# root or no BTF, and gives a folder $TMP that is removed at the end, with all that was started.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
: "${FBT:=$FBT_BUILD/ferrum-bpftrace}"
: "${FBT_ENGINE:=$FBT_BUILD/tests/engine}"
FBT=$(realpath -m "$FBT")
FBT_ENGINE=$(realpath -m "$FBT_ENGINE")
[ "$(id -u)" = 0 ] || { echo 'SKIP needs root' && exit 77; }
[ -r /sys/kernel/btf/vmlinux ] || { echo 'SKIP the kernel has no BTF' && exit 77; }
unset FERRUM_TRACE_OUT FERRUM_PROFILE_JSONL "${!FERRUM_BPFTRACE@}"

FAILED=0
TMP=$(mktemp -d)

# undo: cleans up what a test has changed. A test that needs it redefines it.
undo()
{
	:
}

# keep_evidence STATUS: leaves $TMP of a failed test in the folder KEEP_FAILED, under the test's name
keep_evidence()
{
	[ -n "${KEEP_FAILED:-}" ] && [ "$1" != 0 ] && [ "$1" != 77 ] || return 0
	mkdir -p "$KEEP_FAILED"
	# A pipe that a test has made is copied as one, not read.
	cp -R "$TMP" "$KEEP_FAILED/$(basename "$0" .sh).$$"
}

# A background job that is killed before it has reset its shell's traps runs them. That is not the
# end of the test.
clean_up()
{
	local status=$? pids

	[ "$BASHPID" = $$ ] || return
	pids=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$pids$ANSWERS" ] || kill -9 $pids $ANSWERS 2>/dev/null
	wait 2>/dev/null
	undo
	keep_evidence "$status"
	rm -rf "$TMP"
}
trap clean_up EXIT

# at_length SHORT LONG: LONG with TEST_LONG=1, which is for nights
at_length()
{
	if [ "${TEST_LONG:-0}" = 1 ]; then echo "$2"; else echo "$1"; fi
}

ok()
{
	echo "ok - $1"
}

not_ok()
{
	echo "not ok - $1"
	FAILED=1
}

# is NAME GOT WANTED
is()
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		echo "# $1: got '$2', wanted '$3'"
		not_ok "$1"
	fi
}

# holds NAME COMMAND…: the fact is that the command succeeds
holds()
{
	local name=$1

	shift
	if "$@"; then
		ok "$name"
	else
		echo "# $name: failed: $*"
		not_ok "$name"
	fi
}

# has NAME FILE REGEX: a line of the file matches
has()
{
	if grep -qE -- "$3" "$2"; then
		ok "$1"
	else
		echo "# $1: no /$3/ in:"
		sed 's/^/#   /' "$2"
		not_ok "$1"
	fi
}

# ask_python SCRIPT ARGUMENT…: prints the script's output. In guests python3 itself is fast, see
# tests/kernels/python3.c.
OUT=$TMP/out
export TMP OUT
ANSWERS=
if [ -z "${FBT_QUERY_SERVER:-}" ]; then
	mkfifo "$TMP/questions"
	python3 tests/live/answer.py "$TMP/questions" </dev/null >/dev/null 2>"$TMP/answers.err" &
	ANSWERS=$!
	disown $ANSWERS
fi
ask_python()
{
	local reply=$TMP/answer.$BASHPID

	if [ -z "$ANSWERS" ]; then
		python3 "$@" 2>&1
		return
	fi
	mkfifo "$reply"
	printf '%s\0' "$reply" "$OUT" "$TMP" $# "$@" >"$TMP/questions"
	cat "$reply"
	rm "$reply"
}

# q EXPRESSION: see query.py. OUT=PREFIX q … asks about another run.
q()
{
	ask_python tests/live/query.py "$1"
}

# contradicted GOT EXPRESSION: what was got comes first, as a summary cuts the line
contradicted()
{
	local got=${1//[[:space:]]/ } expression=${2//[[:space:]]/ }

	echo "# got ${got//  / }, of: $expression"
}

# fact NAME EXPRESSION: the expression is true
fact()
{
	local got

	got=$(q "$2")
	if [ "$got" = True ]; then
		ok "$1"
	else
		contradicted "$got" "$2"
		not_ok "$1"
	fi
}

# none NAME EXPRESSION: like fact, with a list of what contradicts it; it is printed.
none()
{
	local got

	got=$(q "$2")
	if [ "$got" = '[]' ]; then
		ok "$1"
	else
		contradicted "$got" "$2"
		not_ok "$1"
	fi
}

# Time that the CPUs were busy, that they had in all, and that this test took: in ticks.
read_ticks()
{
	local line ticks
	local -a cpu_stat shell_stat

	read -r _ line </proc/stat
	read -ra cpu_stat <<<"$line"
	read -r line </proc/$$/stat
	read -ra shell_stat <<<"${line##*) }"
	all=0
	for ticks in "${cpu_stat[@]:0:8}"; do all=$((all + ticks)); done
	busy=$((all - cpu_stat[3] - cpu_stat[4]))
	mine=$((shell_stat[11] + shell_stat[12] + shell_stat[13] + shell_stat[14]))
}

count_others_from_here()
{
	local all busy mine

	read_ticks
	ticks_before=("$all" "$busy" "$mine")
}

# Sets others: how many thousandths of the CPUs' time other programs took since then, rounded up.
# This test's own have ended, and have been waited for.
count_others()
{
	local all busy mine

	read_ticks
	all=$((all - ticks_before[0]))
	others=$((((busy - ticks_before[1] - mine + ticks_before[2]) * 1000 + all - 1) / all))
}

# where_quiet fact|none|holds NAME ARGUMENT…: on a busy machine steps are slow for other reasons. Up
# to 2 % of the CPUs' time is no trouble.
where_quiet()
{
	if [ "$others" -le 20 ]; then
		"$@"
	else
		echo "SKIP $2: other programs took $((others / 10)).$((others % 10)) % of the CPUs' time"
	fi
}

# start_waiting COMMAND…: COMMAND prints ready and waits for its go; its id is in ENGINE
start_waiting()
{
	rm -f "$TMP/go" "$TMP/truth.json"
	mkfifo "$TMP/go" "$TMP/ready"
	# A child's descriptors must not keep the FIFO open, or it would never see the end of stdin.
	"$@" <"$TMP/go" >"$TMP/ready" 7>&- &
	ENGINE=$!
	exec 7>"$TMP/go"
	read -r _ <"$TMP/ready"
	rm "$TMP/ready"
}

# stop_process PID: sends SIGSTOP and waits until the process has stopped, since the signal takes
# effect when the process next runs
stop_process()
{
	kill -STOP "$1"
	until grep -q '^State:.T' "/proc/$1/status" || [ ! -e "/proc/$1" ]; do sleep 0.01; done 2>/dev/null
}

# start_engine OPTION…: starts the embedded engine; its account will be in $TMP/truth.json
start_engine()
{
	start_waiting "$FBT_ENGINE" --wait --truth "$TMP/truth.json" "$@"
}

# start_program NAME ARGUMENT…: the same with the program of tests/live/NAME.c
start_program()
{
	local program=$FBT_BUILD/tests/live_$1

	shift
	start_waiting "$program" "$TMP/truth.json" "$@"
}

go()
{
	echo >&7
	exec 7>&-
}

# Number of links and perf events that a process holds: 5 tracepoints, and one or more for steps.
count_links()
{
	# One find for all: an emulated machine takes seconds to read all of fdinfo.
	find "/proc/$1/fd" '(' -lname '*bpf_link*' -o -lname '*perf_event*' ')' 2>/dev/null | wc -l
}

# No step is escalated, whatever the machine does to steps of a few microseconds.
# shellcheck disable=SC2034
calm=(--efficiency-threshold 0 --cv-threshold 10000 --memory-cliff-threshold 100)

# wait_for SECONDS COMMAND…: until the command succeeds; fails if it does not in that time
wait_for()
{
	local tries=$(($1 * 50))

	shift
	# Not asked again once it was so: what holds now and then has held.
	until "$@"; do
		[ $((tries--)) -gt 0 ] || return 1
		sleep 0.02
	done
}

# go_first VARIABLE…: gives the programs named by these variables a real-time priority, if allowed
go_first()
{
	local name

	chrt -f 1 true 2>/dev/null || return 0
	for name; do
		printf '#!/bin/sh\nexec chrt -f 1 "%s" "$@"\n' "${!name}" >"$TMP/$name"
		chmod +x "$TMP/$name"
		printf -v "$name" %s "$TMP/$name"
	done
}

# launch COMMAND…: in the background, with descriptor 6 for --ready-fd; its id is in TOOL, and
# ATTACHED[$TOOL] is the descriptor on which the notice comes.
declare -A ATTACHED=()
launch()
{
	local both reader

	mkfifo "$TMP/notice"
	# Opened so that neither end waits for the other.
	# shellcheck disable=SC2094 # a FIFO
	exec {both}<>"$TMP/notice" {reader}<"$TMP/notice"
	rm "$TMP/notice"
	"$@" 6>&"$both" 7>&- {both}>&- {reader}<&- </dev/null &
	TOOL=$!
	exec {both}>&-
	ATTACHED[$TOOL]=$reader
}

# bpftrace 0.17 misses a signal that comes outside of its wait for events, so scripts end by a
# probe. counter_ends CODE prints such a probe. end_counter CODE PID hits it and waits for bpftrace.
# No two tests use the same code.
counter_ends()
{
	echo "tracepoint:syscalls:sys_enter_kill /args->pid == $1/ { exit(); }"
}

end_counter()
{
	kill -0 "$1" 2>/dev/null
	wait "$2"
}

# A process id that cannot exist, NUMBER from 0 to 9.
counter_code()
{
	echo $((1000000000 + 10 * $$ + $1))
}

# run_tool ARGUMENT…: in the background, with outputs under $OUT; its id is in TOOL. Background jobs
# of a shell ignore SIGINT unless told otherwise. Tests count every step, and on a slow machine the
# rate guard might not allow that, so it is off. RATE_GUARD=5 is the tool's own default.
run_tool()
{
	launch env --default-signal=INT "$FBT" --ready-fd 6 --report json --trace "$OUT.trace" \
		--profile "$OUT.profile" --rate-guard "${RATE_GUARD:-0}" "$@" >"$OUT.report" 2>"$OUT.err"
}

# await_lines COUNT REGEX FILE: until that many lines of the file match; fails if the tool ends
# before, or after a minute
await_lines()
{
	local count

	for _ in $(seq 3000); do
		count=$(grep -cE -- "$2" "$3" 2>/dev/null)
		[ "${count:-0}" -lt "$1" ] || return 0
		kill -0 "$TOOL" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

# await_steps COUNT [PID]: until the profile has that many steps, of that process
await_steps()
{
	await_lines "$1" "\"event\":\"step_prof\".*\"pid\":${2:-[0-9]+}[,}]" "$OUT.profile"
}

# wait_attached PID: until all probes of the tool's first window are set and the tool has given up
# its rights; fails if the tool ends before. Call it once for each tool.
wait_attached()
{
	local fd=${ATTACHED[$1]} status

	read -r -t 300 -u "$fd" _
	status=$?
	exec {fd}<&-
	unset "ATTACHED[$1]"
	return $status
}

# attach ARGUMENT…: starts the tool on the engine's steps and waits until it is ready
attach()
{
	run_tool -p "$ENGINE" --step engine_step "$@"
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok "the tool attaches ($*)"; }
}

# shellcheck disable=SC2120
# end_tool [STATUS [NAME]]: waits until the tool ends by itself; the fact is its exit status
end_tool()
{
	local status

	wait "$TOOL"
	status=$?
	[ "$status" = "${1:-0}" ] || sed 's/^/# /' "$OUT.err"
	is "${2:-the tool ends with ${1:-0}}" "$status" "${1:-0}"
	# In every test, the tool's own filter must allow all that it does in a window
	# (user/sandbox/filter.c).
	! grep 'refused .* by our filter' "$OUT.err" 2>/dev/null || not_ok 'its filter lets it be'
}

stop_tool()
{
	kill -INT "$TOOL"
	end_tool
}

# trace_engine 'ENGINE OPTIONS' TOOL-OPTION…: one run from the go to the end of both
trace_engine()
{
	local options=$1

	shift
	rm -f "${OUT:?}".*
	# shellcheck disable=SC2086
	start_engine $options
	attach "$@"
	go
	wait "$ENGINE"
	end_tool
}

# The facts that hold in every complete run with the engine.
check_truth()
{
	fact "$1: as many steps as the engine made" 'len(S) == T["steps"]'
	fact "$1: every call of every step in its category" 'total(S) == T["in_steps"]'
	fact "$1: the table has exactly the engine's calls" 'near(table, T, "calls")'
	fact "$1: and its errors" 'near(errors, T, "errors")'
	fact "$1: nothing lost, all complete" 'W["incomplete_steps"] == lost == 0'
	holds "$1: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

finish()
{
	exit "$FAILED"
}
