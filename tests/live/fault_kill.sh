#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# fault_kill.sh [ROUNDS]: SIGKILL at any moment, to the tool in one half of the rounds and to the
# target in the other. Default: 20 rounds; make test-faults runs 200.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

rounds=${1:-20}
left=$FBT_BUILD/tests/live_fault_left
calls=3
OUT=$TMP/out

# The BPF objects that the tool holds. The kernel never reuses their ids.
objects_of_tool()
{
	cat "/proc/$TOOL/fdinfo/"* 2>/dev/null |
		sed -nE 's/^(prog|map|link)_id:[[:space:]]*([0-9]+)$/\1 \2/p' | sort -u
}

sleep_at_most()
{
	sleep "$(awk -v max="$1" -v r=$RANDOM 'BEGIN { printf "%.3f", max * r / 32768 }')"
}

start_target()
{
	truth=$TMP/truth.bin
	rm -f "$truth"
	start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 200 $calls
}

run_on_target()
{
	run_tool -p "$ENGINE" --step fault_step --step-arg thread=arg1 --step-arg n=arg2 --detail all \
		--record "$OUT.capture" "$@"
}

# count VARIABLE COMMAND…: adds one to VARIABLE unless the command succeeds
count()
{
	local name=$1

	shift
	"$@" || printf -v "$name" %d $((${!name} + 1))
}

# --- the tool is killed: while it attaches, traces, writes or detaches ----------------------------

is_gone()
{
	local found

	found=$("$left" <<<"$1")
	[ -z "$found" ] || { echo "# left: $found" && return 1; }
}

# The kernel removes probes a moment after their link.
is_same_code()
{
	python3 tests/live/fault_code.py "$ENGINE" "$FBT_BUILD/tests/live_fault_target" fault_step
}

has_probes()
{
	[ "$(count_links "$TOOL")" -ge 5 ]
}

check_partial()
{
	[ -e "$OUT.profile" ] || return 0
	[ -e "$OUT.trace.partial" ] || : >"$OUT.trace.partial"
	python3 tests/live/fault_truth.py partial "$truth" "$OUT" "$calls"
}

# A recording that has its header can be replayed up to its end.
replays()
{
	local file=$OUT.capture.partial

	[ "$(stat -c %s "$file" 2>/dev/null || echo 0)" -ge 64 ] || return 0
	"$FBT" --replay "$file" --report json >"$TMP/replay" 2>"$TMP/replay.err" ||
		grep -q 'cut off before its first record' "$TMP/replay.err" || { cat "$TMP/replay.err" && return 1; }
}

start_target
go
unattached=0 unfreed=0 broken=0 unreplayed=0 forgotten=0 leaked=0 dead=0
for ((i = 0; i < rounds / 2; i++)); do
	rm -f "${OUT:?}".*
	if [ $((i % 2)) = 0 ]; then
		# At any moment of the tool's life.
		held=0
		run_on_target -d 0.7
		sleep_at_most 1.1
	else
		# During its window. The tool is stopped first, so that no object can appear after
		# the check.
		held=1
		run_on_target
		count unattached wait_attached "$TOOL"
		sleep_at_most 0.7
		stop_process "$TOOL"
		count unattached has_probes
	fi
	objects=$(objects_of_tool)
	kill -KILL "$TOOL" 2>/dev/null
	if wait "$TOOL" 2>/dev/null; then
		i=$((i - 1)) # it was faster
		continue
	fi
	count unfreed is_gone "$objects"
	count broken check_partial
	count unreplayed replays
	if [ $held = 1 ]; then
		count forgotten is_same_code
	else
		count leaked is_same_code
	fi
	count dead kill -0 "$ENGINE"
done
is "tool killed $((rounds / 2)) times: it was attached each time that it was held" "$unattached" 0
is 'tool killed: no program, map or link is left' "$unfreed" 0
is 'tool killed in its window: its probes are gone, and those of the tools before it' "$forgotten" 0
# If the process is killed while the kernel sets or removes probes, the kernel may leave them behind
# ("failed to unregister, leaking uprobe"). The target continues with them, until the next tool has
# set and removed them again. The fact above and the last one of this half test that.
[ $leaked = 0 ] || echo "# the kernel left probes behind $leaked times, of a tool killed at another moment"
is 'tool killed: profile and trace are whole as far as they go' "$broken" 0
is 'tool killed: the recording is replayed as far as it goes' "$unreplayed" 0
is 'tool killed: the target lives' "$dead" 0

# The files are written once more: what was left behind is no obstacle.
run_on_target -n 50
end_tool 0 'the next tool attaches'
holds 'and its outputs are valid' "$FBT" validate "$OUT.trace" "$OUT.profile"
is 'and no partial file is left but those of the killed run' \
	"$(find "$TMP" -name '*.partial' ! -name 'old.*' | wc -l)" 0
holds 'the step function is as it is in the file' is_same_code
before=$(python3 tests/live/fault_truth.py span "$truth")
has_made_more()
{
	[ "$(python3 tests/live/fault_truth.py span "$truth")" != "$before" ]
}
holds 'the target makes steps to its end' wait_for 60 has_made_more
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'and ends as it wants, each of its calls as it should be' $? 0

# --- the target is killed -----------------------------------------------------------------------

replays_as_traced()
{
	"$FBT" --replay "$OUT.capture" --report json >"$TMP/replay" 2>"$TMP/replay.err" || return 1
	! grep -E 'cut off|damaged' "$TMP/replay.err" || return 1
	[ "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["steps"])' <"$TMP/replay")" = \
		"$(grep -c '"event":"step_prof"' "$OUT.profile")" ]
}

is_valid()
{
	"$FBT" validate "$OUT.trace" "$OUT.profile" >"$TMP/valid" 2>&1 || { cat "$TMP/valid" && return 1; }
}

status=0 untrue=0 invalid=0 steps=0 untold=0
for ((i = 0; i < rounds - rounds / 2; i++)); do
	rm -f "${OUT:?}".*
	start_target
	run_on_target
	wait_attached "$TOOL"
	go
	sleep_at_most 0.8
	kill -KILL "$ENGINE"
	wait "$ENGINE" 2>/dev/null
	wait "$TOOL" || { status=$((status + 1)) && cat "$OUT.err"; }
	count untrue python3 tests/live/fault_truth.py killed "$truth" "$OUT" $calls
	count invalid is_valid
	count untold replays_as_traced
	steps=$((steps + $(grep -c '"step_prof"' "$OUT.profile")))
done
is "target killed $((rounds - rounds / 2)) times ($steps steps): the tool ends by itself" "$status" 0
is 'target killed: each step there was, with its calls, and no other' "$untrue" 0
is 'target killed: outputs are valid' "$invalid" 0
is 'target killed: the recording has the same steps' "$untold" 0
finish
