#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A real vLLM on the CPU whose worker stalls in the middle of its steps, in five ways, four times each:
# garbage collections, another thread that keeps the GIL, a lock, no CPU, SIGSTOP. Each is a step that is
# named for that, and EngineCore's step, which waits meanwhile, names the worker.
# vllm/stalls/sitecustomize.py makes it stall, and writes down when.
. "$(dirname "$0")/../live/lib.sh"

# shellcheck source=tests/e2e/vllm/lib.sh
. tests/e2e/vllm/lib.sh

[ "$(nproc)" -ge 2 ] || { echo 'SKIP EngineCore needs a CPU beside that of the worker' && exit 77; }

COUNT=4
mkdir "$TMP/stalls"
export FBT_STALLS=$TMP/stalls PYTHONPATH=$PWD/tests/e2e/vllm/stalls

# shellcheck disable=SC2119 # without options of its own
start_server
unset FBT_STALLS PYTHONPATH
ask 4 1 >"$TMP/first"
until [ -s "$TMP/stalls/worker" ]; do sleep 0.02; done
# Its neighbours on this machine are no stall of it. It has one CPU, and EngineCore the others: without a
# CPU is the worker alone.
WORKER=$(cat "$TMP/stalls/worker")
for task in /proc/"$WORKER"/task/*; do
	renice -n -20 -p "${task##*/}"
done >"$TMP/renice" 2>&1
CPU=$(($(nproc) - 1))
{
	taskset -a -p -c $CPU "$WORKER"
	taskset -a -p -c 0-$((CPU - 1)) "$(awk '$1 == "PPid:" { print $2 }' "/proc/$WORKER/status")"
} >"$TMP/pinned" || { not_ok 'each has its CPUs' && finish; }
run_tool -p "$PID" --python=inject
wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches' && finish; }
ask 200 until "$TMP/end" &
LOAD=$!
await_steps 800
python3 tests/e2e/vllm/stalls.py "$TMP/stalls" $COUNT "$TMP/truth.json" "$CPU"
is 'each stall happens' $? 0
touch "$TMP/end"
wait $LOAD
is 'all requests are answered' $? 0
stop_tool

# The steps of the worker that were in the middle of a stall.
within='[(t, [s for s in S if s["pid"] == t["pid"] and s["kind"] == "GPUModelRunner.execute_model" and
	s["start_us"] <= t["begin_us"] - W["epoch_monotonic_us"] < s["start_us"] + s["us"]["total"]]) for t in T]'
echo "# $(q "[(t['kind'], t['end_us'] - t['begin_us'], [(s['us']['total'], H.get(s['step'], {}).get('cause')) for s in found])
	for t, found in $within]")"
fact 'each was long, and in one step' \
	"len(T) == 5 * $COUNT and all(t['end_us'] - t['begin_us'] > 80000 for t in T) and
	 all(len(found) == 1 for t, found in $within)"
for pair in gc:garbage_collection gil:gil lock:lock_contention starved:run_queue stopped:stopped; do
	fact "${pair%:*}: each is named ${pair#*:}" \
		"[H.get(s['step'], {}).get('cause') for t, (s,) in $within if t['kind'] == '${pair%:*}'] ==
		 $COUNT * ['${pair#*:}']"
done
# What EngineCore's step says of the same stall.
says="[(t['kind'], [(H.get(s['step'], {}).get('cause'), H.get(s['step'], {}).get('peer_pid'), H.get(s['step'], {}).get('peer_did'))
	for s in S if s['kind'] == 'EngineCore.step' and
	s['start_us'] <= t['begin_us'] - W['epoch_monotonic_us'] < s['start_us'] + s['us']['total']]) for t in T]"
echo "# EngineCore: $(q "$says")"
# A collection is computing in a step of the worker, which is judged itself: EngineCore's step is right to wait.
fact 'gc: of EngineCore nothing else is said than that the worker computed' \
	"all(len(found) == 1 and found[0] in ((None, None, None), ('peer_process', $WORKER, 'computed'))
		for kind, found in $says if kind == 'gc')"
for pair in lock:asleep starved:no_cpu stopped:stopped; do
	fact "${pair%:*}: EngineCore names the worker, which was ${pair#*:}" \
		"[found for kind, found in $says if kind == '${pair%:*}'] ==
		 $COUNT * [[('peer_process', $WORKER, '${pair#*:}')]]"
done
echo "# of $(q 'sum(s["kind"] == "GPUModelRunner.execute_model" for s in S)') steps of the worker, escalated:" \
	"$(q 'sorted(H[s["step"]]["cause"] for s in S if s["kind"] == "GPUModelRunner.execute_model" and s["step"] in H)')"
finish
