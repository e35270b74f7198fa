#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Room on the disk is left to others (--keep-free): an output ends when there is too little, is
# valid up to its end, and the others continue. fault_device.sh tests disks that fail.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fault/lib.sh"

# new_disk SIZE: a tmpfs, which really has the room that it reports
new_disk()
{
	umount -l "$disk" 2>/dev/null
	mount -t tmpfs -o "size=$1" tmpfs "$disk"
}

# fill SIZE: somebody else writes that much
fill()
{
	fallocate -l "$1" "$disk/others"
}

if ! new_disk 64M; then
	echo 'SKIP no tmpfs can be mounted here'
	exit 77
fi
start_target 2000

# --- too little from the start -------------------------------------------------------------------

fill 60M
tool -d 1 --keep-free 8M --trace "$disk/trace" --profile "$OUT.profile"
end_tool 1 'too little at the start: it ends with 1'
# If the room is not checked here, the rest would only wait in vain.
[ "$FAILED" = 0 ] || finish
is 'too little at the start: that is all it says' "$(grep -c . "$OUT.err")" 1
says_once 'too little at the start' '/disk/trace: 4.00 MiB .* 8.00 MiB .*--keep-free'
is 'too little at the start: nothing is left there' "$(ls "$disk")" others
is 'too little at the start: the other output was not begun' "$(ls "$OUT.profile" 2>/dev/null)" ''
"$FBT" doctor "$ENGINE" --step fault_step --keep-free 8M --dir "$disk" --profile none \
	--report json >"$OUT.doctor" 2>&1
is 'too little at the start: the doctor knows' $? 1
has 'too little at the start: and says so' "$OUT.doctor" '4.00 MiB .*--keep-free .*8.00 MiB'
for size in 2M 0; do
	tool -n 20 --keep-free $size --trace "$disk/trace" --profile "$OUT.profile"
	end_tool 0 "--keep-free $size: there is enough"
	rm "$disk/trace"
done
# 5 % of the disk: 3.2 MiB
tool -n 20 --trace "$disk/trace" --profile "$OUT.profile"
end_tool 0 'without the option: there is enough'
fill 62M
tool -n 20 --trace "$disk/trace" --profile "$OUT.profile"
end_tool 1 'without the option: there is too little'
says_once 'without the option' 'disk/trace: .* 3.20 MiB '
tool -n 20 --trace /dev/null --profile none --record /dev/null
end_tool 0 'a device has room'

# --- others fill it meanwhile ---------------------------------------------------------------------

# size_of WHAT: size of that output on the disk, under either of its names
size_of()
{
	stat -c %s "$disk/$1.json"* | head -1
}

# await_end WHAT OUTPUT: until the tool has reported that this output ends, or the tool has gone, or
# the file has grown by more than it may between two checks (outputs.c, pipeline.h)
await_end()
{
	local begin

	begin=$(size_of "$1")
	for _ in $(seq 2400); do
		grep -qE "^ferrum-bpftrace: $2: .*$ends_here" "$OUT.err" && return 0
		kill -0 "$TOOL" 2>/dev/null || return 1
		[ $(($(size_of "$1") - begin)) -lt $((8 << 20)) ] || return 1
		sleep 0.05
	done
	return 1
}

ends_here='less than the 16.0 MiB to keep free: it ends here'
for what in trace kineto profile record; do
	new_disk 64M
	format=ferrum
	output=$what
	name="no room for $what"
	there=$disk/$what.json
	# Perfetto and HTA open files with that name.
	[ $what != kineto ] || { output=trace && format=kineto; }
	send $output "$there"
	tool --keep-free 16M --trace-format $format "${outputs[@]}"
	let_step
	fill 49M
	holds "$name: it is found" await_end $what $output
	[ "$FAILED" = 0 ] || { sed 's/^/# /' "$OUT.err" && ls -l "$disk" && finish; }
	size=$(size_of $what)
	# Enough time to grow by more than 8 MiB, if the output did.
	sleep 0.5
	kill -INT "$TOOL"
	end_tool 1 "$name: it ends with 1"
	check_failed "$name" $output "$ends_here.*--keep-free" "$there (ended early: its disk is nearly full)"
	is "$name: it did not grow any more" "$(stat -c %s "$there")" "$size"
	if [ $what = record ]; then
		holds "$name: it is replayed" replays "$there"
	else
		holds "$name: it is valid" "$FBT" validate -q "$there"
	fi
done

# --- windows by flag --------------------------------------------------------------------------------

# window NUMBER: a window by flag; until the tool waits for the next one
window()
{
	touch "$TMP/flag"
	await_lines "$1" 'is open|to keep free' "$OUT.err" || not_ok "window $1 is tried"
	rm "$TMP/flag"
	await_lines $(($1 + 1)) '^waiting for /' "$OUT.err" || not_ok "the tool waits after window $1"
}

new_disk 64M
fill 60M
tool --flag "$TMP/flag" --dir "$disk" --keep-free 8M
until_said '^waiting for /'
window 1
says_once 'a window without room' "$disk: 4.00 MiB .* 8.00 MiB .*: no window begins"
is 'a window without room: is not opened' "$(grep -c 'is open' "$OUT.err")" 0
is 'a window without room: leaves nothing' "$(ls "$disk")" others
rm "$disk/others"
window 2
kill -INT "$TOOL"
end_tool 1 'windows by flag: the tool ends with 1'
is 'a window with room again: has its files' "$(find "$disk" -name '*.json*' | wc -l)" 2
holds 'a window with room again: they are valid' "$FBT" validate -q "$disk"/*.json*
end_target

# --- the tool fills the disk
# -----------------------------------------------------------------------

# 70,000 calls in a row outside of steps: some 4 MiB of records and 10 MiB of trace.
start_program long_step 1 "$TMP/done"
launch "$FBT" --ready-fd 6 -p "$ENGINE" --step asleep_step --detail all "${calm[@]}" --record "$TMP/capture" \
	--trace none --profile none --report none 2>"$OUT.err"
wait_attached "$TOOL"
go
wait_for 120 [ -e "$TMP/done" ]
kill -TERM "$ENGINE"
wait "$ENGINE"
end_tool 0 'a recording of many calls'
new_disk 64M
rm -f "${OUT:?}".*
"$FBT" --replay "$TMP/capture" --keep-free 62M --trace "$disk/trace" --report json >"$OUT.report" 2>"$OUT.err"
is 'a trace that is too long: it ends with 1' $? 1
says_once 'a trace that is too long' '^ferrum-bpftrace: trace: .* 62.0 MiB '
holds 'a trace that is too long: it is valid' "$FBT" validate -q "$disk/trace"
is 'a trace that is too long: it ended soon after that' $(($(stat -c %s "$disk/trace") < 8 << 20)) 1
fact 'a trace that is too long: the report is whole' 'table["write"] >= T["writes"]'
fact 'a trace that is too long: and says what is not' \
	"files == {'trace': '$disk/trace (ended early: its disk is nearly full)'} and honest"
cp "$disk/trace" "$OUT.trace"
fact 'a trace that is too long: the file is not' '0 < sum(x["name"] == "write" for x in X) < T["writes"]'
"$FBT" --replay "$TMP/capture" --keep-free 8M --trace "$disk/trace" --report none
is 'a trace that is not too long: it ends with 0' $? 0
finish
