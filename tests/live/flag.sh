#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Windows that a flag opens and closes: how they begin and end. flag_targets.sh tests whose windows
# they are and what goes wrong; soak.sh tests that nothing grows in many of them.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/flag/lib.sh
. tests/live/flag/lib.sh

# --- many windows -------------------------------------------------------------------------------

start_steady --noise 1
run_waiting -p "$STEADY" --step engine_step
is 'waiting: nothing is attached' "$(count_links "$TOOL")" 0
fds=$(find "/proc/$TOOL/fd" | wc -l)
programs=$(sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$TOOL/fdinfo/"* | sort -u)
attached=1
for window in $(seq 10); do
	open_window "$window" || break
	[ "$(count_links "$TOOL")" -ge 6 ] || attached=0
	wait_for_step 1
	close_window "$window" || break
done
holds '10 windows: each had its probes' [ "$attached" = 1 ]
is '10 windows: 10 profiles' "$(count 'ferrum_profile_*.jsonl')" 10
is '10 windows: 10 traces' "$(count 'ferrum_trace_*.json')" 10
is '10 windows: no other file' "$(count 'ferrum_*')" 20
holds '10 windows: all are valid' are_valid "$DIR"/*
is '10 windows: all are whole' \
	"$(cat "$DIR"/ferrum_profile_* | grep -c '"event":"window_prof".*"cut_off":false')" 10
is '10 windows: each has steps' \
	"$(grep -L '"event":"step_prof"' "$DIR"/ferrum_profile_* | wc -l)" 0
is '10 windows: nothing was lost' \
	"$(cat "$DIR"/ferrum_profile_* | grep '"event":"window_prof"' | grep -cE '"lost_[a-z]+":[1-9]')" 0
is '10 windows: each is tagged with the target' "$(count "ferrum_trace_pid${STEADY}_*.json")" 10
is '10 windows: no descriptor leaks' "$(find "/proc/$TOOL/fd" | wc -l)" "$fds"
is '10 windows: nothing is attached any more' "$(count_links "$TOOL")" 0
kill -USR1 "$TOOL"
wait_for_line 'SIGUSR1: no window is open'
programs="$programs $(sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$TOOL/fdinfo/"* | sort -u)"
kill -INT "$TOOL"
end_tool 0 'Ctrl-C while waiting ends it with 0'
is 'Ctrl-C while waiting: no other file' "$(count 'ferrum_*')" 20
left=$programs
for _ in $(seq 600); do
	still=
	for id in $left; do
		bpftool prog show id "$id" >/dev/null 2>&1 && still="$still $id"
	done
	left=$still
	[ -z "$left" ] && break
	sleep 0.1
done
is "no BPF program is left of $(echo "$programs" | wc -w)" "$left" ''

# The flag changes faster than the tool can follow. Each window that was opened is complete.
run_waiting -p "$STEADY" --step engine_step
for _ in $(seq 30); do
	touch "$FLAG"
	sleep 0.00$((RANDOM % 10))
	rm "$FLAG"
	sleep 0.00$((RANDOM % 10))
done
# From now on the flag is there. A tool with probes does not wait for it any more: it is in a
# window, or goes from an earlier one to the last.
touch "$FLAG"
# shellcheck disable=SC2317,SC2329 # wait_for calls it
has_probes()
{
	[ "$(count_links "$TOOL")" -gt 5 ]
}
wait_for 60 has_probes || not_ok 'a flickering flag: a window opens in the end'
kill -USR1 "$TOOL"
wait_for_line 'SIGUSR1: the next step of each process is escalated'
stop_tool
opened=$(grep -c 'is open' "$OUT.err")
is "a flickering flag: each of $opened windows has its export" "$(count 'ferrum_trace_*.json')" "$opened"
holds 'a flickering flag: all are valid' are_valid "$DIR"/*
is 'a flickering flag: nothing half done' "$(count '*.partial')" 0

# Two tools with one flag: each has all of its windows.
run_waiting -p "$STEADY" --step engine_step
first=$TOOL
OUT=$TMP/second run_by_flag -p "$STEADY" --step engine_step
second=$TOOL
both()
{
	OUT=$TMP/second wait_for_line "$@"
	TOOL=$first wait_for_line "$@"
}
both '^waiting for /'
for window in $(seq 4); do
	touch "$FLAG"
	both 'window [0-9]+ is open' "$window"
	rm "$FLAG"
	both '^waiting for /' $((window + 1))
done
kill -INT "$first" "$second"
TOOL=$first end_tool 0 'two tools with one flag: the first ends with 0'
OUT=$TMP/second end_tool 0 'two tools with one flag: the second ends with 0'
is 'two tools with one flag: an export for each window' \
	"$(count 'ferrum_trace_*.json') $(count 'ferrum_*')" '8 16'
holds 'two tools with one flag: all are valid' are_valid "$DIR"/*
is 'two tools with one flag: each is of one window' \
	"$(cat "$DIR"/ferrum_profile_* | grep -c '"event":"window_prof"')" 8

# --- how windows begin and end --------------------------------------------------------------------

rm -rf "$DIR"
touch "$FLAG"
SUDO_UID=65534 SUDO_GID=65534 run_by_flag -p "$STEADY" --step engine_step --max-steps 30
wait_for_line 'the next window opens once'
is 'a flag that is there at the start opens a window, --max-steps ends it' \
	"$(count 'ferrum_profile_*')" 1
is '--max-steps: that many steps' "$(about '*' 'len(S)')" 30
is 'the folder is the sudo user'"'"'s' "$(stat -c %u "$DIR")" 65534
sleep 0.7
is '--max-steps: no other window while the flag is there' "$(count 'ferrum_profile_*')" 1
is '--max-steps: nothing is attached' "$(count_links "$TOOL")" 0
# Touching the flag again does not open another window.
touch "$FLAG"
sleep 0.3
is '--max-steps: nor when the flag is touched again' "$(count 'ferrum_profile_*')" 1
rm "$FLAG"
touch "$FLAG"
wait_for_line 'the next window opens once' 2
is '--max-steps: the next one once the flag has gone' "$(count 'ferrum_profile_*')" 2
rm "$FLAG"
stop_tool

run_waiting -p "$STEADY" --step engine_step
open_window 1
wait_for_step 1
kill -INT "$TOOL"
end_tool 0 'Ctrl-C in a window ends it with 0'
is 'Ctrl-C in a window: it is exported' "$(count 'ferrum_trace_*.json') $(count 'ferrum_*')" '1 2'
is 'Ctrl-C in a window: as a whole' "$(about '*' 'W["cut_off"] == False and len(S) > 0')" True
rm "$FLAG"

run_waiting -p "$STEADY" --step engine_step -d 0.5
end_tool 0 '-d ends it while it waits'
is '-d while waiting: no file' "$(count 'ferrum_*')" 0
# -d counts from before the first look for the flag.
rm -rf "$DIR"
touch "$FLAG"
run_by_flag -p "$STEADY" --step engine_step -d 1
end_tool 0 '-d ends it in a window'
is '-d in a window: it is exported' "$(count 'ferrum_trace_*.json')" 1

run_waiting -p "$STEADY" --step engine_step --report json --profile "$TMP/all.jsonl" --trace none
for window in 1 2; do
	open_window $window
	close_window $window
done
stop_tool
is 'a named profile holds all windows' "$(grep -c '"event":"window_prof"' "$TMP/all.jsonl")" 2
is 'a report for each window' "$(python3 -c '
import json, sys
text, count = sys.stdin.read().strip(), 0
while text:
    document, end = json.JSONDecoder().raw_decode(text)
    text, count = text[end:].strip(), count + 1
print(count)' <"$OUT.report")" 2
end_steady "$STEADY"
finish
