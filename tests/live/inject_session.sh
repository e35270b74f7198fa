#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --gpu=inject in various sessions: refusals are reported and the rest continues; processes that
# end, call execve or fork; CUDA that is loaded later; Ctrl-C; --dry-run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"
. "$(dirname "$0")/inject/gpu.sh"

# Two processes at once are injected one after the other.
start_plain --steps 0 --script $script
go
first=$ENGINE
start_plain --steps 0 --script $script
go
rm -f "${OUT:?}".*
run_tool -p "$first,$ENGINE" --step gpu_engine_step --gpu=inject
holds 'two: the first' wait_for 60 has_shim "$first"
holds 'two: the second' wait_for 60 has_shim "$ENGINE"
await_armed
ENGINE=$first await_armed
stop_tool
fact 'two: both have records' '[p["status"] for p in R["gpu_processes"]] == ["ended", "ended"]'
end_gpu
ENGINE=$first end_gpu

# A COMMAND gets the shim by its environment, and nothing is injected.
env FERRUM_CUPTI_LIBRARY="$FAKES/$CUPTI" "$FBT" --gpu=inject --step gpu_engine_step --trace none \
	--profile "$TMP/command.jsonl" --report none -- "$GPU_ENGINE" --steps 3000 --script $script \
	2>"$OUT.err"
is 'command: nothing is injected' "$? $(grep -c "$put" "$OUT.err")" '0 0'
holds 'command: it has GPU records' grep -q '"event":"gpu_prof"' "$TMP/command.jsonl"

# refused NAME REGEX TOOL-OPTION…: $ENGINE was prepared before and makes 30 steps
refused()
{
	local name=$1 why=$2

	shift 2
	"$FBT" --gpu=inject --dry-run -p "$ENGINE" >"$TMP/dry" 2>&1
	dry=$?
	rm -f "${OUT:?}".*
	run_tool -p "$ENGINE" --step gpu_engine_step --gpu=inject "$@"
	wait_attached "$TOOL" || not_ok "$name: the tool attaches"
	holds "$name: a warning" wait_for 60 says 'GPU records are off'
	[ "$name" = descriptors ] && prlimit --pid "$ENGINE" --nofile=1024:
	go
	wait_for 60 is_done || not_ok "$name: the engine makes its steps"
	stop_tool
	is "$name: one line" "$(grep -c 'GPU records' "$OUT.err")" 1
	has "$name: why" "$OUT.err" "GPU records.*$why"
	fact "$name: the report has it" 'R["gpu_processes"][0]["status"] == "not_injected" and
		len(R["gpu_processes"][0]["detail"]) > 5'
	fact "$name: the profile has it" 'W["gpu_status"] == "not_injected"'
	fact "$name: steps are there" 'len(S) >= 30'
	is "$name: no shim" "$(shims "$ENGINE")" 0
	"$FBT" --replay "$OUT.capture" --trace none --profile none >"$TMP/text" 2>&1
	has "$name: in words" "$TMP/text" 'no GPU records: the shim was not injected'
}

start_plain --linger-ms 60000 --steps 30 --script $script
prlimit --pid "$ENGINE" --nofile=4:
refused descriptors RLIMIT_NOFILE --record "$OUT.capture"
is 'descriptors: a dry run says it' "$dry $(grep -c RLIMIT_NOFILE "$TMP/dry")" '1 2'
end_gpu

start_plain --linger-ms 60000 --steps 30 --script $script
python3 -c '
import ctypes, signal, sys
if ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0:  # PTRACE_SEIZE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print("seized", flush=True)
    signal.pause()' "$ENGINE" >"$TMP/seized" &
tracer=$!
holds 'tracer: it has seized the engine' wait_for 60 grep -q seized "$TMP/seized"
refused tracer tracer --record "$OUT.capture"
is 'tracer: a dry run says it' "$dry $(grep -c "$tracer" "$TMP/dry")" '1 2'
kill $tracer
wait $tracer
end_gpu

# The engine's thread never waits, so there is no thread to interrupt.
start_plain --linger-ms 60000 --steps 0 --sleep-us 0 --script u1000
go
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step gpu_engine_step --gpu=inject --inject-timeout 1
holds 'busy: a warning' wait_for 60 says 'the shim was not injected'
stop_tool
fact 'busy: the report has it' 'R["gpu_processes"][0]["status"] == "not_injected"'
# Ctrl-C while the tool looks for a thread: an injection that has begun is finished.
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step gpu_engine_step --gpu=inject --inject-timeout 15
wait_attached "$TOOL"
stop_tool
fact 'Ctrl-C: and says so' '(R["gpu_processes"][0]["status"], R["gpu_processes"][0]["detail"]) ==
	("not_injected", "the window ended first")'
holds 'Ctrl-C: the engine goes on' kill -0 "$ENGINE"
# The target is killed while the tool looks for a thread.
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step gpu_engine_step --gpu=inject --inject-timeout 60
wait_attached "$TOOL"
sleep 0.2
kill -9 "$ENGINE"
wait "$ENGINE" 2>/dev/null
end_tool 0 'killed: the tool ends with 0'
fact 'killed: before its time is up' 'R["window_ns"] < 60 * 10**9'
holds 'killed: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

# shellcheck disable=SC2317
has_worked()
{
	[ "$(awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$ENGINE/stat")" -ge 5 ]
}

# The target ends at various moments, which must not disturb the tool.
for delay in 0 0.005 0.02; do
	start_plain --steps 0 --script $script
	go
	wait_for 60 has_worked
	rm -f "${OUT:?}".*
	run_tool -p "$ENGINE" --step gpu_engine_step --gpu=inject
	wait_attached "$TOOL" || not_ok 'ends: the tool attaches'
	sleep "$delay"
	kill -9 "$ENGINE"
	wait "$ENGINE" 2>/dev/null
	end_tool 0 "ends: the tool ends with 0 ($delay)"
done

# injections COUNT: that many were reported
# shellcheck disable=SC2317
injections()
{
	[ "$(grep -c "process $pid: $put" "$OUT.err")" -ge "$1" ]
}

# execve: the next program is injected again. The signal ends the rest of this program and of the
# next.
start_plain --steps 400 --linger-ms 120000 --exec --sleep-us 1000 --script $script
go
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step gpu_engine_step --gpu=inject
pid=$ENGINE
for count in 1 2; do
	wait_for 60 injections $count
	kill -TERM "$ENGINE"
done
wait "$ENGINE" 2>/dev/null
is 'execve: the engine ends as it wants' $? 0
end_tool
is 'execve: each program once' "$(grep -c "process $pid: $put" "$OUT.err")" 2

# Forked children have libcuda mapped but do not use it.
start_plain --linger-ms 60000 --steps 200 --fork-every 20 --script $script
attach_inject 1 -f
go
wait_for 60 is_done
sleep 0.1
stop_tool
end_gpu
is 'forks: one injection' "$(grep -c "$put" "$OUT.err") $(grep -c 'GPU records are off' "$OUT.err")" \
	'1 0'

# CUDA is loaded later, and in a child that is followed.
cat >"$TMP/later.py" <<'END'
import ctypes, os, sys, time
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    cuda = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
    loaded = time.monotonic()
    cuda.cuInit(0)
    while not any("memfd:libferrum.so" in line for line in open("/proc/self/maps")):
        time.sleep(0.001)
    print(time.monotonic() - loaded, flush=True)
    time.sleep(5)
    os._exit(0)
os.wait()
END
mkfifo "$TMP/later"
env FERRUM_CUPTI_LIBRARY="$FAKES/$CUPTI" python3 -S "$TMP/later.py" "$FAKES/libcuda.so.1" \
	<"$TMP/later" >"$TMP/later.out" &
parent=$!
exec 8>"$TMP/later"
holds 'later: the child is there' wait_for 60 grep -q . "$TMP/later.out"
rm -f "${OUT:?}".*
run_tool -p $parent -f --gpu=inject
wait_attached "$TOOL"
sleep 0.5
echo >&8
exec 8>&-
wait $parent
end_tool
is 'later: the child is injected' "$(grep -c "process $(head -1 "$TMP/later.out"): $put" "$OUT.err")" 1
# shellcheck disable=SC2016
holds 'later: not before cuInit is over' \
	awk 'NR == 2 { exit !($1 >= 2) }' "$TMP/later.out"

# Messages for a dry run and for wrong options.
sleep 60 &
sleeper=$!
"$FBT" --gpu=inject --dry-run -p $sleeper >"$TMP/dry" 2>&1
is 'dry run: nothing to trace, its last word' \
	"$? $(tail -n 1 "$TMP/dry" | grep -c CUDA)" '1 1'
start_plain --linger-ms 60000 --steps 0
"$FBT" --gpu=inject --dry-run -p "$ENGINE" >"$TMP/dry" 2>&1
is 'dry run: it would be done' "$? $(tail -1 "$TMP/dry")" '0 --gpu=inject would load the shim'
is 'dry run: nothing was done' "$(shims "$ENGINE")" 0
"$FBT" --gpu=inject --dry-run -p "$ENGINE,$sleeper" >"$TMP/dry" 2>&1
is 'dry run: of two, one is refused' "$? $(grep -c ^process "$TMP/dry")" '1 2'
"$FBT" --gpu=inject --dry-run -p 4194304 >"$TMP/dry" 2>&1
is 'dry run: no such process' $? 1
for options in '--dry-run -p 1' '--inject-timeout 5 -p 1' '--gpu=inject --dry-run -a'; do
	# shellcheck disable=SC2086
	"$FBT" $options >"$TMP/dry" 2>&1
	is "usage: $options" "$? $(wc -l <"$TMP/dry")" '2 1'
done
mkdir "$TMP/alone"
cp "$FBT" "$TMP/alone"
"$TMP/alone/$(basename "$FBT")" --gpu=inject -p "$ENGINE" --step gpu_engine_step >"$TMP/dry" 2>&1
is 'not installed: one line' "$? $(grep -c 'libferrum_cupti.so is not beside' "$TMP/dry")" '1 1'
"$TMP/alone/$(basename "$FBT")" --gpu=inject --dry-run -p "$ENGINE" >"$TMP/dry" 2>&1
is 'not installed: a dry run' "$? $(grep -c 'libferrum_cupti.so is not beside' "$TMP/dry")" '1 1'
go
end_gpu
finish
