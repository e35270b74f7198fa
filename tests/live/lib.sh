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

clean_up()
{
	local pids

	pids=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap clean_up EXIT

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

# q EXPRESSION: see query.py; OUT=PREFIX q … asks about another run
OUT=$TMP/out
export TMP OUT
q()
{
	python3 tests/live/query.py "$1" 2>&1
}

# fact NAME EXPRESSION: the expression is true
fact()
{
	local got

	got=$(q "$2")
	if [ "$got" = True ]; then
		ok "$1"
	else
		echo "# ${2//[[:space:]]/ }: $got"
		not_ok "$1"
	fi
}

# start_waiting COMMAND…: it says ready and waits for its go; its id is in ENGINE
start_waiting()
{
	rm -f "$TMP/go" "$TMP/truth.json"
	mkfifo "$TMP/go" "$TMP/ready"
	# Its own descriptors must not keep the fifo open, or it would never see the end of stdin.
	"$@" <"$TMP/go" >"$TMP/ready" 7>&- &
	ENGINE=$!
	exec 7>"$TMP/go"
	read -r _ <"$TMP/ready"
	rm "$TMP/ready"
}

# start_engine OPTION…: the embedded engine; its truth will be in $TMP/truth.json
start_engine()
{
	start_waiting "$FBT_ENGINE" --wait --truth "$TMP/truth.json" "$@"
}

# start_program NAME ARGUMENT…: the same with what tests/live/NAME.c is
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

# Links and perf events that a process holds: 5 tracepoints and one or more for steps.
count_links()
{
	# In one go: an emulated machine takes seconds for each look into all of fdinfo.
	find "/proc/$1/fd" '(' -lname '*bpf_link*' -o -lname '*perf_event*' ')' 2>/dev/null | wc -l
}

# Nothing is escalated, whatever the machine does to steps of a few microseconds.
# shellcheck disable=SC2034
calm=(--efficiency-threshold 0 --cv-threshold 10000 --memory-cliff-threshold 100)

# go_first VARIABLE…: the programs that these name run before their neighbours on this machine, where
# that is allowed
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

# run_tool ARGUMENT…: in the background, outputs under $OUT; its id is in TOOL. Background jobs of a
# shell ignore SIGINT unless told otherwise. Tests count every step, and whether the rate guard lets
# that be depends on how slow this machine is: RATE_GUARD=5 is what the tool has by itself.
run_tool()
{
	env --default-signal=INT "$FBT" --report json --trace "$OUT.trace" --profile "$OUT.profile" \
		--rate-guard "${RATE_GUARD:-0}" "$@" >"$OUT.report" 2>"$OUT.err" 7>&- </dev/null &
	TOOL=$!
}

# Whether a process may gain no rights any more, which the tool does as the last thing before its
# window (user/confine.c).
has_confined()
{
	local key value

	while read -r key value; do
		[ "$key" != NoNewPrivs: ] || [ "$value" = 0 ] || return 0
	done 2>/dev/null <"/proc/$1/status"
	return 1
}

# wait_attached PID: until its links are there and no more come. It may think for long between two
# of them on a busy machine; where it cannot give up its rights, ten seconds without one must do.
wait_attached()
{
	local links before=0 same=0 end=$((SECONDS + 300)) quiet=0

	while [ $SECONDS -lt $end ]; do
		kill -0 "$1" 2>/dev/null || return 1
		links=$(count_links "$1")
		if [ "$links" -ge 5 ] && [ "$links" = "$before" ]; then
			[ $same != 0 ] || quiet=$SECONDS
			same=$((same + 1))
			[ $same -ge 10 ] && { has_confined "$1" || [ $((SECONDS - quiet)) -ge 10 ]; } &&
				return 0
		else
			same=0
		fi
		before=$links
		sleep 0.02
	done
	return 1
}

# attach ARGUMENT…: the tool on the engine's steps, ready
attach()
{
	run_tool -p "$ENGINE" --step engine_step "$@"
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok "the tool attaches ($*)"; }
}

# shellcheck disable=SC2120
# end_tool [STATUS [NAME]]: waits for it to end by itself; the fact is its exit status
end_tool()
{
	local status

	wait "$TOOL"
	status=$?
	[ "$status" = "${1:-0}" ] || sed 's/^/# /' "$OUT.err"
	is "${2:-the tool ends with ${1:-0}}" "$status" "${1:-0}"
	# What it does in a window its own filter allows (user/confine_filter.c), in every test.
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

# The facts that hold in every whole run against the engine.
check_truth()
{
	fact "$1: as many steps as the engine made" 'len(S) == T["steps"]'
	fact "$1: every call of every step in its category" 'total(S) == T["in_steps"]'
	fact "$1: the table has exactly the engine's calls" 'near(table, T, "calls")'
	fact "$1: and its errors" 'near(errors, T, "errors")'
	fact "$1: nothing lost, all complete" \
		'all(v == 0 for k, v in W.items() if k.startswith("lost_")) and W["incomplete_steps"] == 0'
	holds "$1: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

finish()
{
	exit "$FAILED"
}
