#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Runs tests/gpu/run.sh, which is meant for a machine with a GPU, on the double of CUDA: its order,
# its figures, its checks, and what is left after a failure.
. "$(dirname "$0")/lib.sh"

build=$(realpath "$FBT_BUILD")
export LD_LIBRARY_PATH=$build/tests FERRUM_CUPTI_LIBRARY=$build/tests/libcupti.so.13
export FBT

# measure NAME OPTION…: its files are in $TMP/NAME, its output in $TMP/NAME.out, its status in
# $status
measure()
{
	local name=$1

	shift
	tests/gpu/run.sh --out "$TMP/$name" --steps 100 --limit 300 "$@" >"$TMP/$name.out" 2>&1 </dev/null
	status=$?
}

# result NAME EXPRESSION [NAME OF THE FACT]: a fact on R, the results
result()
{
	local got

	got=$(python3 -c '
import json, sys
R = json.load(open(sys.argv[1]))
V = {row["variant"]: row for row in R["results"]}
failed = sorted({row["check"] for row in R["checks"] if not row["ok"]})
print(eval("(" + sys.argv[2] + ")"))' "$TMP/$1/results.json" "$2" 2>&1)
	if [ "$got" = True ]; then
		ok "$1: $3"
	else
		echo "# $2: $got"
		sed 's/^/#   /' "$TMP/$1.out"
		not_ok "$1: $3"
	fi
}

measure whole --rounds 2 --variants 'kernels graph' --engine "fake=$build/tests/gpu_fake_engine"
is 'whole: every check holds' $status 0
result whole 'R["ok"] and not failed and len(R["checks"]) > 40' 'and says so'
result whole 'all(V[v]["modes"][m]["step_us"]["rounds"] == 2 for v in ("kernels", "graph")
	for m in ("bare", "idle", "armed", "full"))' 'each variant ran each way, in each round'
result whole 'all(V[v]["modes"]["bare"]["step_us"]["min"] >= 600 for v in V)' \
	'a step takes its 600 us or more'
result whole 'all("median" in row["modes"][m]["step_overhead_percent"] and
	"median" in row["modes"][m]["throughput_lost_percent"]
	for row in R["results"] for m in ("idle", "armed", "full"))' 'overhead of each against bare'
result whole 'all(t["kernels"] == 2000 and t["join_rate"] == 1 and t["arm_ns"] > 0 and
	t["clock"] == "realtime" and t["cupti"] == "13.0 U1"
	for row in R["results"] for t in row["traced"])' 'records, join rate, delay and clock'
result whole 'all(abs(t["view_to_cuda_events"] - 1) < 0.01 and t["steps_complete"] == 100
	for row in R["results"] for t in row["traced"] if t["mode"] == "full")' 'sums against events'
result whole '{"kernel", "cpu", "tool"} <= set(R["machine"])' 'facts of the machine'

# A container without BPF, and the folder that make gpu-kit creates.
mkdir "$TMP/kit"
printf '#!/bin/bash\necho "BPF is not permitted" >&2\nexit 1\n' >"$TMP/kit/ferrum-bpftrace"
chmod +x "$TMP/kit/ferrum-bpftrace"
ln -s "$build/libferrum_cupti.so" "$build/tests/gpu_arm" "$build/tests/gpu_results" "$TMP/kit"
FBT=$TMP/kit/ferrum-bpftrace measure without_bpf --rounds 1 --variants kernels \
	--engine "fake=$build/tests/gpu_fake_engine"
is 'without_bpf: the rest is measured' $status 0
result without_bpf 'set(V["kernels"]["modes"]) == {"bare", "idle", "armed"} and
	R["machine"]["full_left_out"] == "BPF is not permitted"' 'and what is left out is said'

# Every third kernel has no record, which must be reported as a failure.
FAKE_CUPTI_DROP=3 measure dropped --rounds 1 --variants kernels \
	--engine "fake=$build/tests/gpu_fake_engine"
is 'dropped: exit status 1' $status 1
result dropped '"no record was dropped" in failed and "every kernel has a record" in failed' \
	'the checks say what is wrong'

# An engine that ends early.
# shellcheck disable=SC2016
printf '#!/bin/bash\n[ "$1" = --list ] && echo one && exit\nexit 3\n' >"$TMP/broken_engine"
chmod +x "$TMP/broken_engine"
measure broken --rounds 1 --engine "broken=$TMP/broken_engine"
is 'broken: exit status 1' $status 1
result broken 'failed == ["it ran to its end", "the shim was armed"] and not R["ok"]' \
	'results are there all the same'

# The run is interrupted: none of its processes may remain.
tests/gpu/run.sh --out "$TMP/cut" --steps 100000 --rounds 1 --variants kernels \
	--engine "fake=$build/tests/gpu_fake_engine" >"$TMP/cut.out" 2>&1 </dev/null &
measuring=$!
for _ in $(seq 900); do
	[ -s "$TMP/cut/fake.kernels.1.bare.steps" ] && break
	sleep 0.1
done
kill "$measuring"
wait "$measuring"
is 'cut: exit status 1' $? 1
result cut 'not R["ok"] and "cut_off" in R["machine"]' 'and results that say so'
for _ in $(seq 600); do
	pgrep -f "$TMP/cut/" >/dev/null || break
	sleep 0.1
done
is 'cut: the engine has ended' "$(pgrep -cf "$TMP/cut/")" 0

FBT=$TMP/nowhere measure nothing
is 'no tool: one line' "$(wc -l <"$TMP/nothing.out")" 1
FBT=$TMP/kit/ferrum-bpftrace measure no_gpu
[ -e /dev/nvidia0 ] || has 'no GPU: one line' "$TMP/no_gpu.out" 'no NVIDIA GPU here'
finish
