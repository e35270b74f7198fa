#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Steps that call themselves, and steps that an exception leaves.
. "$(dirname "$0")/lib.sh"

trace_engine '--steps 53 --recurse 4 --sleep-us 200'
check_truth recursion
fact 'recursion: a step holds the calls of all levels' 'all(s["by"] == T["per_step"] for s in S)'
fact 'recursion: the outermost call is the step' 'all(s["end"] == "return" for s in S)'

# The last step returns, so each panicked step is closed by the next begin.
trace_engine '--steps 71 --panic-every 7 --sleep-us 200'
fact 'panics: as many steps as the engine made' 'len(S) == T["steps"]'
fact 'panics: as many unwound as it left by longjmp' \
	'len([s for s in S if s["end"] == "unwound"]) == T["panics"]'
fact 'panics: the others hold exactly their calls' \
	'all(s["by"] == T["per_step"] for s in S if s["end"] == "return")'
fact 'panics: the table stays exact' 'near(table, T, "calls")'
holds 'panics: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

trace_engine '--steps 40 --recurse 3 --panic-every 5 --sleep-us 200'
fact 'both: as many steps as the engine made' 'len(S) == T["steps"]'
fact 'both: as many not returned from as it left by longjmp' \
	'len([s for s in S if s["end"] != "return"]) == T["panics"]'
is 'both: the engine ended as it wanted' "$(q 'T["panics"]')" 8
finish
