#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Processes that become a Python engine while the window is open: a worker that begins, one that is
# restarted again and again, modules that are loaded late. From the first traced step on, each step that
# they make is one.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

# await_truth NAME: until the engine has written its account, which it does before its end
await_truth()
{
	await_file "$TMP/truth.json" "$ENGINE" || not_ok "$1: the engine writes its account"
}

# run_late NAME WORKERS TOOL-OPTION…: each worker goes on until some steps of it are traced. preload: a
# library that is there from the start; PYTHON: another interpreter
run_late()
{
	local workers=$2 n

	NAME=$1
	shift 2
	rm -f "${OUT:?}".* "$TMP/truth.json.stop"
	start_waiting env ${preload:+LD_PRELOAD="$preload"} "${PYTHON:-/usr/bin/python3}" tests/live/python/late.py \
		"$TMP/truth.json" "$workers"
	run_tool -p "$ENGINE" "$@"
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok "$NAME: the tool attaches"; }
	echo >&7
	if [ -n "${COLLECTS:-}" ]; then
		holds "$NAME: the probes of collections are removed" await_lines 1 "$dear" "$OUT.err"
		echo >&7
	fi
	for ((n = 1; n <= (workers ? workers : 1); n++)); do
		await_lines "$n" 'since the trace began' "$OUT.err" || not_ok "$NAME: worker $n is found"
		pid=$(grep -E 'since the trace began' "$OUT.err" | sed -n "${n}s/.*process \([0-9]*\) .*/\1/p")
		await_steps "${STEPS:-50}" "$pid" || not_ok "$NAME: worker $n has steps"
		LINKS[n]=$(count_links "$TOOL")
		echo "$n" >"$TMP/truth.json.stop"
	done
	await_truth "$NAME"
	exec 7>&-
	wait "$ENGINE"
	is "$NAME: the engine ends as ever" $? 0
	end_tool
	[ -z "${SHOW:-}" ] || cat "$OUT.err" "$OUT.report"
}

dear='collections are not measured any more'

# With the first seen step of a worker all that follow.
check_late()
{
	fact "$NAME: no step is missing once they are traced" \
		'all(sorted(n) == list(range(min(n), w["steps"] + 1)) for w, n in
			((w, [s["arg.n_tokens"] for s in S if s["pid"] == w["pid"] and s["kind"] != "interval"])
			for w in T))'
	fact "$NAME: they are the worker'\''s function, and nothing else" \
		'{s["kind"] for s in S if s["kind"] != "interval"} == {"GPUModelRunner.execute_model"} and
		 {s["pid"] for s in S if s["kind"] != "interval"} == {w["pid"] for w in T}'
	fact "$NAME: nothing lost" 'lost == 0'
	holds "$NAME: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

preload='' run_late 'a restarted worker, injected' 3 --python=inject
check_late
is "$NAME: the library is put into each" "$(grep -c 'libferrum_python.so injected' "$OUT.err")" 4
# Each worker has a file of its own, in which probes cover all processes.
preload='' run_late 'with -f, injected' 3 --python=inject -f --explain off
check_late
is "$NAME: the probes of a worker go with it" "${LINKS[3]}" "${LINKS[2]}"
preload=$LIBRARY run_late 'started with the library' 2
check_late
# Its page is found where it is mapped, and opened by the broker.
preload=$LIBRARY CLOSES=1 run_late 'a worker that closes all of its descriptors' 1
check_late
preload='' run_late 'modules that are loaded late' 0 --python=inject
check_late

# Steps of some seconds: each second it is looked whether the probes cost too much, and that is said.
preload='' COLLECTS=1 STEPS=600 RATE_GUARD=1 run_late 'a worker that collects' 1 --python=inject
is "$NAME: once removed, the probes are not set in it again" "$(grep -c "$dear" "$OUT.err")" 1
fact "$NAME: the report says so of both" \
	'[p["python"]["collections"] for p in R["processes"] if "python" in p] == ["off"] * 2'
# The launcher has no step, and its only worker ends: the tool, which may not signal it, waits for the next.
rm -f "${OUT:?}".* "$TMP/truth.json.stop" "$TMP/truth.json.begun"
chmod 1777 "$TMP"
start_waiting setpriv --reuid 65534 --regid 65534 --clear-groups env "LD_PRELOAD=$LIBRARY" BEGINS=1 \
	/usr/bin/python3 tests/live/python/late.py "$TMP/truth.json" 2
run_tool -p "$ENGINE"
wait_attached "$TOOL"
holds 'a launcher without a step is not traced' grep -q 'has no step, so it is not traced' "$OUT.err"
echo >&7
echo 1 >"$TMP/truth.json.stop"
holds 'the next worker of a launcher of another user is found' await_lines 1 'since the trace began' "$OUT.err"
echo 2 >"$TMP/truth.json.stop"
await_truth 'a launcher of another user'
exec 7>&-
wait "$ENGINE"
end_tool

# Nearly all of the time the probes are off: they are set in a process that came meanwhile, too.
rm -f "${OUT:?}".* "$TMP"/truth.json.*
LD_PRELOAD=$LIBRARY /usr/bin/python3 tests/live/python/late.py "$TMP/other" worker 1 >"$TMP/steps" &
other=$!
wait_for 60 [ -e "$TMP/other.begun" ]
start_waiting /usr/bin/python3 tests/live/python/late.py "$TMP/truth.json" 1
RATE_GUARD=0.1 run_tool -p "$ENGINE,$other" -f --python=inject
wait_attached "$TOOL"
holds 'a function is sampled' await_lines 1 'its steps are a sample' "$OUT.err"
echo >&7
await_lines 1 'since the trace began' "$OUT.err"
pid=$(sed -n 's/.*process \([0-9]*\) .*since the trace began.*/\1/p' "$OUT.err" | head -n 1)
holds 'it is sampled in a worker that has come meanwhile' await_steps 3 "$pid"
echo 1 | tee "$TMP/other.stop" >"$TMP/truth.json.stop"
await_truth 'beside a sample'
exec 7>&-
wait "$ENGINE" "$other"
end_tool

# count_reads PID: how often it and its children have read something
count_reads()
{
	local pid

	for pid in "$1" $(pgrep -P "$1"); do
		sed -n 's/^syscr: //p' "/proc/$pid/io"
	done | awk '{ sum += $1 } END { print sum }'
}

# One that is stopped does not answer: in each turn only its page is looked at, not its files in /proc.
rm -f "${OUT:?}".* "$TMP/truth.json.stop"
start_waiting env "LD_PRELOAD=$LIBRARY" /usr/bin/python3 tests/live/python/late.py "$TMP/truth.json" 0
run_tool -p "$ENGINE"
wait_attached "$TOOL"
stop_process "$ENGINE"
sleep 3
before=$(count_reads "$TOOL")
sleep 3
after=$(count_reads "$TOOL")
echo "# $((after - before)) reads in 3 s"
holds 'a stopped process is not read in each turn' [ $((after - before)) -lt 1500 ]
kill -CONT "$ENGINE"
echo 1 >"$TMP/truth.json.stop"
go
wait "$ENGINE"
end_tool
finish
