#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A step function in a library that is loaded after the tool has attached.
. "$(dirname "$0")/lib.sh"

"${CC:-gcc}" -shared -fPIC -O2 -o "$TMP/liblate.so" tests/fake/late_step.c
# The library is loaded after 1.5 s. The tool looks for it once a second.
start_engine --late "$TMP/liblate.so" --late-ms 1500 --steps 0 --sleep-us 1000
run_tool -p "$ENGINE" --step late_step --wait-step
wait_attached "$TOOL"
go
await_lines 25 '"event":"step_prof".*"kind":"late_step"' "$OUT.profile"
kill -TERM "$ENGINE"
wait "$ENGINE"
end_tool
# Until then steps are intervals.
found='[s for s in S if s["kind"] == "late_step"]'
fact 'steps of a late library are seen' "25 <= len($found) <= T['steps']"
# The signal may have come in the last step; its handler returns by a call.
fact 'and their calls are exact' "all(s['by'] == T['per_step'] for s in ($found)[:-1])"
fact 'what came before says that it is an interval' \
	'{s["step_source"] for s in S if s["kind"] != "late_step"} == {"interval"}'
has 'and the tool says when it finds it' "$OUT.err" 'found'
has 'and what it has missed' "$OUT.err" 'its calls in the second before were not traced'
holds 'outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

run_tool -p $$ --step no_such_function
end_tool 1 'without --wait-step a function that is nowhere is an error'
has 'and it is named' "$OUT.err" no_such_function
finish
