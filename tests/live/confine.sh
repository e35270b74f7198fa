#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the tool may still do while a window is open; that it is enough for what comes later; and
# that nothing of it reaches a COMMAND. What the filter refuses is in confine_filter_test.
. "$(dirname "$0")/lib.sh"

# status PID FIELD: of /proc/PID/status
status()
{
	awk -v field="$2:" '$1 == field { print $2 }' "/proc/$1/status"
}

# kept PID: its capabilities in words that sort
kept()
{
	local set number names=''

	set=$((16#$(status "$1" CapPrm)))
	for number in 1:dac_override 2:dac_read_search 5:kill 19:sys_ptrace 21:sys_admin 38:perfmon \
		39:bpf 40:checkpoint_restore; do
		if ((set >> ${number%:*} & 1)); then
			names+="${number#*:} "
			((set &= ~(1 << ${number%:*})))
		fi
	done
	[ "$set" = 0 ] || names+="and $set "
	echo "${names% }"
}

# confined NAME: the tool is; FILTERED tells whether this build and kernel have filters
confined()
{
	local sets

	is "$1: capabilities that stay" "$(kept "$TOOL")" \
		'dac_read_search sys_ptrace perfmon bpf checkpoint_restore'
	is "$1: effective are those" "$(status "$TOOL" CapEff)" "$(status "$TOOL" CapPrm)"
	sets="$(status "$TOOL" CapInh) $(status "$TOOL" CapBnd) $(status "$TOOL" CapAmb)"
	is "$1: nothing to be inherited" "${sets//0/}" '  '
	is "$1: no new privileges, a filter" \
		"$(status "$TOOL" NoNewPrivs) $(status "$TOOL" Seccomp)" "1 $FILTERED"
}

# -v says so last: by now it is, whatever the machine does
wait_confined()
{
	for _ in $(seq 500); do
		grep -q 'system calls are' "$OUT.err" && return 0
		sleep 0.02
	done
	sed 's/^/# /' "$OUT.err"
	not_ok 'the tool is confined'
}

unrefused()
{
	is "$1: the filter refused nothing" "$(grep -c 'by our filter' "$OUT.err")" 0
}

[ $((16#$(status self CapPrm) >> 40 & 1)) = 1 ] ||
	{ echo 'SKIP root has not all capabilities here' && exit 77; }

# One window. A build with sanitizers has no filter.
start_engine --steps 0 --sleep-us 1000
attach -v
go
FILTERED=2
wait_confined
grep -q 'system calls are filtered' "$OUT.err" || FILTERED=0
if grep -q '^Seccomp:' /proc/self/status && ! grep -q __asan_report_load "$FBT"; then
	is 'this kernel and build have filters' "$FILTERED" 2
else
	has 'without filters that is said' "$OUT.err" 'calls are not filtered'
fi
if grep -q 'CAP_SYS_ADMIN' "$OUT.err"; then
	ok 'this kernel has perf uprobes alone: CAP_SYS_ADMIN stays'
else
	confined 'a window'
fi
has 'a window: -v says what stays' "$OUT.err" 'capabilities that stay: .*CAP_PERFMON CAP_BPF'
broker=$(pgrep -P "$TOOL")
is 'there is one process that has more' "$(wc -w <<<"$broker")" 1
stop_tool
unrefused 'a window'
fact 'a window: steps' 'len(S) > 0'
holds 'it has ended with the tool' [ ! -e "/proc/$broker" ]

# Killed, it leaves none behind.
rm -f "${OUT:?}".*
attach
broker=$(pgrep -P "$TOOL")
kill -9 "$TOOL"
wait "$TOOL" 2>/dev/null
for _ in $(seq 100); do
	[ -e "/proc/$broker" ] || break
	sleep 0.02
done
holds 'nor is it left when the tool is killed' [ ! -e "/proc/$broker" ]

# Behind sudo: files are his, where he alone may write, and not by a right to write everywhere.
rm -f "${OUT:?}".*
mkdir -m 700 "$TMP/home"
chown 64001:64001 "$TMP/home"
chmod 711 "$TMP"
OUT=$TMP/home/out
SUDO_UID=64001 SUDO_GID=64001 run_tool -v -p "$ENGINE" --step engine_step
wait_attached "$TOOL" || not_ok 'sudo: the tool attaches'
wait_confined
if ! grep -q 'CAP_SYS_ADMIN' "$OUT.err"; then
	confined 'sudo'
	has 'sudo: as that user' "$OUT.err" 'files are written as user 64001'
fi
stop_tool
unrefused sudo
is 'sudo: the files are his' "$(stat -c %u "$OUT.trace" "$OUT.profile" | sort -u)" 64001
OUT=$TMP/out

# Root in a folder of somebody else: what is needed to rename there stays, and is said.
rm -f "$TMP/home/"*
run_tool -v -p "$ENGINE" --step engine_step --trace "$TMP/home/trace"
wait_attached "$TOOL" || not_ok "another's folder: the tool attaches"
wait_confined
has "another's folder: CAP_DAC_OVERRIDE stays" "$OUT.err" 'stay: CAP_DAC_OVERRIDE'
stop_tool
holds "another's folder: the trace is there" "$FBT" validate "$TMP/home/trace"

# By flag: it waits without rights, and opens windows.
rm -f "${OUT:?}".*
mkdir "$TMP/windows"
run_by_flag=(--flag "$TMP/flag" --dir "$TMP/windows" --profile "$TMP/windows/profile" --report none)
env --default-signal=INT "$FBT" "${run_by_flag[@]}" -p "$ENGINE" --step engine_step \
	>"$OUT.report" 2>"$OUT.err" 7>&- </dev/null &
TOOL=$!
# shellcheck disable=SC2317,SC2329 # called by name
said()
{
	for _ in $(seq 500); do
		[ "$(grep -c "$1" "$OUT.err")" -ge "$2" ] && return 0
		sleep 0.02
	done
	return 1
}
holds 'flag: it waits' said 'waiting for' 1
is 'flag: it waits without rights' "$(status "$TOOL" NoNewPrivs)" 1
for window in 1 2; do
	touch "$TMP/flag"
	holds "flag: window $window" said 'is open' $window
	sleep 0.2
	rm "$TMP/flag"
	holds "flag: window $window ends" said 'waiting for' $((window + 1))
done
stop_tool
unrefused flag
is 'flag: two exports' "$(find "$TMP/windows" -name 'ferrum_trace_*' | wc -l)" 2
is 'flag: one profile, appended to' "$(grep -c '"event":"window_prof"' "$TMP/windows/profile")" 2

# No step: who looks for candidates has the rights that takes.
rm -f "${OUT:?}".*
start_engine --steps 0 --sleep-us 1000
run_tool -p "$ENGINE" --step run_engine_never --wait-step
wait_attached "$TOOL"
go
for _ in $(seq 150); do
	grep -q "busiest candidates" "$OUT.err" && break
	sleep 0.1
done
has 'no step: candidates are named' "$OUT.err" "step '.*calls/s"
stop_tool
unrefused 'no step'

# A COMMAND has all that we had.
rm -f "${OUT:?}".*
run_tool --interval 100 -- grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
end_tool
is 'COMMAND: as without the tool' \
	"$(grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' "$OUT.report")" \
	"$(grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status)"
unrefused COMMAND
finish
