#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Outputs that cannot be written: full, read-only, removed or limited files, and pipes and terminals
# without a reader. One line says what to do, the exit status is 1, and the other outputs and the
# target are unaffected.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fault/lib.sh"

start_target 300

# A busy machine is that much slower.
SLOWER=5

# ends NAME STATUS SECONDS: the tool ends by itself within that time, which is ample on an idle
# machine
ends()
{
	local status

	for _ in $(seq $((SLOWER * $3 * 20))); do
		kill -0 "$TOOL" 2>/dev/null || break
		sleep 0.05
	done
	kill -0 "$TOOL" 2>/dev/null && kill -KILL "$TOOL"
	wait "$TOOL" 2>/dev/null
	status=$?
	[ "$status" = "$2" ] || sed 's/^/# /' "$OUT.err"
	is "$1: it ends with $2" "$status" "$2"
}

# --- files ---------------------------------------------------------------------------------------

under=(prlimit --fsize=307200)
tool -n 3000 --trace "$OUT.trace" --profile "$OUT.profile" --record "$OUT.capture"
under=()
ends 'ulimit -f' 1 20
for what in trace profile record; do
	says_once "ulimit -f, $what" "^ferrum-bpftrace: $what: .*ulimit -f"
done
holds 'ulimit -f: the profile is whole lines' is_whole_lines "$OUT.profile"
holds 'ulimit -f: what there is of the recording is replayed' replays "$OUT.capture.partial"
has_report 'ulimit -f'
names 'ulimit -f' trace "$OUT.trace.partial (ended early: File too large)"
names 'ulimit -f' profile "$OUT.profile (ended early: File too large)"
names 'ulimit -f' record "$OUT.capture.partial (ended early: File too large)"

# The same for each of three outputs, while the others have room.
for what in trace profile record; do
	mount -t tmpfs -o size=128k tmpfs "$disk"
	one_fails "disk full of $what" $what "$disk/$what" 'No space left on device'
	umount "$disk"
done

mount -t tmpfs -o ro tmpfs "$disk"
tool --trace "$disk/trace" --profile none
ends 'read-only disk' 1 10
says_once 'read-only disk' 'Read-only file system'
is 'read-only disk: that is all it says' "$(wc -l <"$OUT.err")" 1
holds 'read-only disk: and it begins no window' [ ! -s "$OUT.report" ]
umount "$disk"

# A disk under open files becomes read-only only in an emergency. This test can only make the rename
# fail.
mkdir "$TMP/below" && mount -t tmpfs tmpfs "$TMP/below" && mkdir "$TMP/below/d"
tool --trace "$TMP/below/d/trace" --profile "$OUT.profile"
let_step
chattr +i "$TMP/below/d" 2>/dev/null && immutable=1 || immutable=
kill -INT "$TOOL"
if [ "$immutable" ]; then
	ends 'a folder that was made immutable' 1 20
	says_once 'a folder that was made immutable' "$TMP/below/d/trace.partial"
	holds 'a folder that was made immutable: it is a whole trace' \
		python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$TMP/below/d/trace.partial"
	names 'a folder that was made immutable' trace \
		"$TMP/below/d/trace.partial (not renamed: Operation not permitted)"
	fact 'a folder that was made immutable: the files that the report names are there' honest
	chattr -i "$TMP/below/d"
else
	ends 'a disk without immutable folders' 0 20
fi
umount "$TMP/below"

mkdir "$TMP/gone"
tool --trace "$TMP/gone/trace" --profile "$TMP/gone/profile" --record "$TMP/gone/record"
let_step
rm -r "$TMP/gone"
kill -INT "$TOOL"
ends 'folder removed' 1 20
for what in trace profile record; do
	says_once "folder removed, $what" "gone/$what: .*removed"
	names 'folder removed' $what "$TMP/gone/$what (not there: it was removed)"
done
has_report 'folder removed'

tool -n $((LEAST_STEPS + 1)) --trace /dev/full --profile /dev/full --record /dev/full
ends 'full device' 1 20
is 'full device: a line for each output and no more' "$(grep -vc ': lost ' "$OUT.err")" 3
for what in trace profile '(record|/dev/full)'; do
	says_once "full device, $what" "^ferrum-bpftrace: $what: No space left on device"
done
has_report 'full device'
names 'full device' trace '/dev/full (ended early: No space left on device)'

# --- pipes ---------------------------------------------------------------------------------------

REPORT=/dev/full tool -n 20 --trace "$OUT.trace" --profile "$OUT.profile"
ends 'full stdout' 1 20
says_once 'full stdout' '^ferrum-bpftrace: report: No space left'
holds 'full stdout: the files are valid' "$FBT" validate "$OUT.trace" "$OUT.profile"

for what in report profile; do
	mkfifo "$TMP/pipe"
	if [ $what = report ]; then
		# The reader has ended before the report comes.
		(: <"$TMP/pipe") 7>&- &
		reader=$!
		REPORT=$TMP/pipe tool --trace "$OUT.trace" --profile "$OUT.profile"
	else
		(read -r _ <"$TMP/pipe") 7>&- &
		reader=$!
		tool --trace "$OUT.trace" --profile "$TMP/pipe"
	fi
	wait $reader
	let_step
	kill -INT "$TOOL"
	ends "reader of the $what gone" 1 20
	rm "$TMP/pipe"
	says_once "reader of the $what gone" "^ferrum-bpftrace: $what: Broken pipe"
	holds "reader of the $what gone: the trace is valid" "$FBT" validate "$OUT.trace"
done

# Full pipes without a reader must not hold a window open.
mkfifo "$TMP/full"
exec 8<>"$TMP/full"
dd if=/dev/zero of="$TMP/full" bs=4096 oflag=nonblock 2>/dev/null
for what in profile trace; do
	send $what "$TMP/full"
	tool -n $((LEAST_STEPS * 10)) --trace "${path[trace]}" --profile "${path[profile]}"
	ends "$what into a full pipe" 1 30
	says_once "$what into a full pipe" "^ferrum-bpftrace: $what: nobody reads it"
	names "$what into a full pipe" $what "$TMP/full (ended early: nobody reads it)"
	has_report "$what into a full pipe"
done
tool --report none --trace none --profile "$TMP/full"
let_step
kill -INT "$TOOL"
ends 'SIGINT while a full pipe is waited for' 1 15
# Each step is escalated into a full pipe, and the window continues.
rm -f "${OUT:?}".*
env --default-signal=INT "$FBT" -p "$ENGINE" --step fault_step --budget-us 1 --rate-limit 0 --rate-guard 0 -n 1000 \
	--report json --trace "$OUT.trace" --profile "$OUT.profile" >"$OUT.report" 2>&8 8>&- 7>&- </dev/null &
TOOL=$!
: >"$OUT.err"
ends 'stderr is a full pipe' 0 20
holds 'stderr is a full pipe: the files are valid' "$FBT" validate "$OUT.trace" "$OUT.profile"
fact 'stderr is a full pipe: the window is whole' 'R["steps"] == W["steps"] == 1000'
exec 8>&-

# Debug messages fill a terminal that nobody reads. It has room for a part of the last one.
under=(python3 tests/live/fault/unread.py env TERM=xterm)
tool -vvv -n 1000 --trace "$OUT.trace" --profile "$OUT.profile"
under=()
ends 'stderr is a terminal that nobody reads' 0 30
holds 'stderr is a terminal that nobody reads: the files are valid' "$FBT" validate "$OUT.trace" "$OUT.profile"
fact 'stderr is a terminal that nobody reads: the window is whole' 'R["steps"] == W["steps"] == 1000'

end_target
finish
