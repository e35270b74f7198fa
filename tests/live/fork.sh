#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Children of the target, with --follow and without.
. "$(dirname "$0")/lib.sh"

trace_engine '--steps 60 --fork-every 6 --sleep-us 500'
fact 'without -f: the steps of the parent only' 'len(S) == T["steps"]'
fact 'without -f: one process' 'len(tables) == 1 and W["targets"] == 1'
fact 'without -f: its table is exact' \
	'near(table, T, "calls")'

trace_engine '--steps 60 --fork-every 6 --sleep-us 500' -f
fact '-f: the children'"'"'s steps too' 'len(S) == T["steps"] + T["children"] and T["children"] == 10'
fact '-f: each step alike, in parent and child' 'all(s["by"] == T["per_step"] for s in S)'
fact '-f: a table for each process' 'len(tables) == 1 + T["children"]'
fact '-f: the parent'"'"'s is as without' \
	'near(tables[T["pid"]], T, "calls")'
fact '-f: children know their parent' \
	'[p["parent_pid"] for p in R["processes"] if p["pid"] != T["pid"]] == [T["pid"]] * 10'
holds '-f: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

# A child that exists before the tool attaches.
sh -c '"$0" --steps 0 --sleep-us 500 & echo $!; wait' "$FBT_ENGINE" >"$TMP/child" &
parent=$!
for _ in $(seq 1500); do
	child=$(cat "$TMP/child")
	[ "$(readlink "/proc/$child/exe")" = "$FBT_ENGINE" ] && break
	sleep 0.02
done
run_tool -p $parent -f --step engine_step -n 50
end_tool 0 '-f: attaches to a parent whose child has the step'
fact '-f: steps of a child that was there before' "len([s for s in S if s['pid'] == $child]) >= 50"
kill "$child"
finish
