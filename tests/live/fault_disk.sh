#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Room on the disk is left to others (--keep-free): an output ends where there is too little, is whole
# as far as it goes, and the others go on. Disks that fail are fault_device.sh's.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

truth=$TMP/truth.bin
disk=$TMP/disk
mkdir "$disk"
trap 'umount -l "$disk" 2>/dev/null; clean_up' EXIT
steps=(--step fault_step --step-arg thread=arg1 --step-arg n=arg2 --detail all --rate-guard 0 "${calm[@]}")

# tool ARGUMENT…: in the background
tool()
{
	rm -f "${OUT:?}".*
	env --default-signal=INT "$FBT" -p "$ENGINE" "${steps[@]}" --report json "$@" \
		>"$OUT.report" 2>"$OUT.err" 7>&- </dev/null &
	TOOL=$!
}

# says_once NAME REGEX: one line, and only one, of what is wrong
says_once()
{
	is "$1: one line says so" "$(grep -cE "$2" "$OUT.err")" 1
}

# new_disk SIZE: a tmpfs, which has as much room as it says
new_disk()
{
	umount -l "$disk" 2>/dev/null
	mount -t tmpfs -o "size=$1" tmpfs "$disk"
}

# fill SIZE: someone else writes so much
fill()
{
	fallocate -l "$1" "$disk/others"
}

if ! new_disk 64M; then
	echo 'SKIP no tmpfs can be mounted here'
	exit 77
fi
start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 2000 3
go

# --- too little from the start -------------------------------------------------------------------

fill 60M
tool -d 1 --keep-free 8M --trace "$disk/trace" --profile "$OUT.profile"
end_tool 1 'too little at the start: it ends with 1'
# Where room does not count all that follows waits for what does not come.
[ "$FAILED" = 0 ] || finish
is 'too little at the start: that is all it says' "$(grep -c . "$OUT.err")" 1
says_once 'too little at the start' '^ferrum-bpftrace: .*/disk/trace: its disk has 4.00 MiB free, and 8.00 MiB stay free for others: free some space, name a file elsewhere, or lower --keep-free$'
is 'too little at the start: nothing is left there' "$(ls "$disk")" others
is 'too little at the start: the other output was not begun' "$(ls "$OUT.profile" 2>/dev/null)" ''
"$FBT" doctor "$ENGINE" --step fault_step --keep-free 8M --dir "$disk" --profile none >"$OUT.doctor" 2>&1
is 'too little at the start: the doctor knows' $? 1
has 'too little at the start: and says so' "$OUT.doctor" 'has only 4.00 MiB free, and 8.00 MiB stay'
for size in 2M 0; do
	tool -n 20 --keep-free $size --trace "$disk/trace" --profile "$OUT.profile"
	end_tool 0 "--keep-free $size: there is enough"
	rm "$disk/trace"
done
# 5 % of it: 3.2 MiB
tool -n 20 --trace "$disk/trace" --profile "$OUT.profile"
end_tool 0 'without the option: there is enough'
fill 62M
tool -n 20 --trace "$disk/trace" --profile "$OUT.profile"
end_tool 1 'without the option: there is too little'
says_once 'without the option' 'disk/trace: its disk has .* MiB free, and 3.20 MiB stay free'
tool -n 20 --trace /dev/null --profile none --record /dev/null
end_tool 0 'a device has room'

# --- others fill it meanwhile ---------------------------------------------------------------------

# await_line REGEX: until the tool has said it
await_line()
{
	for _ in $(seq 600); do
		grep -qE "$1" "$OUT.err" && return 0
		kill -0 "$TOOL" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# size_of WHAT: of the output on the disk, under either of its names
size_of()
{
	stat -c %s "$disk/$1.json"* | head -1
}

# await_end WHAT OUTPUT: until the tool has said that this output ends, or has gone, or the file has grown
# by more than it may between two looks (outputs.c, sink_room.h), however slow this machine is
await_end()
{
	local begin

	begin=$(size_of "$1")
	for _ in $(seq 2400); do
		grep -qE "^ferrum-bpftrace: $2: $ends_here" "$OUT.err" && return 0
		kill -0 "$TOOL" 2>/dev/null || return 1
		[ $(($(size_of "$1") - begin)) -lt $((8 << 20)) ] || return 1
		sleep 0.05
	done
	return 1
}

ends_here='its disk has [0-9.]+ MiB free, and 16.0 MiB stay free for others, so it ends here and other outputs go on'
for what in trace kineto profile record; do
	new_disk 64M
	declare -A path=([trace]=$OUT.trace [profile]=$OUT.profile [record]=$OUT.capture)
	format=ferrum
	name=$what
	# Perfetto and HTA open files of that name.
	[ $what = kineto ] && name=trace && format=kineto && path[trace]=$OUT.json
	path[$name]=$disk/$what.json
	tool --keep-free 16M --trace "${path[trace]}" --trace-format $format --profile "${path[profile]}" \
		--record "${path[record]}"
	wait_attached "$TOOL"
	sleep 1
	fill 49M
	holds "no room for $what: it is found" await_end $what $name
	[ "$FAILED" = 0 ] || { sed 's/^/# /' "$OUT.err" && ls -l "$disk" && finish; }
	size=$(size_of $what)
	sleep 0.5
	kill -INT "$TOOL"
	end_tool 1 "no room for $what: it ends with 1"
	says_once "no room for $what" "^ferrum-bpftrace: $name: $ends_here: free some space, .* or lower --keep-free$"
	is "no room for $what: that is all it says" "$(grep -c ' ends here' "$OUT.err")" 1
	is "no room for $what: it did not grow any more" "$(stat -c %s "$disk/$what.json")" "$size"
	fact "no room for $what: the report is whole, and says what is not" \
		"R['steps'] > 100 and files['$name'] == '$disk/$what.json (ended early: its disk is nearly full)' and
		sum(' (' in text for text in files.values()) == 1 and honest"
	case $what in
	trace | kineto | profile)
		holds "no room for $what: it is valid" "$FBT" validate -q "$disk/$what.json"
		;;
	record)
		holds "no room for $what: it is replayed" "$FBT" -q --replay "$disk/$what.json" --report none
		;;
	esac
	# The others have all of it.
	[ $what = profile ] || fact "no room for $what: the profile is whole" 'W["steps"] == len(S) == R["steps"]'
	[ $name = trace ] || holds "no room for $what: the trace is whole" "$FBT" validate -q "$OUT.trace"
	[ $name = trace ] || fact "no room for $what: the trace has each step" \
		'sum(x["cat"] == "step" for x in X) == R["steps"]'
	[ $what = record ] || holds "no room for $what: the recording is whole" \
		"$FBT" -q --replay "$OUT.capture" --report none
done

# --- windows by flag --------------------------------------------------------------------------------

# window: one, by the flag
window()
{
	local before

	before=$(grep -cE 'is open|stay free' "$OUT.err")
	touch "$TMP/flag"
	for _ in $(seq 400); do
		[ "$(grep -cE 'is open|stay free' "$OUT.err")" -gt "$before" ] && break
		sleep 0.05
	done
	sleep 0.5
	rm "$TMP/flag"
	sleep 0.5
}

new_disk 64M
fill 60M
tool --flag "$TMP/flag" --dir "$disk" --keep-free 8M
await_line 'waiting for'
window
says_once 'a window without room' 'pid.*has 4.00 MiB free, and 8.00 MiB stay free'
is 'a window without room: leaves nothing' "$(ls "$disk")" others
rm "$disk/others"
window
kill -INT "$TOOL"
end_tool 1 'windows by flag: the tool ends with 1'
is 'a window with room again: has its files' "$(find "$disk" -name '*.json*' | wc -l)" 2
holds 'a window with room again: they are valid' "$FBT" validate -q "$disk"/*.json*
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wants, each of its calls as it should be' $? 0

# --- it is the tool that fills it -------------------------------------------------------------------

# 70,000 calls in a row, outside of steps, some 4 MiB of records and 10 of trace.
start_program long_step 1 "$TMP/done"
"$FBT" -p "$ENGINE" --step asleep_step --detail all "${calm[@]}" --record "$TMP/capture" --trace none \
	--profile none --report none 2>"$OUT.err" 7>&- </dev/null &
TOOL=$!
wait_attached "$TOOL"
go
for _ in $(seq 600); do
	[ -e "$TMP/done" ] && break
	sleep 0.05
done
kill -TERM "$ENGINE"
wait "$ENGINE"
end_tool 0 'a recording of many calls'
new_disk 64M
rm -f "${OUT:?}".*
"$FBT" --replay "$TMP/capture" --keep-free 62M --trace "$disk/trace" --report json >"$OUT.report" 2>"$OUT.err"
is 'a trace that is too long: it ends with 1' $? 1
says_once 'a trace that is too long' '^ferrum-bpftrace: trace: its disk has .*, and 62.0 MiB stay free'
holds 'a trace that is too long: it is valid' "$FBT" validate -q "$disk/trace"
is 'a trace that is too long: it ended soon behind that' $(($(stat -c %s "$disk/trace") < 8 << 20)) 1
fact 'a trace that is too long: the report is whole' 'table["write"] >= T["writes"]'
fact 'a trace that is too long: and says what is not' \
	"files == {'trace': '$disk/trace (ended early: its disk is nearly full)'} and honest"
cp "$disk/trace" "$OUT.trace"
fact 'a trace that is too long: the file is not' '0 < sum(x["name"] == "write" for x in X) < T["writes"]'
"$FBT" --replay "$TMP/capture" --keep-free 8M --trace "$disk/trace" --report none
is 'a trace that is not too long: it ends with 0' $? 0
finish
