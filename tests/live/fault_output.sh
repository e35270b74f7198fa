#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Outputs that cannot be written: full, read-only, removed or limited files, pipes that nobody reads.
# One line says what to do, exit status 1, the other outputs and the target are as ever.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

calls=3
truth=$TMP/truth.bin
mount_point=$TMP/disk
mkdir "$mount_point"
trap 'umount -l "$mount_point" 2>/dev/null; clean_up' EXIT
steps=(--step fault_step --step-arg thread=arg1 --step-arg n=arg2 --detail all --rate-guard 0 "${calm[@]}")

start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 300 $calls
go

# tool ARGUMENT…: in the background, with what the caller says of its descriptors
tool()
{
	env --default-signal=INT "$FBT" -p "$ENGINE" "${steps[@]}" "$@" 7>&- 8>&- </dev/null &
	TOOL=$!
}

# A machine that does much else is so much slower.
SLOWER=5

# ends NAME STATUS SECONDS: the tool ends by itself within that time, which an idle machine has plenty of
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

# says_once NAME REGEX: one line, and only one, of what is wrong
says_once()
{
	is "$1: one line says so" "$(grep -cE "$2" "$OUT.err")" 1
}

is_whole()
{
	python3 - "$1" <<'END'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
assert text.endswith("\n") and len(text) > 1000, len(text)
for line in text.splitlines():
    json.loads(line)
END
}

has_report()
{
	fact "$1: the report is whole" 'R["steps"] > 100 and R["window_ns"] > 0'
	fact "$1: the files that it names are there" honest
}

# names NAME WHAT TEXT: what the report says of that file
names()
{
	is "$1: the report says where the $2 is" "$(q "files['$2']")" "$3"
}

# --- files ---------------------------------------------------------------------------------------

rm -f "${OUT:?}".*
(ulimit -f 300 && exec "$FBT" -p "$ENGINE" "${steps[@]}" -d 2 --report json --trace "$OUT.trace" \
	--profile "$OUT.profile" --record "$OUT.capture" 2>"$OUT.err" </dev/null 7>&-) | cat >"$OUT.report"
is 'ulimit -f: it ends with 1' "${PIPESTATUS[0]}" 1
for what in trace profile record; do
	says_once "ulimit -f, $what" "^ferrum-bpftrace: $what: File too large: .*raise ulimit -f"
done
holds 'ulimit -f: the profile is whole lines' is_whole "$OUT.profile"
holds 'ulimit -f: what there is of the recording is replayed' \
	"$FBT" -q --replay "$OUT.capture.partial" --report none
has_report 'ulimit -f'
names 'ulimit -f' trace "$OUT.trace.partial (ended early: File too large)"
names 'ulimit -f' profile "$OUT.profile (ended early: File too large)"
names 'ulimit -f' record "$OUT.capture.partial (ended early: File too large)"

# The same at each of three outputs, while the others have room.
for what in trace profile record; do
	rm -f "${OUT:?}".*
	mount -t tmpfs -o size=128k tmpfs "$mount_point"
	declare -A path=([trace]=$OUT.trace [profile]=$OUT.profile [record]=$OUT.capture)
	path[$what]=$mount_point/$what
	tool -d 2 --keep-free 0 --report json --trace "${path[trace]}" --profile "${path[profile]}" \
		--record "${path[record]}" >"$OUT.report" 2>"$OUT.err"
	ends "disk full of $what" 1 20
	says_once "disk full of $what" "^ferrum-bpftrace: $what: No space left on device: .*free some space"
	has_report "disk full of $what"
	there=${path[$what]}.partial
	[ $what = profile ] && there=${path[$what]}
	names "disk full of $what" $what "$there (ended early: No space left on device)"
	[ $what = profile ] || fact "disk full of $what: the profile is whole" 'W["steps"] == len(S) == R["steps"]'
	[ $what = trace ] || holds "disk full of $what: the trace is whole" "$FBT" validate "$OUT.trace"
	[ $what = record ] || holds "disk full of $what: the recording is whole" \
		"$FBT" -q --replay "$OUT.capture" --report none
	umount "$mount_point"
done

mount -t tmpfs -o ro tmpfs "$mount_point"
tool -d 2 --trace "$mount_point/trace" --profile none >"$OUT.report" 2>"$OUT.err"
ends 'read-only disk' 1 10
says_once 'read-only disk' 'Read-only file system: name a file in a folder that can be written to'
is 'read-only disk: that is all it says of it' "$(grep -c 'Read-only file system' "$OUT.err")" 1
holds 'read-only disk: and it begins no window' [ ! -s "$OUT.report" ]
umount "$mount_point"

# A disk under open files becomes read-only in an emergency only; this is what can be had: no rename.
rm -f "${OUT:?}".*
mkdir "$TMP/below" && mount -t tmpfs tmpfs "$TMP/below" && mkdir "$TMP/below/d"
tool -d 2 --report json --trace "$TMP/below/d/trace" --profile "$OUT.profile" >"$OUT.report" 2>"$OUT.err"
wait_attached "$TOOL"
sleep 0.5
chattr +i "$TMP/below/d" 2>/dev/null && immutable=1 || immutable=
if [ "$immutable" ]; then
	ends 'a folder that was made immutable' 1 20
	says_once 'a folder that was made immutable' 'what was written is in .*/trace.partial'
	holds 'a folder that was made immutable: it is a whole trace' \
		python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$TMP/below/d/trace.partial"
	names 'a folder that was made immutable' trace \
		"$TMP/below/d/trace.partial (not in its place: Operation not permitted)"
	fact 'a folder that was made immutable: the files that the report names are there' honest
	chattr -i "$TMP/below/d"
else
	ends 'a disk without immutable folders' 0 20
fi
umount "$TMP/below"

rm -f "${OUT:?}".*
mkdir "$TMP/gone"
tool -d 2 --report json --trace "$TMP/gone/trace" --profile "$TMP/gone/profile" \
	--record "$TMP/gone/record" >"$OUT.report" 2>"$OUT.err"
wait_attached "$TOOL"
sleep 0.5
rm -r "$TMP/gone"
ends 'folder removed' 1 20
for what in trace profile record; do
	says_once "folder removed, $what" "gone/$what: was removed while it was written"
	names 'folder removed' $what "$TMP/gone/$what (not there: it was removed)"
done
has_report 'folder removed'

rm -f "${OUT:?}".*
tool -d 1 --trace /dev/full --profile /dev/full --record /dev/full --report json >"$OUT.report" 2>"$OUT.err"
ends 'full device' 1 20
is 'full device: a line for each output and no more' "$(grep -c 'No space left on device' "$OUT.err")" 3
for what in trace profile '(record|/dev/full)'; do
	says_once "full device, $what" "^ferrum-bpftrace: $what: No space left on device"
done
has_report 'full device'
names 'full device' trace '/dev/full (ended early: No space left on device)'

# --- pipes ---------------------------------------------------------------------------------------

tool -d 1 --trace "$OUT.trace" --profile "$OUT.profile" >/dev/full 2>"$OUT.err"
ends 'full stdout' 1 20
says_once 'full stdout' '^ferrum-bpftrace: report: No space left'
holds 'full stdout: the files are valid' "$FBT" validate "$OUT.trace" "$OUT.profile"

for what in report profile; do
	rm -f "${OUT:?}".*
	mkfifo "$OUT.pipe"
	if [ $what = report ]; then
		# The reader has gone when the report comes.
		(: <"$OUT.pipe") 7>&- &
		tool -d 1.5 --trace "$OUT.trace" --profile "$OUT.profile" --report json 2>"$OUT.err" >"$OUT.pipe"
	else
		(read -r _ <"$OUT.pipe") 7>&- &
		tool -d 1.5 --trace "$OUT.trace" --profile "$OUT.pipe" --report json 2>"$OUT.err" >"$OUT.report"
	fi
	ends "reader of the $what gone" 1 20
	says_once "reader of the $what gone" "^ferrum-bpftrace: $what: Broken pipe"
	holds "reader of the $what gone: the trace is valid" "$FBT" validate "$OUT.trace"
done

# Full pipes that nobody reads: a window must not be held open by them.
mkfifo "$TMP/full"
exec 8<>"$TMP/full"
dd if=/dev/zero of="$TMP/full" bs=4096 oflag=nonblock 2>/dev/null
for what in profile trace; do
	rm -f "${OUT:?}".*
	declare -A path=([trace]=$OUT.trace [profile]=$OUT.profile)
	path[$what]=$TMP/full
	tool -d 1.5 --report json --trace "${path[trace]}" --profile "${path[profile]}" >"$OUT.report" 2>"$OUT.err"
	ends "$what into a full pipe" 1 30
	says_once "$what into a full pipe" "^ferrum-bpftrace: $what: nobody reads it"
	names "$what into a full pipe" $what "$TMP/full (ended early: nobody reads it)"
	has_report "$what into a full pipe"
done
rm -f "${OUT:?}".*
tool --report none --trace none --profile "$TMP/full" 2>"$OUT.err"
wait_attached "$TOOL"
sleep 0.5
kill -INT "$TOOL"
ends 'SIGINT while a full pipe is waited for' 1 15
# Each step is escalated, on a pipe that takes nothing, and the window goes on.
rm -f "${OUT:?}".*
env --default-signal=INT "$FBT" -p "$ENGINE" --step fault_step --budget-us 1 --rate-limit 0 --rate-guard 0 -d 1.5 \
	--report json --trace "$OUT.trace" --profile "$OUT.profile" >"$OUT.report" 2>&8 8>&- 7>&- </dev/null &
TOOL=$!
: >"$OUT.err"
ends 'stderr is a full pipe' 0 20
holds 'stderr is a full pipe: the files are valid' "$FBT" validate "$OUT.trace" "$OUT.profile"
fact 'stderr is a full pipe: the window is whole' 'R["window_ns"] < 10e9 and R["steps"] == W["steps"] > 100'
exec 8>&-

kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wants, each of its calls as it should be' $? 0
finish
