#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A run has one trace of all its processes, in each format, with their names and valid: -p A,B, -f with
# children that make steps, and -a.
. "$(dirname "$0")/lib.sh"

work=$TMP/one
mkdir "$work"

# engines: two of them, under different names; the second one has children that make a step
engines()
{
	# A name of its own for each, so that names are not mixed up.
	ln -sf "$(realpath "$FBT_ENGINE")" "$work/first"
	ln -sf "$(realpath "$FBT_ENGINE")" "$work/second"
	"$work/first" --steps 0 --compute-us 500 >/dev/null 2>&1 7>&- &
	A=$!
	"$work/second" --steps 0 --compute-us 700 --fork-every 20 >/dev/null 2>&1 7>&- &
	B=$!
}

# shellcheck disable=SC2317 # called by holds
quietly()
{
	"$FBT" "$@" >"$work/table"
}

# check CASE PID…: each is in the trace of each format, of a recording
check()
{
	local case=$1 format name=t.json

	shift
	for format in ferrum kineto perfetto; do
		[ $format = perfetto ] && name=t.pftrace
		"$FBT" --replay "$work/capture" --report none --profile none --trace-format $format \
			--trace "$work/$name" >/dev/null 2>&1
		holds "$case, $format: it is valid" quietly validate "$work/$name"
		# What merge reads of it, in one form: itself and itself.
		cp "$work/$name" "$work/pid1_1764108000000.$name"
		cp "$work/$name" "$work/pid2_1764108000000.$name"
		holds "$case, $format: it is read" quietly merge "$work"/pid[12]_1764108000000."$name" -o "$work/out.json"
		python3 - "$work/out.json" "$case, $format" "$A" "$B" "$@" <<-'CODE' || FAILED=1
			import json, sys
			out, case, first, second, *wanted = sys.argv[1:]
			events = json.load(open(out))["traceEvents"]
			steps = {str(e["pid"]) for e in events if e["ph"] == "X" and (e["cat"] == "step" or
			         e["name"].startswith("ProfilerStep#"))}
			names = {str(e["pid"]): e["args"]["name"] for e in events
			         if e["ph"] == "M" and e["name"] == "process_name"}
			failed = False
			def fact(name, is_true, *figures):
			    global failed
			    failed |= not is_true
			    print("ok -" if is_true else "not ok -", f"{case}: {name}", *(() if is_true else figures))
			fact("each process has steps in it", set(wanted) <= steps, wanted, steps)
			own = {pid for pid in steps if int(pid) < 2000000000}
			if "children" in case:
			    fact("children too", len(own) > len(wanted), own)
			elif "-p" in case:
			    fact("and nobody else's", own == set(wanted), own)
			if "ferrum" not in case:
			    fact("their names are right", "first" in names.get(first, "") and "second" in names.get(second, ""),
			         names)
			sys.exit(failed)
		CODE
	done
}

# shellcheck disable=SC2317 # called by holds
record()
{
	rm -f "$work/capture"
	"$FBT" "$@" --step engine_step -d 3 --report none --profile none --trace none --rate-guard 0 \
		--record "$work/capture" >"$work/err" 2>&1
}

engines
holds 'two processes are traced' record -p "$A,$B"
check '-p A,B' "$A" "$B"
holds 'two processes and their children are traced' record -f -p "$A,$B"
check '-f -p A,B with children' "$A" "$B"
holds 'all processes are traced' record -a
check '-a' "$A" "$B"
kill "$A" "$B"
finish
