#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The rights of the tool and its broker while a window is open. These rights must be enough for what
# comes later, and COMMAND must not inherit any restriction. tests/unit/sandbox/filter_test.c and
# filter_broker_test.c test what the filters refuse.
. "$(dirname "$0")/lib.sh"

# status PID FIELD: a field of /proc/PID/status
status()
{
	awk -v field="$2:" '$1 == field { print $2 }' "/proc/$1/status"
}

# kept PID: the process's capabilities as words, sorted
kept()
{
	local set number names=''

	set=$((16#$(status "$1" CapPrm)))
	for number in 0:chown 1:dac_override 2:dac_read_search 5:kill 14:ipc_lock 19:sys_ptrace \
		21:sys_admin 23:sys_nice 38:perfmon 39:bpf 40:checkpoint_restore; do
		if ((set >> ${number%:*} & 1)); then
			names+="${number#*:} "
			((set &= ~(1 << ${number%:*})))
		fi
	done
	[ "$set" = 0 ] || names+="and $set "
	echo "${names% }"
}

# has_given_up PID CAPABILITIES SECCOMP: checks /proc
# shellcheck disable=SC2317,SC2329 # called by name
has_given_up()
{
	local number

	[ "$(kept "$1")" = "$2" ] && [ "$(status "$1" NoNewPrivs)" = 1 ] &&
		[ "$(status "$1" Seccomp)" = "$3" ] || return 1
	number=$(status "$1" CapPrm)
	# The bounding set limits what a program run by root can get: these capabilities and no
	# others.
	[ "$(status "$1" CapEff)" = "$number" ] && [ "$(status "$1" CapBnd)" = "$number" ] &&
		[ $((16#$(status "$1" CapInh) | 16#$(status "$1" CapAmb))) = 0 ]
}

# broker_has NAME CAPABILITIES SECCOMP: waits, because the broker gives its rights up by itself
broker_has()
{
	for _ in $(seq 3000); do
		BROKER=$(pgrep -o -P "$TOOL") && has_given_up "$BROKER" "$2" "$3" && break
		sleep 0.02
	done
	is "$1: capabilities of the broker" "$(kept "$BROKER")" "$2"
	is "$1: the broker can gain none, its filter" \
		"$(status "$BROKER" NoNewPrivs) $(status "$BROKER" Seccomp)" "1 $3"
	holds "$1: nor can what the broker runs" has_given_up "$BROKER" "$2" "$3"
}

# confined NAME: checks the tool. FILTERED says whether this build and kernel have filters.
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

# The last line of -v.
wait_confined()
{
	await_lines 1 'system calls are' "$OUT.err" && return 0
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
looks='dac_read_search sys_ptrace perfmon bpf checkpoint_restore'
appends="chown dac_override $looks"
if grep -q 'CAP_SYS_ADMIN' "$OUT.err"; then
	looks=${looks/sys_ptrace/sys_ptrace sys_admin}
	appends=${appends/sys_ptrace/sys_ptrace sys_admin}
	ok 'this kernel has perf uprobes alone: CAP_SYS_ADMIN stays'
else
	confined 'a window'
fi
has 'a window: -v says what stays' "$OUT.err" 'capabilities that stay: .*CAP_PERFMON CAP_BPF'
broker=$(pgrep -P "$TOOL")
is 'there is one process that does the rest' "$(wc -w <<<"$broker")" 1
broker_has 'a window' "$looks" "$FILTERED"
stop_tool
unrefused 'a window'
fact 'a window: steps' 'len(S) > 0'
holds 'it has ended with the tool' [ ! -e "/proc/$broker" ]

# If the tool is killed, it leaves no broker behind.
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

# Under sudo: the files belong to the user. Only the user may write to the folder, and the tool does
# not use a right to write everywhere.
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

# Root in a folder of another user: the tool keeps what it needs to rename there, and reports that.
rm -f "$TMP/home/"*
run_tool -v -p "$ENGINE" --step engine_step --trace "$TMP/home/trace"
wait_attached "$TOOL" || not_ok "another's folder: the tool attaches"
wait_confined
has "another's folder: CAP_DAC_OVERRIDE stays" "$OUT.err" 'stay: CAP_DAC_OVERRIDE'
stop_tool
holds "another's folder: the trace is there" "$FBT" validate "$TMP/home/trace"

# With --flag the tool waits without rights and still opens windows.
# shellcheck disable=SC2317,SC2329 # called by name
said()
{
	await_lines "$2" "$1" "$OUT.err"
}

# by_flag NAME FOLDER COMMAND…: two windows of a tool that COMMAND starts
by_flag()
{
	local name=$1 folder=$2 window

	shift 2
	rm -f "${OUT:?}".*
	"$@" --default-signal=INT "$FBT" --flag "$TMP/flag" --dir "$folder" --profile "$folder/profile" \
		--report none -p "$ENGINE" --step engine_step >"$OUT.report" 2>"$OUT.err" 7>&- </dev/null &
	TOOL=$!
	holds "$name: it waits" said '^waiting for /' 1
	is "$name: it waits without rights" "$(status "$TOOL" NoNewPrivs)" 1
	broker_has "$name" "$appends" "$FILTERED"
	for window in 1 2; do
		touch "$TMP/flag"
		holds "$name: window $window" said 'is open' $window
		sleep 0.2
		rm "$TMP/flag"
		holds "$name: window $window ends" said '^waiting for /' $((window + 1))
	done
	stop_tool
	unrefused "$name"
	is "$name: two exports" "$(find "$folder" -name 'ferrum_trace_*' | wc -l)" 2
	is "$name: one profile, appended to" "$(grep -c '"event":"window_prof"' "$folder/profile")" 2
}
mkdir "$TMP/windows"
by_flag flag "$TMP/windows" env
# In this folder the profile belongs to that user, and the broker still has root's rights.
mkdir -m 700 "$TMP/home/windows"
chown 64001:64001 "$TMP/home/windows"
by_flag 'flag behind sudo' "$TMP/home/windows" env SUDO_UID=64001 SUDO_GID=64001
is 'flag behind sudo: the profile is his alone' "$(stat -c '%u %a' "$TMP/home/windows/profile")" \
	'64001 600'

# The injecting child has the rights that it needs, and no filter: under a filter, the kernel would
# not show it the filters of the target, which a container has.
put_under_filter()
{
	local pid held under=("$FBT_BUILD/tests/live_inject_seccomp" docker --)

	# Our own descriptor holds its input open: a process substitution would leave a process.
	mkfifo "$TMP/input"
	exec {held}<>"$TMP/input"
	env FERRUM_CUPTI_LIBRARY="$FBT_BUILD/tests/libcupti.so.13" "${under[@]}" \
		"$FBT_BUILD/tests/gpu_engine" --steps 0 --script k50,h20,z1000,s \
		>"$TMP/engine" 2>&1 7>&- {held}>&- <"$TMP/input" &
	pid=$!
	wait_for 60 grep -q 'libcuda[.]so' "/proc/$pid/maps"
	is 'inject: the engine has a filter' "$(status "$pid" Seccomp)" 2
	rm -f "${OUT:?}".*
	run_tool -p "$pid" --step gpu_engine_step --gpu=inject
	broker_has inject "dac_override dac_read_search ipc_lock sys_ptrace sys_admin sys_nice perfmon bpf \
checkpoint_restore" 0
	holds 'inject: the shim was put there' said 'shim injected through' 1
	stop_tool
	unrefused inject
	kill -9 "$pid"
	exec {held}>&-
}
injects=()
if [ "$(uname -m)" = x86_64 ] && [ -e "$FBT_BUILD/libferrum_cupti.so" ]; then
	injects=(--gpu=inject)
	[ "$FILTERED" != 2 ] || put_under_filter
fi

# No step: the child that looks for candidates has the rights for that and no more, even if the
# broker has more. It lives for 2 s. The process that stops it for inspection gets a real-time
# priority, if allowed.
# hold_seeker TOOL: prints its id
# shellcheck disable=SC2317,SC2329 # a shell of its own runs it
hold_seeker()
{
	local seen comm pid

	while [ -e "/proc/$1" ]; do
		read -ra seen <"/proc/$1/task/$1/children"
		for pid in "${seen[@]}"; do
			read -r comm <"/proc/$pid/comm"
			[ "$comm" != fbt-candidates ] || { kill -STOP "$pid" && echo "$pid" && return; }
		done
		sleep 0.02
	done 2>/dev/null
}

first=(chrt -f 1)
"${first[@]}" true 2>/dev/null || first=()
rm -f "${OUT:?}".*
# One that only sleeps may look idle.
start_engine --steps 0 --sleep-us 1000 --compute-us 500
run_tool -p "$ENGINE" --step run_engine_never --wait-step "${injects[@]}"
wait_attached "$TOOL"
go
SEEKER=$("${first[@]}" timeout 60 bash -c "$(declare -f hold_seeker); hold_seeker $TOOL")
if [ -n "$SEEKER" ]; then
	is 'no step: capabilities of who looks for candidates' "$(kept "$SEEKER")" "$looks"
	is 'no step: it can gain none, its filter' \
		"$(status "$SEEKER" NoNewPrivs) $(status "$SEEKER" Seccomp)" "1 $FILTERED"
	kill -CONT "$SEEKER"
	holds 'no step: candidates are named, or what other work needs' await_lines 1 \
		"step '.*calls/s|short of CPUs" "$OUT.err"
	stop_tool
else
	not_ok 'no step: somebody looks for candidates'
fi
unrefused 'no step'

# COMMAND has all rights that the tool started with.
rm -f "${OUT:?}".*
run_tool --interval 100 -- grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
end_tool
is 'COMMAND: as without the tool' \
	"$(grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' "$OUT.report")" \
	"$(grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status)"
unrefused COMMAND
finish
