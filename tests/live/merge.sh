#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# merge: the traces of two ranks, each traced by a tracer of its own. The clock of the second one is
# changed by known amounts, and its pid becomes that of the first: the clock is found again within the
# error that is stated, and the late ranks are those of the traces before that. In each format, and
# without collectives by the wall clocks. Traces that are none are refused with one line.
. "$(dirname "$0")/lib.sh"

STEPS="--step model_step --step all_reduce --detail all"
work=$TMP/merge
mkdir "$work"

start_ranks()
{
	mkfifo "$work/go"
	# The first write of the ranks says that they are there.
	"$FBT_BUILD/tests/live_merge_ranks" 1200 20 4000 <"$work/go" >"$work/pids" 2>&1 7>&- &
	RANKS=$!
	exec 7>"$work/go"
	wait_for 60 grep -qs ranks "$work/pids"
	read -r _ FIRST SECOND <"$work/pids"
}

# trace_rank NAME PID RANK: sets TOOL
# shellcheck disable=SC2317 # called by holds
trace_rank()
{
	OUT=$work/$1
	# shellcheck disable=SC2086 # options
	launch "$FBT" --ready-fd 6 -p "$2" $STEPS --rate-guard 0 --report none --profile none \
		--trace-format kineto --rank "$3" --trace "$OUT.kineto.json" --record "$OUT.capture" >"$OUT.err" 2>&1
	wait_attached "$TOOL" || { sed "s:^:# :" "$OUT.err" && return 1; }
}

# again NAME FORMAT FILE
again()
{
	"$FBT" --replay "$work/$1.capture" --report none --profile none --trace-format "$2" --trace "$work/$3" \
		>/dev/null 2>&1
}

start_ranks
holds 'the first rank is traced' trace_rank a "$FIRST" 0
first_tool=$TOOL
holds 'the second rank is traced' trace_rank b "$SECOND" 1
second_tool=$TOOL
echo >&7
exec 7>&-
wait "$RANKS"
wait "$first_tool" "$second_tool"
for name in a b; do
	again $name ferrum $name.json
	again $name perfetto $name.pftrace
	again $name perfetto $name.pftrace.gz
done
holds 'all traces are valid' "$FBT" validate "$work"/[ab].json "$work"/[ab].kineto.json "$work"/[ab].pftrace \
	"$work/a.pftrace.gz"

# check CASE A B [OPTION…]: merges, and compares with what the traces had before
check()
{
	local name=$1 first=$2 second=$3

	shift 3
	"$FBT" merge "$work/$first" "$work/$second" -o "$work/out.json" >"$work/table" 2>"$work/err" ||
		{ sed 's/^/# /' "$work/err" && not_ok "$name: it merges"; }
	python3 tests/live/merge.py check "$work/out.json" "$work/table" "$work/a.kineto.json" \
		"$work/b.kineto.json" "$name" "$@" || FAILED=1
}

# shift OFFSET-NS DRIFT-PPM IN OUT
shift_clock()
{
	python3 tests/live/merge.py shift "$work/$3" "$work/$4" "$1" "$2" "$FIRST"
}

check 'the same clock' a.kineto.json b.kineto.json 0 0
check "Perfetto's format" a.pftrace b.pftrace 0 0
check 'compressed, of two formats' a.pftrace.gz b.kineto.json 0 0
check "ferrum's format, without a wall clock" a.json b.json unknown 0
for by in '12345678901 0' '-3600000000007 80' '2500000 -120' '86400000000000 300'; do
	read -r offset drift <<<"$by"
	shift_clock "$offset" "$drift" b.kineto.json s.kineto.json
	check "off by $offset ns and $drift ppm" a.kineto.json s.kineto.json "$offset" "$drift"
done
shift_clock 7000000 50 b.json s.json
check "ferrum's format, off by 50 ppm" a.json s.json unknown 50

# Without collectives.
sed 's/all_reduce/no_collective/g' "$work/a.kineto.json" >"$work/plain_a.json"
sed 's/all_reduce/no_collective/g' "$work/b.kineto.json" >"$work/plain_b.json"
holds 'without collectives it merges' "$FBT" merge "$work"/plain_[ab].json -o "$work/plain.json" >"$work/table"
has 'by the wall clock, whose error is not known' "$work/table" 'plain_b.json +wall clock +- +- +not known'
has 'so who was late is marked' "$work/table" '^! by wall clocks'

# refused NAME REGEX TRACE…
refused()
{
	local name=$1 regex=$2

	shift 2
	rm -f "$work/no.json"
	timeout 60 "$FBT" merge "$@" -o "$work/no.json" >"$work/refused" 2>&1
	is "$name: refused with 1" $? 1
	is "$name: in one line" "$(wc -l <"$work/refused")" 1
	has "$name: which says why" "$work/refused" "$regex"
	is "$name: nothing is written" "$(find "$work" -name 'no.json*' | wc -l)" 0
}

: >"$work/empty.json"
head -c 4000 "$work/b.kineto.json" >"$work/cut.json"
head -c -3 "$work/b.pftrace" >"$work/cut.pftrace"
echo '{"traceEvents":[{"ph":"X","ts":-1}]}' >"$work/negative.json"
echo '{"a":1}' >"$work/other.json"
sed 's/all_reduce/no_collective/g' "$work/b.json" >"$work/no_clock.json"
refused 'an empty file' 'no trace' "$work/a.json" "$work/empty.json"
refused 'JSON that is cut off' 'invalid JSON' "$work/a.json" "$work/cut.json"
refused "Perfetto's format, cut off" 'file ends within' "$work/a.json" "$work/cut.pftrace"
refused 'a wrong time' 'event 1: ts is no time' "$work/a.json" "$work/negative.json"
refused 'another JSON file' 'no traceEvents' "$work/a.json" "$work/other.json"
refused 'a recording' 'no trace' "$work/a.json" "$work/a.capture"
refused 'no file' 'No such file' "$work/a.json" "$work/missing.json"
refused 'nothing to go by' 'cannot be put on the clock' "$work/a.json" "$work/no_clock.json"
cp "$work/a.json" "$work/again.json"
"$FBT" merge "$work/again.json" "$work/b.json" -o "$work/again.json" >"$work/refused" 2>&1
is 'an output that is read: refused with 1' $? 1
holds 'an output that is read stays as it was' cmp "$work/a.json" "$work/again.json"
"$FBT" merge "$work/a.json" -o "$work/no.json" >/dev/null 2>&1
is 'one trace is a usage error' $? 2
"$FBT" merge "$work/a.json" "$work/b.json" >/dev/null 2>&1
is 'no output is a usage error' $? 2
holds 'whatever the bytes are, it ends by itself' python3 tests/live/merge.py spoil "$FBT" "$work"
finish
