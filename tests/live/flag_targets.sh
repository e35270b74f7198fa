#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Windows that a flag opens and closes: several processes, children, libraries that are loaded
# later, disks and folders that fail, and escalations by hand.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/flag/lib.sh
. tests/live/flag/lib.sh

start_steady --noise 1
# --- several processes ------------------------------------------------------------------------------

first=$STEADY
start_steady
second=$STEADY
run_waiting -p "$first,$second" --step engine_step --escalate-now
for window in 1 2; do
	open_window $window
	wait_for_step 1 "$first"
	wait_for_step 1 "$second"
	close_window $window
done
is 'two targets: two exports a window' "$(count 'ferrum_profile_*.jsonl') $(count 'ferrum_*')" '4 8'
is 'two targets: --escalate-now escalates a step of each' \
	"$(grep -c '"escalation.reason":"manual"' "$DIR"/ferrum_profile_* | sed 's/.*://' | tr '\n' ' ')" \
	'1 1 1 1 '
tags_of()
{
	find "$DIR" -name "ferrum_trace_pid$1_*" | sed 's/.*_//' | sort | tr '\n' ' '
}
is 'two targets: the same time in both names' "$(tags_of "$first")" "$(tags_of "$second")"
open_window 3
end_steady "$second"
wait_for_step $(($(steps_of "$first") + 100)) "$first"
holds 'one of two targets ends: the tool goes on' kill -0 "$TOOL"
close_window 3
is 'one of two targets ends in a window: both are exported' "$(count 'ferrum_profile_*')" 6
wait_for_line "process $second has ended"
open_window 4
close_window 4
is 'then there is one export a window' "$(count 'ferrum_profile_*')" 7
holds 'two targets: all are valid' are_valid "$DIR"/*
ids=$(cat "$DIR"/ferrum_profile_pid"${first}"_* | grep -o '"event":"window_prof".*' |
	grep -o '"pids":"[0-9 ,]*"' | sort -u)
is 'two targets: each export has its own process only' "$ids" "\"pids\":\"$first\""
open_window 5
end_steady "$first"
end_tool 0 'the last target ends in a window: so does the tool'
has 'the last target ends in a window: says so' "$OUT.err" 'target has ended'
is 'the last target ends in a window: it is exported' "$(count 'ferrum_profile_*')" 8
rm "$FLAG"

start_steady
run_waiting -p "$STEADY" --step engine_step
end_steady "$STEADY"
end_tool 0 'the target ends while the tool waits: so does the tool'
has 'the target ends while the tool waits: says so' "$OUT.err" 'target has ended'
is 'the target ends while the tool waits: in one line' "$(grep -c . "$OUT.err")" 2

# The steps of children belong to the children.
start_engine --steps 12 --fork-every 3 --sleep-us 2000
run_waiting -p "$ENGINE" -f --step engine_step
open_window 1
go
wait "$ENGINE"
end_tool 0 '-f: the tool ends with the process'
is '-f: each child has its export' "$(count 'ferrum_profile_*')" 5
is '-f: the process has its own steps' "$(about "pid${ENGINE}_*" 'len(S) == T["steps"] == 12')" True
for file in "$DIR"/ferrum_profile_*; do
	case $file in *pid"${ENGINE}"_*) continue ;; esac
	is '-f: a child has its one step' \
		"$(grep -c '"event":"step_prof".*"kind":"engine_step"' "$file")" 1
done
holds '-f: all are valid' are_valid "$DIR"/*
rm "$FLAG"

start_steady
run_waiting -a --step engine_step
open_window 1
wait_for_step 60 "$STEADY"
close_window 1
is '-a: one export for all' "$(count 'ferrum_profile_pid0_*') $(count 'ferrum_profile_*')" '1 1'
is '-a: with the steps of a process that nobody named' \
	"$(about 'pid0_*' "len([s for s in S if s['pid'] == $STEADY]) > 50")" True
stop_tool

# --- what goes wrong -----------------------------------------------------------------------------------

mkdir "$TMP/small"
if mount -t tmpfs -o size=4k tmpfs "$TMP/small"; then
	run_waiting -p "$STEADY" --step engine_step --dir "$TMP/small" --keep-free 0
	open_window 1
	close_window 1
	has 'a full disk: says so' "$OUT.err" 'No space left'
	mount -o remount,size=20m "$TMP/small"
	open_window 2
	close_window 2
	kill -INT "$TOOL"
	end_tool 1 'a full disk: the tool goes on, and ends with 1'
	holds 'a full disk: the next window is whole' are_valid \
		"$(find "$TMP/small" -name 'ferrum_trace_*.json' | sort | tail -1)"
	umount "$TMP/small"
fi
echo >"$TMP/file"
run_waiting -p "$STEADY" --step engine_step --dir "$TMP/file/x"
touch "$FLAG"
wait_for_line 'Not a directory'
rm "$FLAG"
sleep 0.2
holds 'a folder that cannot be made: the tool goes on' kill -0 "$TOOL"
kill -INT "$TOOL"
end_tool 1 'a folder that cannot be made: it ends with 1'

# refused NAME REGEX: status 2 and one line
refused()
{
	rm -f "${OUT:?}".*
	timeout 120 "$FBT" -p "$STEADY" --flag "$FLAG" --trace none >/dev/null 2>"$OUT.err"
	is "$1: exit status 2" $? 2
	has "$1: says what" "$OUT.err" "$2"
	is "$1: in one line" "$(grep -c . "$OUT.err")" 1
}
mkdir "$FLAG"
refused 'a folder as flag' 'is a folder'
rmdir "$FLAG"
ln -s "$TMP/nowhere" "$FLAG"
refused 'a dangling link as flag' 'is a symbolic link'
rm "$FLAG"
run_waiting -p "$STEADY" --step engine_step
ln -s "$TMP/file" "$FLAG"
wait_for_line 'is a symbolic link'
is 'a link that comes later opens no window' "$(count_links "$TOOL")" 0
rm "$FLAG"
open_window 1
close_window 1
is 'and a file then does' "$(count 'ferrum_profile_*')" 1
stop_tool

FERRUM_BPFTRACE=off "$FBT" -p "$STEADY" --flag "$FLAG" >/dev/null 2>"$OUT.err"
is 'FERRUM_BPFTRACE=off: exit status 0' $? 0
is 'FERRUM_BPFTRACE=off: in one line' "$(grep -c FERRUM_BPFTRACE "$OUT.err")" 1

# --- a step that is found when the window opens
# -----------------------------------------------------

end_steady "$STEADY"
"${CC:-gcc}" -shared -fPIC -O2 -o "$TMP/liblate.so" tests/fake/late_step.c
start_engine --late "$TMP/liblate.so" --steps 0 --sleep-us 1000
run_waiting -p "$ENGINE" --step late_step --wait-step
go
for _ in $(seq 3000); do
	grep -q liblate "/proc/$ENGINE/maps" && break
	sleep 0.02
done
open_window 1
wait_for_step 25
close_window 1
is 'a library that was loaded while the tool waited' \
	"$(about '*' 'len(S) > 20 and {s["kind"] for s in S} == {"late_step"}')" True
stop_tool
kill -TERM "$ENGINE"
wait "$ENGINE"

# --- an escalation by hand
# --------------------------------------------------------------------------

# manual CAPTURE: the positions among the steps of records that ask for an escalation
manual()
{
	python3 - "$1" <<'END'
import struct, sys

data = open(sys.argv[1], "rb").read()
at, steps, found = struct.unpack_from("<I", data, 12)[0], 0, []
while at + 8 <= len(data):
    kind, _, size = struct.unpack_from("<HHI", data, at)
    steps += kind == 5
    if kind == 13:
        found.append(steps)
    at += size
print(found, steps)
END
}
start_steady
run_tool -p "$STEADY" --step engine_step --record "$OUT.capture" --escalate-now
wait_attached "$TOOL"
await_lines 1 '"escalation.reason":"manual"' "$OUT.profile"
kill -USR1 "$TOOL"
await_lines 2 '"escalation.reason":"manual"' "$OUT.profile"
stop_tool
found=$(manual "$OUT.capture")
holds "--escalate-now and SIGUSR1 each ask once: $found" \
	grep -qE '^\[0, [1-9][0-9]*\] [1-9][0-9]*$' <<<"$found"
is 'and each escalates one step' \
	"$(grep -c '"escalation.reason":"manual"' "$OUT.profile")" 2
"$FBT" --replay "$OUT.capture" --escalate-now --report none --trace none --profile "$TMP/again.profile" \
	2>"$OUT.err"
is '--escalate-now of a capture that has them: the first step only once' \
	"$(grep -c '"escalation.reason":"manual"' "$TMP/again.profile")" 2
end_steady "$STEADY"
finish
