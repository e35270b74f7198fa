#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# fault_memory.sh [EVERY [LIVE]]: each EVERY-th allocation of a replay, and each LIVE-th of a trace,
# fails, alone and together with all later ones. Then limits of all kinds, from too little to
# enough. Never a crash, never a hang, never a failure without a line that says what to do.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

every=${1:-11}
live=${2:-499}
truth=$TMP/truth.bin

start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 2000 3
go
"$FBT" -p "$ENGINE" --step fault_step --detail all -n 200 --record "$TMP/capture" --trace none \
	--profile none --report none --rate-guard 0 "${calm[@]}"
is 'a recording to replay' $? 0

# --- each allocation in turn -----------------------------------------------------------------------

library=$TMP/fail_alloc.so
if ldd "$FBT" 2>/dev/null | grep -q libc.so && ! ldd "$FBT" | grep -q libasan; then
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O2 -shared -fPIC tests/fake/fail_alloc.c -ldl -o "$library" ||
		not_ok 'the library that lets allocations fail is built'
	holds 'replay: each allocation in turn finds no memory' python3 tests/live/fault_memory.py \
		"$library" "$every" "$OUT" "$FBT" --replay "$TMP/capture" --report json \
		--trace "$OUT.trace" --profile "$OUT.profile"
	holds 'trace: each allocation in turn finds no memory' python3 tests/live/fault_memory.py \
		"$library" "$live" "$OUT" "$FBT" -p "$ENGINE" --step fault_step -d 0.3 --report json \
		--trace "$OUT.trace" --profile "$OUT.profile"
else
	echo 'SKIP each allocation in turn: the tool is static, or has a sanitizer'
fi

# --- limits ----------------------------------------------------------------------------------------

# limited WRAPPER…: a trace under the wrapper; its status is returned and its output is in $TMP
limited()
{
	rm -f "${OUT:?}".*
	timeout 60 "$@" "$FBT" -p "$ENGINE" --step fault_step -n 20 --report json --trace "$OUT.trace" \
		--profile "$OUT.profile" --rate-guard 0 "${calm[@]}" >"$OUT.report" 2>"$OUT.err" </dev/null
}

# sweep NAME WRAPPER VALUE…: replaces % in the wrapper by each value; each run must work or print
# its line
sweep()
{
	local name=$1 wrapper=$2 value bad=0 worked=0 status

	shift 2
	for value; do
		# shellcheck disable=SC2086
		limited ${wrapper//%/$value}
		status=$?
		if [ $status = 0 ] && "$FBT" validate "$OUT.trace" "$OUT.profile" >/dev/null; then
			worked=$((worked + 1))
		elif grep -q 'error while loading shared libraries' "$OUT.err"; then
			continue # not even started
		elif [ $status != 1 ] || ! grep -q '^ferrum-bpftrace: ' "$OUT.err"; then
			echo "# $name $value: status $status: $(head -3 "$OUT.err")"
			bad=$((bad + 1))
		fi
	done
	is "$name: every run works or says why not" $bad 0
	holds "$name: enough is enough ($worked runs worked)" [ $worked -gt 0 ]
}

sweep 'file descriptors' 'prlimit --nofile=%' 5 6 7 8 10 13 17 22 28 33 39 46 52 57 60 63 64 65 66 80
limited prlimit --nofile=40
has 'few file descriptors: it says how many are needed' "$OUT.err" 'ulimit -n .*40'
limited prlimit --nofile=40:4096
is 'the soft limit of file descriptors is raised' $? 0
# shellcheck disable=SC2016 # of the inner shell
prlimit --nofile=100:4096 "$FBT" --report none --trace none --profile none --interval 100 -- \
	sh -c 'ulimit -Sn; sleep 1; prlimit --pid $PPID --nofile --noheadings --output SOFT' \
	>"$OUT.limits" 2>"$OUT.err"
is 'COMMAND keeps it, the tool does not' "$(xargs <"$OUT.limits")" '100 4096'
sweep 'address space' 'prlimit --as=%000000' 25 35 45 50 55 60 70 90 120 400
sweep 'data' 'prlimit --data=%000000' 4 5 6 8 12 20 40 200
sweep 'locked memory' 'prlimit --memlock=%' 0 65536 8388608
sweep 'processes' 'prlimit --nproc=%' 1 2 1000

# in_mounts COMMANDS: the same after these commands have changed the mounts
in_mounts()
{
	limited unshare -m sh -c "$1; shift; exec \"\$@\"" sh sh
}

if unshare -m true 2>/dev/null; then
	in_mounts 'mount -t tmpfs none /proc'
	has 'no /proc: says so' "$OUT.err" '/proc .*mounted'
	in_mounts 'mount -t tmpfs none /sys'
	has 'no /sys: says so' "$OUT.err" '/sys .*mounted'
	in_mounts 'mount -t tmpfs none /sys/devices'
	has 'no CPUs in /sys: says so' "$OUT.err" '/sys .*mounted'
	holds 'hidepid: works as ever' in_mounts 'mount -t proc -o hidepid=2 proc /proc'
fi

kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wants, each of its calls as it should be' $? 0
finish
