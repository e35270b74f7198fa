#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The Python steps of a process that a tracer has already: its functions are armed once, and a second
# tracer, by hand or of watch, has the same steps with --python=share, and no others.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

DIR=$TMP/dumps LOG=$TMP/watch.log
step='py:vllm.v1.worker.gpu_model_runner:GPUModelRunner.execute_model'
numbers='(n_tokens=scheduler_output.total_num_scheduled_tokens,n_requests=len(scheduler_output.num_scheduled_tokens))'

# await_log COUNT REGEX: lines of watch
await_log()
{
	local tries=9000

	until [ "$(grep -cE -- "$2" "$LOG")" -ge "$1" ]; do
		if [ $((tries -= 1)) = 0 ] || ! kill -0 "$WATCH" 2>/dev/null; then
			sed 's/^/# /' "$LOG"
			return 1
		fi
		sleep 0.02
	done
}

# share OPTION…: a second tracer by hand, for two seconds
share()
{
	rm -f "${OUT:?}".*
	"$FBT" -p "$ENGINE" -d 2 --report json --trace "$OUT.trace" --profile "$OUT.profile" --rate-guard 0 "$@" \
		>"$OUT.report" 2>"$OUT.err"
	STATUS=$?
}

# kinds_of FILE: the step functions of a profile with the numbers of their steps, if there are many
kinds_of()
{
	gzip -dcf "$1" 2>/dev/null | python3 -c 'import collections, json, sys
kinds = collections.Counter(json.loads(line)["shape"]["kind"] for line in sys.stdin if "\"step_prof\"" in line)
print(*sorted(kind for kind, count in kinds.items() if count > 100))'
}

both='EngineCore.step GPUModelRunner.execute_model'
start_waiting /usr/bin/python3 tests/live/python/engine.py "$TMP/truth.json" 1000000
cat >"$TMP/watch.conf" <<END
pid = $ENGINE
python = inject
dir = $DIR
after = 1s
calls = 2s
sample = 0
rate-guard = 0
END
"$FBT" watch --config "$TMP/watch.conf" 2>"$LOG" </dev/null &
WATCH=$!
await_log 1 "^watching $ENGINE "
is 'the engine is watched' $? 0
go

share --python=share
is 'by hand: it ends with 0' $STATUS 0
is 'by hand: it has the steps of both functions' "$(kinds_of "$OUT.profile")" "$both"
fact 'by hand: with their numbers' \
	'any(s["arg.n_tokens"] > 3 for s in S if s["kind"] == "GPUModelRunner.execute_model")'
fact 'by hand: with their system calls' \
	'all(s["by"]["other"]["calls"] == 2 for s in S[1:-1] if s["kind"] == "GPUModelRunner.execute_model")'
share --python=share --step "$step$numbers"
is 'a step by its name: it ends with 0' $STATUS 0
is 'a step by its name: it has its steps only' "$(kinds_of "$OUT.profile")" GPUModelRunner.execute_model
is 'a step by its name: nothing is said against it' "$(grep -c "py:.*execute_model" "$OUT.err")" 0
share --python=share --step "$step(x=scheduler_output.total_num_scheduled_tokens)"
is 'other numbers: nothing is armed with them' "$STATUS" 1
has 'other numbers: that is said' "$OUT.err" 'execute_model: not armed by the other tracer'
is 'other numbers: nothing else is' "$(grep -c 'no such Python function' "$OUT.err")" 0
share
has 'without it: another tracer has them' "$OUT.err" 'steps of another tracer'

kill -USR1 $WATCH
await_log 1 'dump .*_manual_calls\.\*'
is 'watch: system calls are traced' $? 0
is 'watch: the dump has all steps' "$(kinds_of "$DIR"/*_manual.jsonl.gz)" "$both"
is 'watch: and so has the capture with system calls' "$(kinds_of "$DIR"/*_manual_calls.jsonl.gz)" "$both"
is 'watch: its own tracer was left alone' "$(grep -cE 'another tracer|started again|missing' "$LOG")" 0
# In the middle of a window of the second tracer.
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --python=share
wait_attached "$TOOL"
await_steps 100
kill -TERM $WATCH
wait $WATCH
is 'watch: it ends with 0' $? 0
holds 'the first tracer ends: that is said' await_lines 1 'steps are missing from now on' "$OUT.err"
stop_tool
is 'the first tracer ends: once' "$(grep -c 'steps are missing' "$OUT.err")" 1
share --python=share
has 'nobody else: that is said' "$OUT.err" 'no other tracer has Python functions'
kill -KILL "$ENGINE"
wait "$ENGINE" 2>/dev/null
finish
