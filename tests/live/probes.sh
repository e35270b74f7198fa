#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --detail probes: each step has its true length, and nothing about system calls. No program is
# attached to them, and no output has a figure about them, not even 0.
. "$(dirname "$0")/lib.sh"

bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)

# links_of PID: what the tool's links are attached to
links_of()
{
	for file in "/proc/$1/fdinfo/"*; do
		sed -n 's/^link_id:[[:space:]]*//p' "$file" 2>/dev/null
	done | sort -u | while read -r id; do "$bpftool" link show id "$id" 2>/dev/null; done
}

# programs_of PID: names of the programs that the tool has loaded
programs_of()
{
	for file in "/proc/$1/fdinfo/"*; do
		sed -n 's/^prog_id:[[:space:]]*//p' "$file" 2>/dev/null
	done | sort -u | while read -r id; do "$bpftool" prog show id "$id" 2>/dev/null; done
}

# The words that outputs use for calls. other_threads_cpu and "probes" are not among them, nor is
# the tool's own cost.
words='mmap|futex|ioctl|"read|"write|"other("|_[^t])|syscall|errors|compute|dominant|overhead_percent|max_call|lost_call'

start_engine --steps 300 --compute-us 1000 --steady --noise 2 --noise-us 20 --sleep-us 200 \
	--slow-futex-every 50
attach --detail probes "${calm[@]}" --record "$OUT.fbt"
if "$bpftool" version >/dev/null 2>&1; then
	links_of "$TOOL" >"$TMP/links"
	programs_of "$TOOL" >"$TMP/programs"
	holds 'it has links' [ -s "$TMP/links" ]
	has 'its programs are known' "$TMP/programs" handle_step
	holds 'no program for system calls is loaded' [ "$(grep -c handle_sys "$TMP/programs")" = 0 ]
	is 'none is attached to one' "$(grep -cE 'sys_(enter|exit)' "$TMP/links")" 0
else
	echo 'SKIP its links: there is no bpftool'
fi
go
wait "$ENGINE"
end_tool
fact 'as many steps as the engine made' 'len(S) == T["steps"] == 300'
fact 'no step is longer than the engine found, nor shorter than its work' \
	'all(work <= s["us"]["total"] <= ns / 1000 + 1
		for s, (_, ns, work) in zip(S, T["threads"][0]["spans_ns"]))'
fact 'all are complete, and nothing is lost' \
	'W["incomplete_steps"] == 0 and lost == 0'
fact 'each says that calls were not traced' 'all(s["calls_traced"] is False for s in S)'
fact 'waits for a CPU and page faults are there' \
	'all("run_delay" in s["us"] and "minor_faults" in s for s in S)'
fact 'time on a CPU, waiting for one and asleep add up' \
	'all(s["us"]["on_cpu"] + s["us"]["cpu_wait"] + s["us"]["asleep"] + s["us"].get("stopped", 0) ==
		s["us"]["total"] for s in S)'
# Except for steps in which the host of a virtual machine took the CPU.
fact 'the computation of a step is on a CPU, or waits for one' \
	'sum(work - 100 <= s["us"]["on_cpu"] + s["us"]["cpu_wait"]
		for s, (_, _, work) in zip(S, T["threads"][0]["spans_ns"])) >= 270'
fact 'its long waits are asleep' 'sum(s["us"]["asleep"] >= 15000 for s in S) >= 6'
fact 'most steps do not sleep' 'sum(s["us"]["asleep"] < 1000 for s in S) >= 270'
fact 'the gaps are, but for the first' '[n for n, s in enumerate(S, 1) if "gap" not in s["us"]] == [1]'
fact 'the window says how it was made' 'W["detail"] == R["detail"] == "probes"'
fact 'a call costs nothing, and a step something' \
	'not {"per_call_ps", "calls", "floor_ns"} & set(R["cost"]) and R["cost"]["per_step_ns"] > 0 and
		R["cost"]["added_by_steps_ns"] > 0'
fact 'the profile has no other lines' '{e["event"] for e in E} == {"step_prof", "window_prof"}'
fact 'the trace has steps only' '{x["cat"] for x in X} == {"step"}'
for output in profile trace report; do
	# The engine's command line contains such words.
	sed 's/"cmdline":"[^"]*"//' "$OUT.$output" | grep -oE "[^,]*($words)[^,]*" | sort | uniq -c |
		sed 's/^/# /' >"$TMP/words"
	head -5 "$TMP/words"
	holds "no word of calls: $output" [ ! -s "$TMP/words" ]
done
holds 'outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

# A replay of the recording gives the same.
"$FBT" --replay "$OUT.fbt" "${calm[@]}" --trace "$TMP/again.trace" --profile "$TMP/again.profile" \
	--report json >"$TMP/again.report" 2>/dev/null
holds 'replay: the same trace' cmp "$OUT.trace" "$TMP/again.trace"
"$FBT" --replay "$OUT.fbt" "${calm[@]}" --trace none --profile none >"$TMP/text" 2>/dev/null
has 'replay: the report says that calls are missing' <(tr -s '\n ' '  ' <"$TMP/text") \
	'system calls not traced'
sed '/^Target/,/^Step function/d' "$TMP/text" >"$TMP/rows"
is 'replay: and has no row of them' "$(grep -cE 'compute|futex|all calls|Syscalls of' "$TMP/rows")" 0

# A forked process has steps of its own, and the steps of threads are told apart.
trace_engine '--steps 40 --step-threads 3 --fork-every 10' -f --detail probes "${calm[@]}"
fact 'threads and children: as many steps as the engine made' 'len(S) == T["steps"] + T["children"]'
fact 'threads and children: no step is lost' 'W["lost_steps"] == W["lost_begins"] == W["lost_threads"] == 0'

# Uses without anything to measure: one line each.
start_engine --steps 0 --sleep-us 2000
go
"$FBT" -p "$ENGINE" -d 0.2 --detail probes --trace none --profile none >/dev/null 2>"$TMP/err"
is 'no step function: it does not start' $? 1
is 'no step function: one line' "$(grep -c . "$TMP/err")" 1
has 'no step function: what to do' "$TMP/err" '--step.*--list-steps'
"$FBT" -p "$ENGINE" -d 0.2 --detail probes --interval 100 >/dev/null 2>"$TMP/err"
is 'with --interval: usage' "$? $(grep -c . "$TMP/err")" '2 1'
"$FBT" -p "$ENGINE" -d 0.2 --step nothing_yet --wait-step --detail probes --trace none \
	--profile none --report json >"$OUT.report" 2>"$OUT.err"
is 'waiting for a step: it runs' $? 0
fact 'waiting for a step: no interval stands in' 'R["steps"] == 0 and R["interval_ns"] == 0'
kill "$ENGINE"
finish
