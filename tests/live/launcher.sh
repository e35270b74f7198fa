#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# -p of a launcher: the child with the engine is named, with the command to use.
. "$(dirname "$0")/lib.sh"

# Two libraries with an engine's name, only the second of which has a step function.
"${CC:-gcc}" -shared -fPIC -O2 -o "$TMP/libllama-none.so" tests/fake/late_step.c
{
	cat tests/fake/late_step.c
	echo 'int llama_decode(int batch); int llama_decode(int batch) { return batch + 1; }'
} >"$TMP/step.c"
"${CC:-gcc}" -shared -fPIC -O2 -o "$TMP/libllama-step.so" "$TMP/step.c"
bash -c 'for library in none step; do
		"$0" --steps 0 --sleep-us 500 --late "$1/libllama-$library.so" --late-ms 1 &
		echo $! >"$1/$library"
	done; wait' "$FBT_ENGINE" "$TMP" &
LAUNCHER=$!
# shellcheck disable=SC2317
has_loaded()
{
	grep -q "libllama-$1.so" "/proc/$(cat "$TMP/$1")/maps"
}
wait_for 60 has_loaded none 2>/dev/null
wait_for 60 has_loaded step 2>/dev/null
NONE=$(cat "$TMP/none") STEP=$(cat "$TMP/step")

run_tool -p "$LAUNCHER"
wait_attached "$TOOL"
await_lines 1 'has no step function|no step was seen' "$OUT.err"
stop_tool
has 'the child that has the engine is named' "$OUT.err" \
	"process $LAUNCHER \(bash\) has no step function, but its child $STEP \([a-z]+\) has: ferrum-bpftrace -p $STEP, or -p $LAUNCHER -f\$"
is 'and nothing else of the launcher' "$(grep -c 'no step was seen' "$OUT.err")" 0

run_tool -p "$LAUNCHER" -f
wait_attached "$TOOL"
await_lines 1 'has no step function, but|no step was seen' "$OUT.err"
stop_tool
is 'with -f it is traced, and not named' "$(grep -c 'has no step function, but' "$OUT.err")" 0

# doctor says so before anything is traced, and -p where it refuses a --step.
"$FBT" doctor "$LAUNCHER" >"$TMP/doctor"
is 'doctor: its steps would be intervals' $? 0
has 'doctor: the child that has the engine is named' <(tr -s ' \n' ' ' <"$TMP/doctor") \
	"child $STEP \([a-z]+\).* ferrum-bpftrace doctor $STEP, then ferrum-bpftrace -p $STEP; "
"$FBT" doctor "$LAUNCHER" --step late_step --step llama_decode >"$TMP/doctor"
is 'doctor: no such step in it' $? 1
has 'doctor: the child that has the function is named' <(tr -s ' \n' ' ' <"$TMP/doctor") \
	"child ($NONE|$STEP) .* ferrum-bpftrace doctor ($NONE|$STEP) --step 'late_step' --step 'llama_decode', "
run_tool -p "$LAUNCHER" --step llama_decode
end_tool 1 'no such step in it: an error'
has 'no such step in it: the child that has it is named' "$OUT.err" \
	"child $STEP \([a-z]+\) of process $LAUNCHER .*: ferrum-bpftrace -p $STEP --step 'llama_decode', or -p $LAUNCHER -f"
# No file of an engine that is known.
run_tool -p "$LAUNCHER" --step engine_step
end_tool 1 'a step of an unknown engine: an error'
has 'a step of an unknown engine: the child is named' "$OUT.err" \
	"child ($NONE|$STEP) .*: ferrum-bpftrace -p ($NONE|$STEP) --step 'engine_step'"
run_tool -p "$LAUNCHER" --step no_such_function
end_tool 1 'a step that is nowhere: an error'
is 'a step that is nowhere: no child is named' "$(grep -c child "$OUT.err")" 0

kill "$NONE" "$STEP"
finish
