#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --list-steps measures candidates, and points out a step function that is never called.
. "$(dirname "$0")/lib.sh"

start_engine --steps 0 --sleep-us 2000
"$FBT" --list-steps -p "$ENGINE" >"$TMP/list" 2>"$TMP/err" </dev/null
has 'an engine that waits: no candidate was called' "$TMP/list" '^none of these [0-9]+ was called:'
go
env --default-signal=INT "$FBT" --list-steps -p "$ENGINE" >"$TMP/list" 2>"$TMP/err" </dev/null
is 'it exits with 0' $? 0
has 'it names the step function' "$TMP/list" engine_step
rate=$(grep engine_step "$TMP/list" | head -1 | grep -oE '[0-9]+(\.[0-9]+)?' | head -1)
echo "# $(grep engine_step "$TMP/list" | head -1)"
holds "it measured calls ($rate)" [ "${rate%.*}" -gt 0 ]
has 'it says how long they took, and where they end' "$TMP/list" \
	' [0-9]+\.[0-9]{3} ms  [0-9]+ (exit|call site)s? +engine_step '
holds 'the engine goes on' kill -0 "$ENGINE"

# Only busy threads are searched for candidates.
start_engine --steps 0 --compute-us 1000 --sleep-us 1000
go
run_tool -p "$ENGINE" --step main
await_lines 1 'engine_step|short of CPUs' "$OUT.err"
stop_tool
has 'no step in 5 s: it says so' "$OUT.err" '[Nn]o step'
has 'and names the busiest candidate, unless other work needs the CPUs' "$OUT.err" \
	'engine_step|short of CPUs'
finish
