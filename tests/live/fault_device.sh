#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Disks that fail under open files: a broken device (EIO), a quota (EDQUOT), a file system that its
# kernel makes read-only in the middle of a window. One line says so, exit status 1, the other outputs
# and the target are as ever.
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
	env --default-signal=INT "$FBT" -p "$ENGINE" "${steps[@]}" --report json --keep-free 0 "$@" \
		>"$OUT.report" 2>"$OUT.err" 7>&- </dev/null &
	TOOL=$!
}

# says_once NAME REGEX: one line, and only one, of what is wrong
says_once()
{
	is "$1: one line says so" "$(grep -cE "$2" "$OUT.err")" 1
}

# check_others NAME WHAT: outputs but this one are whole
check_others()
{
	fact "$1: the report is whole" 'R["steps"] > 20 and R["window_ns"] > 0'
	fact "$1: the files that it names are there" honest
	[ "$2" = profile ] || fact "$1: the profile is whole" 'W["steps"] == len(S) == R["steps"]'
	[ "$2" = trace ] || holds "$1: the trace is whole" "$FBT" validate -q "$OUT.trace"
	[ "$2" = record ] || holds "$1: the recording is whole" \
		"$FBT" -q --replay "$OUT.capture" --report none
}

is_whole_lines()
{
	python3 -c 'import json, sys; assert [json.loads(line) for line in open(sys.argv[1])]' "$1"
}

start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 2000 3
go
tried=0

# --- each write beyond some number of bytes fails -------------------------------------------------

# mount_failing ERROR BYTES
mount_failing()
{
	mkfifo "$TMP/mounted"
	python3 tests/live/fault_fs.py "$disk" "$1" "$2" >"$TMP/mounted" 2>"$TMP/mount.err" 7>&- &
	read -r _ <"$TMP/mounted"
	rm "$TMP/mounted"
	mountpoint -q "$disk"
}

if [ -c /dev/fuse ] && mount_failing EIO 100; then
	umount "$disk"
	for error in EIO EDQUOT; do
		text='Input/output error'
		[ $error = EDQUOT ] && text='Disk quota exceeded'
		for what in trace profile record; do
			mount_failing $error 100000
			declare -A path=([trace]=$OUT.trace [profile]=$OUT.profile [record]=$OUT.capture)
			path[$what]=$disk/$what
			tool --trace "${path[trace]}" --profile "${path[profile]}" --record "${path[record]}"
			for _ in $(seq 1800); do
				grep -q 'ends here' "$OUT.err" && break
				kill -0 "$TOOL" 2>/dev/null || break
				sleep 0.05
			done
			sleep 0.5
			kill -INT "$TOOL"
			end_tool 1 "$error of the $what: it ends with 1"
			says_once "$error of the $what" "^ferrum-bpftrace: $what: $text: the .* ends here, other outputs go on"
			[ $error = EIO ] ||
				has "$error of the $what: it says what to do" "$OUT.err" 'free some space or name a file elsewhere'
			check_others "$error of the $what" $what
			there=$disk/$what.partial
			[ $what = profile ] && there=$disk/$what
			is "$error of the $what: the report says where it is" "$(q "files['$what']")" \
				"$there (ended early: $text)"
			case $what in
			profile) holds "$error of the $what: it is whole lines" is_whole_lines "$disk/profile" ;;
			trace) has "$error of the $what: what there is stays" "$OUT.err" 'what was written is in .*/trace.partial' ;;
			record)
				holds "$error of the $what: what there is is replayed" \
					"$FBT" -q --replay "$disk/record.partial" --report none
				;;
			esac
			umount "$disk"
		done
	done
	tried=1
else
	echo '# no FUSE: writes are not made to fail'
fi

# --- the kernel makes it read-only ----------------------------------------------------------------

# What a broken journal does: every file stays open, and nothing is written any more.
truncate -s 16M "$TMP/image"
if mkfs.ext4 -q -F "$TMP/image" 2>/dev/null && mount -o loop,errors=remount-ro "$TMP/image" "$disk" 2>/dev/null; then
	source=$(findmnt -no SOURCE "$disk")
	# Of a loop device findmnt may name the file behind it.
	[ -b "$source" ] || source=$(losetup -nO NAME -j "$TMP/image")
	trigger=/sys/fs/ext4/${source#/dev/}/trigger_fs_error
	tool --trace "$disk/trace" --profile "$disk/profile" --record "$OUT.capture"
	wait_attached "$TOOL"
	sleep 1
	if echo 1 2>/dev/null >"$trigger"; then
		for _ in $(seq 600); do
			[ "$(grep -c 'Read-only file system' "$OUT.err")" -ge 2 ] && break
			sleep 0.1
		done
		kill -INT "$TOOL"
		end_tool 1 'read-only in a window: it ends with 1'
		for what in trace profile; do
			says_once "read-only in a window, $what" "^ferrum-bpftrace: $what: Read-only file system"
		done
		fact 'read-only in a window: the report is whole' 'R["steps"] > 20'
		fact 'read-only in a window: the files that it names are there' honest
		holds 'read-only in a window: the recording elsewhere too' \
			"$FBT" -q --replay "$OUT.capture" --report none
		holds 'read-only in a window: the profile is whole lines' is_whole_lines "$disk/profile"
		tried=1
	else
		kill -INT "$TOOL"
		end_tool
		echo '# this kernel does not make an ext4 fail when asked to'
	fi
	umount "$disk"
else
	echo '# no ext4 on a loop device: none becomes read-only'
fi

kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wants, each of its calls as it should be' $? 0
if [ $tried = 0 ]; then
	echo 'SKIP neither FUSE nor ext4 on a loop device here'
	exit 77
fi
finish
