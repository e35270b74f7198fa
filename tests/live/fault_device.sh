#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Disks that fail under open files: a broken device (EIO), a quota (EDQUOT), and a file system that
# the kernel makes read-only during a window. One line says so, the exit status is 1, and the other
# outputs and the target are unaffected.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fault/lib.sh"

start_target 2000
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

# check_error ERROR TEXT WHAT
check_error()
{
	local name="$1 of the $3"

	mount_failing "$1" 100000
	one_fails "$name" "$3" "$disk/$3" "$2"
	case $3 in
	profile) holds "$name: it is whole lines" is_whole_lines "$left" ;;
	trace) has "$name: what there is stays" "$OUT.err" "$left" ;;
	record) holds "$name: what there is is replayed" replays "$left" ;;
	esac
	umount "$disk"
}

if [ -c /dev/fuse ] && mount_failing EIO 100; then
	umount "$disk"
	for what in trace profile record; do
		check_error EIO 'Input/output error' $what
		check_error EDQUOT 'Disk quota exceeded' $what
	done
	tried=1
else
	echo 'SKIP a write fails: no FUSE here'
fi

# --- the kernel makes it read-only ----------------------------------------------------------------

# Like a broken journal: every file stays open, but nothing can be written any more.
truncate -s 16M "$TMP/image"
if mkfs.ext4 -q -F "$TMP/image" 2>/dev/null && mount -o loop,errors=remount-ro "$TMP/image" "$disk" 2>/dev/null; then
	source=$(findmnt -no SOURCE "$disk")
	# findmnt may name the file of a loop device instead of the device.
	[ -b "$source" ] || source=$(losetup -nO NAME -j "$TMP/image")
	trigger=/sys/fs/ext4/${source#/dev/}/trigger_fs_error
	tool --keep-free 0 --trace "$disk/trace" --profile "$disk/profile" --record "$OUT.capture"
	let_step
	if echo 1 2>/dev/null >"$trigger"; then
		await_lines 2 'Read-only file system' "$OUT.err"
		kill -INT "$TOOL"
		end_tool 1 'read-only in a window: it ends with 1'
		for what in trace profile; do
			says_once "read-only in a window, $what" "^ferrum-bpftrace: $what: Read-only file system"
		done
		has_report 'read-only in a window'
		holds 'read-only in a window: the recording elsewhere too' replays "$OUT.capture"
		holds 'read-only in a window: the profile is whole lines' is_whole_lines "$disk/profile"
		tried=1
	else
		kill -INT "$TOOL"
		end_tool
		echo 'SKIP read-only in a window: this kernel does not make an ext4 fail when asked to'
	fi
	umount "$disk"
else
	echo 'SKIP read-only in a window: no ext4 on a loop device here'
fi

end_target
[ $tried = 1 ] || exit 77
finish
