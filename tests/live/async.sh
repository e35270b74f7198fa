#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Steps that are futures, compared with what the programs count: a C program whose poll function is
# like that of Rust's compiler, and a Rust program if rustc is there.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP futures are told apart on x86-64 only' && exit 77; }

# attach_futures ARGUMENT…
attach_futures()
{
	rm -f "$OUT".*
	run_tool -p "$ENGINE" --detail all "${calm[@]}" "$@"
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok 'the tool attaches'; }
}

# check NAME: compares the engine's account with the steps and the trace
check()
{
	go
	wait "$ENGINE"
	end_tool
	python3 tests/live/async.py "$1" "$TMP/truth.json" "$OUT.profile" || FAILED=1
	fact "$1: slices of steps nest" \
		'all(a["ts"] + a["dur"] <= b["ts"] for t in {x["tid"] for x in X}
			for steps in [sorted([x for x in X if x["cat"] == "step" and x["tid"] == t], key=lambda x: x["ts"])]
			for a, b in zip(steps, steps[1:]))'
	fact "$1: the report has the polls of all" \
		'sum(k["polls"] for k in R["kinds"]) == sum(s["polls"] for s in S)'
	fact "$1: parts of all are their time" \
		'all(sum(k["parts_ns"].values()) == k["total_ns"] for k in R["kinds"])'
}

start_program async
attach_futures --step 'double::work::{{closure}}' --step-arg 'id=u64(arg0+0)'
check double

# The compiler's options change how the function reads the state of its future.
compile()
{
	rustc --edition 2021 --crate-name fbt_async -C opt-level="$1" tests/live/async.rs -o "$TMP/async_$1" 2>"$TMP/rustc"
}

for level in 0 3; do
	if ! compile $level; then
		echo "SKIP rust $level: no rustc for it here: $(head -1 "$TMP/rustc")"
		continue
	fi
	start_waiting "$TMP/async_$level" "$TMP/truth.json"
	attach_futures --step '/^fbt_async::(unit|large|falls|within|panics)::..closure..$/' \
		--step '/fbt_async::Model>::run::..closure..$/'
	check "rust $level"
done
finish
