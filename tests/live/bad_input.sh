#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Bad input gives one clear line and the right exit status, and nothing that was captured is lost.
. "$(dirname "$0")/lib.sh"

# refuses NAME STATUS REGEX ARGUMENT…
refuses()
{
	local name=$1 status=$2 regex=$3 got

	shift 3
	rm -f "${OUT:?}".*
	timeout 120 "$FBT" --trace "$OUT.trace" --profile "$OUT.profile" "$@" >"$OUT.report" 2>"$OUT.err" </dev/null
	got=$?
	is "$name: exit status $status" "$got" "$status"
	has "$name: says what" "$OUT.err" "$regex"
	is "$name: in one line" "$(grep -c . "$OUT.err")" 1
}

nobody=$((1 << 22))
while kill -0 $nobody 2>/dev/null; do nobody=$((nobody - 1)); done
refuses 'no such process' 1 "$nobody" -p $nobody
refuses 'kernel thread' 1 'kernel thread' -p 2
refuses 'nothing to trace' 2 '-p' -d 1
refuses 'two selections' 2 'exclude' -p $$ -a
refuses 'pid that is none' 2 'pid' -p abc
# shellcheck disable=SC2046
refuses 'pids that pgrep has not found' 2 pgrep -p $(pgrep -x no_such_name)
# shellcheck disable=SC2046
refuses 'pids that it has not found before an option' 2 "'-d'" \
	-p $(pgrep -x no_such_name) -d 1
refuses 'unknown detail' 2 'detail' -p $$ --detail some
refuses 'zero steps' 2 'steps' -p $$ -n 0
refuses 'no time' 2 'duration' -p $$ -d 0
refuses 'bad step' 2 'step' -p $$ --step '/(/'
refuses 'bad argument expression' 2 'step-arg' -p $$ --step-arg 'n=arg9'
refuses 'hash without sha256:' 2 'sha256:' -p $$ --profile-env-hash abc
refuses 'replay and pid' 2 'replay' --replay "$TMP/x" -p $$
refuses 'replay of nothing' 1 'No such file' --replay "$TMP/nothing"
refuses 'list of no process' 2 'list-steps' --list-steps
echo '[' >"$TMP/bad.json"
refuses 'trace that is none' 1 bad.json validate "$TMP/bad.json"
refuses 'trace that is not there' 1 'No such file' validate "$TMP/nothing"
refuses 'stray word' 2 'bogus' bogus
refuses 'typo of a command' 2 doctor dotcor
refuses 'typo of an option' 2 --duration -p $$ --duratoin 5

# Thresholds of the judgement: below the range, above it, and no number.
while read -r option below above; do
	for value in "$below" "$above" nan inf 1e99 4x; do
		refuses "$option=$value" 2 "$option: .*'$value'" -p $$ "$option=$value"
	done
	refuses "$option of nothing" 2 "$option: .*''" -p $$ "$option="
done <<-END
	--cv-threshold -0.1 10000.1
	--efficiency-threshold -1 100.5
	--gpu-transfer-threshold -1 101
	--memory-cliff-threshold -1 101
	--rate-limit -1 4294967296
	--rate-interval 0 99999999999999999999
	--cv-window 9 1025
	--budget-us -1 3600000001
	--context -1 65
END
refuses 'class by nothing that is recorded' 2 'class-by m' -p $$ --step-arg n=arg1 --class-by m

start_engine --steps 0 --sleep-us 500
go
"$FBT" -p "$ENGINE" --step engine_step -n 1 --trace none --profile none --report none \
	--class-by depth 2>"$OUT.err"
is 'class by an argument that the function has not: traced all the same' $? 0
has 'and said' "$OUT.err" 'class-by depth'
refuses 'unwritable trace' 1 '/proc/nowhere' -p "$ENGINE" --step engine_step -d 1 --trace /proc/nowhere/t
refuses 'unwritable profile' 1 '/proc/nowhere' -p "$ENGINE" --step engine_step -d 1 --profile /proc/nowhere/p
refuses 'unwritable record' 1 '/proc/nowhere' -p "$ENGINE" --step engine_step -d 1 --record /proc/nowhere/r
refuses 'a folder as trace' 1 "$TMP" -p "$ENGINE" --step engine_step -d 1 --trace "$TMP"
ln -s "$TMP/elsewhere" "$TMP/link"
refuses 'a symbolic link as profile' 1 'link' -p "$ENGINE" --step engine_step -d 1 --profile "$TMP/link"
holds 'and nothing was written through it' [ ! -e "$TMP/elsewhere" ]
refuses 'function that is not there' 1 'no_such_step' -p "$ENGINE" --step no_such_step -d 1
refuses 'address outside of any function' 1 '0x1' -p "$ENGINE" --step "engine+0x1" -d 1
refuses 'pattern that is too wide' 1 'libc.so.6:pthread_.*16' -p "$ENGINE" --step 'libc.so.6:pthread_*' -d 1

# Files that any user may open, so that only capabilities are tested, not folders.
cp "$FBT" "$TMP/tool"
cp "$FBT_ENGINE" "$TMP/engine"
chmod 755 "$TMP"
"$TMP/engine" --steps 0 &
OPEN=$!
wait_for 30 [ "/proc/$OPEN/exe" -ef "$TMP/engine" ]
for missing in bpf perfmon; do
	rm -f "${OUT:?}".*
	given=$([ $missing = bpf ] && echo perfmon || echo bpf)
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "+$given,+sys_ptrace" \
		--ambient-caps "+$given,+sys_ptrace" "$TMP/tool" -p "$OPEN" --step engine_step -d 1 \
		--trace none --profile none >"$OUT.report" 2>"$OUT.err"
	is "without $missing: exit status 1" $? 1
	has "without $missing: names what is missing" "$OUT.err" \
		"CAP_$(echo "$missing" | tr '[:lower:]' '[:upper:]') missing"
done
setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +bpf,+perfmon,+sys_ptrace \
	--ambient-caps +bpf,+perfmon,+sys_ptrace "$TMP/tool" -p "$OPEN" --step engine_step -n 11 \
	--trace none --profile none --report json >"$OUT.report" 2>"$OUT.err"
is 'with no more than the three capabilities: exit status 0' $? 0
fact 'and steps' 'R["steps"] == 11'
setpriv --reuid 65534 --regid 65534 --clear-groups "$TMP/tool" -p "$OPEN" --trace none --profile none \
	>"$OUT.report" 2>"$OUT.err"
is 'without root: exit status 1' $? 1
has 'without root: names a capability' "$OUT.err" 'CAP_BPF'
is 'without root: in one line' "$(grep -c . "$OUT.err")" 1
kill -TERM "$OPEN" "$ENGINE"
wait "$ENGINE"

# Processes that end during the attach: an error or an empty window, but never a hang or a crash.
worst=0
for _ in $(seq 12); do
	sleep 0.0"$((RANDOM % 9))" &
	timeout 120 "$FBT" -q -p $! -d 1 --trace none --profile none --report none >/dev/null 2>"$OUT.err"
	status=$?
	[ $status -le "$worst" ] || worst=$status
done
holds "a process that dies while attaching (worst status $worst)" [ "$worst" -le 1 ]

# On a full disk the trace ends, the profile keeps whole lines, and the run continues to its end.
mkdir "$TMP/small"
if mount -t tmpfs -o size=64k tmpfs "$TMP/small"; then
	start_engine --steps 400 --sleep-us 500
	run_tool -p "$ENGINE" --step engine_step --detail all --keep-free 0 --trace "$TMP/small/trace" \
		--profile "$TMP/small/profile"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool 1 'full disk: exit status 1'
	has 'full disk: says so' "$OUT.err" 'No space left'
	holds 'full disk: the profile is whole lines' "$FBT" validate "$TMP/small/profile"
	fact 'full disk: the report is there, and exact' 'R["steps"] == T["steps"] == 400'
	umount "$TMP/small"

	# The trace does not fit, but the profile does and is complete.
	mount -t tmpfs -o size=16k tmpfs "$TMP/small"
	start_engine --steps 300 --sleep-us 500
	run_tool -p "$ENGINE" --step engine_step --detail all --keep-free 0 --trace "$TMP/small/trace"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool 1 'disk full of trace: exit status 1'
	fact 'disk full of trace: the profile is complete' 'len(S) == T["steps"] == 300 and W["steps"] == 300'
	umount "$TMP/small"
else
	not_ok 'full disk: a tmpfs can be mounted'
fi
finish
