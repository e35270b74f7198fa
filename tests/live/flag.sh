#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Windows that a flag opens and closes.
. "$(dirname "$0")/lib.sh"
unset FERRUM_BPFTRACE FERRUM_BPFTRACE_FLAG FERRUM_BPFTRACE_DIR FERRUM_BPFTRACE_MAX_STEPS \
	FERRUM_BPFTRACE_DEBUG

FLAG=$TMP/flag
DIR=$TMP/windows

# run_waiting ARGUMENT…: the tool, which waits for the flag; its id is in TOOL
run_waiting()
{
	rm -rf "$DIR" "$FLAG"
	run_by_flag "$@"
	wait_for_line 'waiting for'
}

run_by_flag()
{
	rm -f "${OUT:?}".*
	: >"$OUT.err"
	env --default-signal=INT "$FBT" --flag "$FLAG" --dir "$DIR" --report none --rate-guard 0 "$@" \
		>"$OUT.report" 2>"$OUT.err" 7>&- </dev/null &
	TOOL=$!
}

# wait_for_line REGEX [COUNT]: that many lines of what the tool says match
wait_for_line()
{
	local wanted=${2:-1}

	for _ in $(seq 3000); do
		[ "$(grep -cE -- "$1" "$OUT.err")" -ge "$wanted" ] && return 0
		kill -0 "$TOOL" 2>/dev/null || break
		sleep 0.02
	done
	[ "$(grep -cE -- "$1" "$OUT.err")" -ge "$wanted" ] && return 0
	sed 's/^/# /' "$OUT.err"
	not_ok "the tool says $1"
	return 1
}

count()
{
	find "$DIR" -name "$1" 2>/dev/null | wc -l
}

# open_window NUMBER, close_window NUMBER: and waits until that is done
open_window()
{
	touch "$FLAG"
	wait_for_line 'window [0-9]+ is open' "$1"
}

close_window()
{
	rm "$FLAG"
	wait_for_line 'waiting for' $(($1 + 1))
}

# about PATTERN EXPRESSION: of the one profile whose name matches
about()
{
	local files

	mapfile -t files < <(find "$DIR" -name "ferrum_profile_$1.jsonl")
	[ ${#files[@]} = 1 ] || echo "${#files[@]} files match $1"
	cp "${files[0]}" "$TMP/one.profile"
	OUT=$TMP/one q "$2"
}

# wait_for_step [COUNT [PID]]: the window that is open has so many, of that process
wait_for_step()
{
	local newest

	for _ in $(seq 3000); do
		newest=$(find "$DIR" -name 'ferrum_profile_*' -printf '%f\n' | sort -t_ -k4 | tail -1)
		[ -n "$newest" ] && [ "$(grep -cE "\"event\":\"step_prof\".*\"pid\":${2:-[0-9]+}[,}]" \
			"$DIR/$newest")" -ge "${1:-1}" ] && return
		sleep 0.01
	done
	not_ok 'there are steps in the window'
}

# shellcheck disable=SC2317
are_valid()
{
	"$FBT" validate "$@" >"$TMP/validated"
}

start_steady()
{
	"$FBT_ENGINE" --steps 0 --sleep-us 500 "$@" >/dev/null 2>&1 </dev/null &
	STEADY=$!
	for _ in $(seq 3000); do
		[ "$(readlink "/proc/$STEADY/exe")" = "$FBT_ENGINE" ] && return
		sleep 0.01
	done
	not_ok 'the engine starts'
}

end_steady()
{
	kill -TERM "$1"
	wait "$1"
}

# --- many windows -------------------------------------------------------------------------------

start_steady --noise 1
run_waiting -p "$STEADY" --step engine_step
is 'waiting: nothing is attached' "$(count_links "$TOOL")" 0
fds=$(find "/proc/$TOOL/fd" | wc -l)
programs=$(sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$TOOL/fdinfo/"* | sort -u)
rss_of()
{
	awk '/^RssAnon:/ { print $2 }' "/proc/$TOOL/status"
}
attached=1
for window in $(seq 50); do
	open_window "$window" || break
	[ "$(count_links "$TOOL")" -ge 6 ] || attached=0
	wait_for_step
	close_window "$window" || break
	[ "$window" = 10 ] && early_rss=$(rss_of)
done
holds '50 windows: each had its probes' [ "$attached" = 1 ]
is '50 windows: 50 profiles' "$(count 'ferrum_profile_*.jsonl')" 50
is '50 windows: 50 traces' "$(count 'ferrum_trace_*.json')" 50
is '50 windows: no other file' "$(count 'ferrum_*')" 100
holds '50 windows: all are valid' are_valid "$DIR"/*
is '50 windows: all are whole' \
	"$(cat "$DIR"/ferrum_profile_* | grep -c '"event":"window_prof".*"cut_off":false')" 50
is '50 windows: each has steps' \
	"$(grep -L '"event":"step_prof"' "$DIR"/ferrum_profile_* | wc -l)" 0
is '50 windows: nothing was lost' \
	"$(cat "$DIR"/ferrum_profile_* | grep '"event":"window_prof"' | grep -cE '"lost_[a-z]+":[1-9]')" 0
is '50 windows: each is tagged with the target' "$(count "ferrum_trace_pid${STEADY}_*.json")" 50
is '50 windows: no descriptor leaks' "$(find "/proc/$TOOL/fd" | wc -l)" "$fds"
grown=$(($(rss_of) - early_rss))
holds "50 windows: no memory leaks (grown by $grown KiB in 40)" [ $grown -lt 400 ]
is '50 windows: nothing is attached any more' "$(count_links "$TOOL")" 0
kill -USR1 "$TOOL"
wait_for_line 'SIGUSR1: no window is open'
programs="$programs $(sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$TOOL/fdinfo/"* | sort -u)"
kill -INT "$TOOL"
end_tool 0 'Ctrl-C while waiting ends it with 0'
is 'Ctrl-C while waiting: no other file' "$(count 'ferrum_*')" 100
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

# Faster than anyone can follow: what was opened is whole.
run_waiting -p "$STEADY" --step engine_step
for _ in $(seq 60); do
	touch "$FLAG"
	sleep 0.00$((RANDOM % 10))
	rm "$FLAG"
	sleep 0.00$((RANDOM % 10))
done
touch "$FLAG"
wait_for_line 'is open'
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
both 'waiting for'
for window in $(seq 8); do
	touch "$FLAG"
	both 'window [0-9]+ is open' "$window"
	rm "$FLAG"
	both 'waiting for' $((window + 1))
done
kill -INT "$first" "$second"
TOOL=$first end_tool 0 'two tools with one flag: the first ends with 0'
OUT=$TMP/second end_tool 0 'two tools with one flag: the second ends with 0'
is 'two tools with one flag: an export for each window' \
	"$(count 'ferrum_trace_*.json') $(count 'ferrum_*')" '16 32'
holds 'two tools with one flag: all are valid' are_valid "$DIR"/*
is 'two tools with one flag: each is of one window' \
	"$(cat "$DIR"/ferrum_profile_* | grep -c '"event":"window_prof"')" 16

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
# Touched again it is the same.
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
wait_for_step
kill -INT "$TOOL"
end_tool 0 'Ctrl-C in a window ends it with 0'
is 'Ctrl-C in a window: it is exported' "$(count 'ferrum_trace_*.json') $(count 'ferrum_*')" '1 2'
is 'Ctrl-C in a window: as a whole' "$(about '*' 'W["cut_off"] == False and len(S) > 0')" True
rm "$FLAG"

run_waiting -p "$STEADY" --step engine_step -d 0.5
end_tool 0 '-d ends it while it waits'
is '-d while waiting: no file' "$(count 'ferrum_*')" 0
run_waiting -p "$STEADY" --step engine_step -d 6
open_window 1
end_tool 0 '-d ends it in a window'
is '-d in a window: it is exported' "$(count 'ferrum_trace_*.json')" 1

run_waiting -p "$STEADY" --step engine_step --report json --profile "$TMP/all.jsonl" --trace none
for window in 1 2; do
	open_window $window
	sleep 0.1
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

# --- several processes ------------------------------------------------------------------------------

first=$STEADY
start_steady
second=$STEADY
run_waiting -p "$first,$second" --step engine_step --escalate-now
for window in 1 2; do
	open_window $window
	sleep 0.2
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
sleep 0.1
end_steady "$second"
sleep 0.3
holds 'one of two targets ends: the tool goes on' kill -0 "$TOOL"
close_window 3
is 'one of two targets ends in a window: both are exported' "$(count 'ferrum_profile_*')" 6
wait_for_line "process $second has ended"
open_window 4
sleep 0.1
close_window 4
is 'then there is one export a window' "$(count 'ferrum_profile_*')" 7
holds 'two targets: all are valid' are_valid "$DIR"/*
ids=$(cat "$DIR"/ferrum_profile_pid"${first}"_* | grep -o '"event":"window_prof".*' |
	grep -o '"pids":"[0-9 ,]*"' | sort -u)
is 'two targets: each export has its own process only' "$ids" "\"pids\":\"$first\""
open_window 5
sleep 0.1
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

# The children's steps are theirs.
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
	sleep 0.2
	close_window 1
	has 'a full disk: says so' "$OUT.err" 'No space left'
	mount -o remount,size=20m "$TMP/small"
	open_window 2
	sleep 0.2
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
sleep 0.1
close_window 1
is 'and a file then does' "$(count 'ferrum_profile_*')" 1
stop_tool

FERRUM_BPFTRACE=off "$FBT" -p "$STEADY" --flag "$FLAG" >/dev/null 2>"$OUT.err"
is 'FERRUM_BPFTRACE=off: exit status 0' $? 0
is 'FERRUM_BPFTRACE=off: in one line' "$(grep -c 'FERRUM_BPFTRACE is off' "$OUT.err")" 1

# --- found when the window opens --------------------------------------------------------------------

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

# --- an escalation that somebody asks for -----------------------------------------------------------

# manual CAPTURE: where among the steps the records stand that ask for one
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
sleep 0.2
kill -USR1 "$TOOL"
sleep 0.2
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
