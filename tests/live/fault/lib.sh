# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What tests of outputs that fail share: a target that makes steps, the tool on it with three outputs,
# and what has to hold when one of them fails. Sourced after lib.sh.

disk=$TMP/disk
mkdir "$disk"
undo()
{
	umount -l "$disk" 2>/dev/null
}

steps=(--step fault_step --step-arg thread=arg1 --step-arg n=arg2 --detail all --rate-guard 0 "${calm[@]}")

# start_target PAUSE_US: two threads that pause that long between their steps
start_target()
{
	start_waiting "$FBT_BUILD/tests/live_fault_target" "$TMP/truth.bin" 2 "$1" 3
	go
}

end_target()
{
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	is 'the target ends as it wants, each of its calls as it should be' $? 0
}

# tool ARGUMENT…: in the background, started by the command in under. Its report goes to REPORT, or
# where query.py finds it.
under=()
tool()
{
	rm -f "${OUT:?}".*
	launch env --default-signal=INT "${under[@]}" "$FBT" --ready-fd 6 -p "$ENGINE" "${steps[@]}" \
		--report json "$@" >"${REPORT:-$OUT.report}" 2>"$OUT.err" 8>&-
}

# steps_made: the steps of both threads, by the target's own account
steps_made()
{
	local begun

	read -ra begun < <(python3 tests/live/fault_truth.py span "$TMP/truth.bin")
	echo $((begun[0] + begun[1]))
}

has_made()
{
	[ "$(steps_made)" -ge "$1" ]
}

# let_step: until the tool has attached, and the target has made more than LEAST_STEPS steps
LEAST_STEPS=100
let_step()
{
	wait_attached "$TOOL" || not_ok 'the tool attaches'
	# At either end, a step of each thread may be open.
	wait_for 90 has_made $(($(steps_made) + LEAST_STEPS + 4)) || not_ok 'the target makes steps'
}

# send WHAT FILE: trace, profile or record goes to FILE, the other outputs to their usual files; the
# options are in outputs. left is the file that remains after a failure.
declare -A path
send()
{
	path=([trace]=$OUT.trace [profile]=$OUT.profile [record]=$OUT.capture)
	path[$1]=$2
	outputs=(--trace "${path[trace]}" --profile "${path[profile]}" --record "${path[record]}")
	# A profile has its final name from the start.
	left=$2.partial
	[ "$1" != profile ] || left=$2
}

# until_said REGEX: until the tool has printed that, or has ended; at most 90 s
until_said()
{
	for _ in $(seq 1800); do
		grep -qE "$1" "$OUT.err" && return 0
		kill -0 "$TOOL" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# says_once NAME REGEX: exactly one line of stderr matches
says_once()
{
	is "$1: one line says so" "$(grep -cE "$2" "$OUT.err")" 1
}

is_whole_lines()
{
	python3 -c 'import json, sys; text = open(sys.argv[1]).read(); assert text[-1] == "\n" and len(text) > 1000
assert [json.loads(line) for line in text.splitlines()]' "$1"
}

# replays FILE
replays()
{
	"$FBT" -q --replay "$1" --report none
}

has_report()
{
	fact "$1: the report is whole" "R['steps'] > $LEAST_STEPS and R['window_ns'] > 0"
	fact "$1: the files that it names are there" honest
}

# names NAME WHAT TEXT: the report says TEXT of that output
names()
{
	is "$1: the report says where the $2 is" "$(q "files['$2']")" "$3"
}

# one_fails NAME WHAT FILE REASON: that output goes to FILE and fails during the window; the others
# continue
one_fails()
{
	local name=$1 what=$2 reason=$4

	send "$what" "$3"
	tool --keep-free 0 "${outputs[@]}"
	let_step
	until_said ' ends here'
	kill -INT "$TOOL"
	end_tool 1 "$name: it ends with 1"
	check_failed "$name" "$what" "$reason" "$left (ended early: $reason)"
}

# check_failed NAME WHAT REGEX TEXT: one output failed with that line, and the report says TEXT of
# it; the others are complete
check_failed()
{
	says_once "$1" "^ferrum-bpftrace: $2: .*$3"
	is "$1: no other output ends" "$(grep -c ' ends here' "$OUT.err")" 1
	has_report "$1"
	names "$1" "$2" "$4"
	fact "$1: nothing is wrong with the others" 'sum(" (" in text for text in files.values()) == 1'
	[ "$2" = profile ] || fact "$1: the profile is whole" 'W["steps"] == len(S) == R["steps"]'
	[ "$2" = record ] || holds "$1: the recording is whole" replays "$OUT.capture"
	[ "$2" != trace ] || return
	holds "$1: the trace is whole" "$FBT" validate -q "$OUT.trace"
	fact "$1: the trace has each step" 'sum(x["cat"] == "step" for x in X) == R["steps"]'
}
