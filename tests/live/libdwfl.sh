#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Each stack of slow calls, held against what elfutils' libdwfl makes of the same registers and the same
# bytes: C++ and Rust without frame pointers, stripped, of a deleted program, in other mount and PID
# namespaces, through generated code, the vDSO, signal handlers and frames of variable size.
. "$(dirname "$0")/lib.sh"

checker=$FBT_BUILD/tests/live_dwfl
if [ ! -x "$checker" ]; then
	echo 'SKIP no libdw-dev here'
	exit 77
fi
FBT=$(realpath "$checker")
export DWFL_LOG=$TMP/dwfl

# trace_it PID STEP: the tool on the process that waits, until it ends
trace_it()
{
	rm -f "${OUT:?}".* "$DWFL_LOG"
	run_tool -p "$1" --step "$2" --folded "$OUT.folded"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool
}

# agree NAME COUNT PATTERN…: at least so many stacks, all of which libdwfl unwinds to the same calls;
# the folded ones match each of the patterns
agree()
{
	local name=$1 count=$2 pattern

	shift 2
	python3 tests/live/dwfl/agree.py "$name" "$count" "$DWFL_LOG" || FAILED=1
	for pattern; do
		has "$name: $pattern" "$OUT.folded" "$pattern"
	done
}

for way in 'jit 8 ^engine_step;\[by.frame.pointers\];call_generated;\[generated.code\];pause_here;nap_for;.*\[clock_nanosleep\]' \
	'vdso 8 ^engine_step;read_clock;.*clock_gettime[^;]*;([^;]*vdso[^;]*|clock_gettime);\[clock_gettime\]' \
	'signal 8 ^engine_step;raise_signal;(.*;)?on_signal;pause_here;nap_for;.*\[clock_nanosleep\]' \
	'altstack 8 ^engine_step;\[cut.off\];.*;on_signal;pause_here;nap_for;.*\[clock_nanosleep\]' \
	'alloca 8 ^engine_step;take_room;pause_here;nap_for;.*\[clock_nanosleep\]'; do
	read -r name count pattern <<<"$way"
	start_program odd_stacks "$name"
	trace_it "$ENGINE" engine_step
	if grep -q '"slow": 0' "$TMP/truth.json"; then
		echo "SKIP $name: not possible on this machine"
		continue
	fi
	agree "$name" "$count" "${pattern//./.}"
done

if g++ -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -Wl,--build-id tests/live/stacks.cc -o "$TMP/stacks" \
	-lpthread -ldl 2>"$TMP/g++"; then
	start_waiting "$TMP/stacks" "$TMP/truth.json" 2
	trace_it "$ENGINE" engine_step
	agree 'C++' 12 '^engine_step;take_lock' '^engine_step;deep_frame' '^engine_step;(forward;){9}'

	step=$(nm "$TMP/stacks" | sed -n 's/^0*\([0-9a-f]*\) T engine_step$/\1/p')
	cp "$TMP/stacks" "$TMP/bare"
	strip "$TMP/bare"
	start_waiting "$TMP/bare" "$TMP/truth.json" 1
	trace_it "$ENGINE" "$TMP/bare+0x$step"
	agree stripped 6 ';bare\+0x'

	cp "$TMP/stacks" "$TMP/gone"
	start_waiting "$TMP/gone" "$TMP/truth.json" 1
	rm "$TMP/gone"
	trace_it "$ENGINE" engine_step
	agree deleted 6 '^engine_step;deep_frame'

	# The program is on a mount that only its own namespace has.
	if unshare -m -p -f true 2>/dev/null; then
		mkdir "$TMP/inside"
		# shellcheck disable=SC2016
		start_waiting unshare -m -p -f --kill-child sh -c '
			mount -t tmpfs none "$2" && cp "$1" "$2/engine" && umount -l /proc; mount -t proc none /proc
			"$2/engine" "$3" 1; exit 0' - "$TMP/stacks" "$TMP/inside" "$TMP/truth.json"
		inner=$(pgrep -f "^$TMP/inside/engine " | head -1)
		is 'namespaces: its file is not here' "$(ls "$TMP/inside")" ''
		trace_it "$inner" engine_step
		agree namespaces 6 '^engine_step;deep_frame' '^engine_step;take_lock'
	fi
fi

if command -v rustc >/dev/null && rustc -O -C force-frame-pointers=no -o "$TMP/rust" tests/live/stacks.rs 2>"$TMP/rustc"; then
	start_waiting "$TMP/rust" "$TMP/truth.json"
	trace_it "$ENGINE" engine_step
	agree Rust 7 '^engine_step;[^;]*pause_for' '^engine_step;[^;]*call_it;[^;]*pause_for' \
		'^engine_step;[^;]*take_lock;.*\[futex\]'
	fact 'Rust: who gave the lock back, and in which function' \
		"{('hold_lock' in g.get('waker_stack', ''), ', held by thread ' in g['cause_evidence'])
			for g in G.values() if g['cause'] == 'lock_contention'} == {(True, True)}"
fi
finish
