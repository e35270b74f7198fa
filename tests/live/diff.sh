#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# diff of real runs whose difference is known: nothing changed, one sort of steps 20 % slower, another mix of
# sorts, and waits instead of computing. The engine comes first on a CPU, since what a neighbour takes is a real
# difference.
. "$(dirname "$0")/lib.sh"

diff_first=$FBT_BUILD/tests/live_diff
go_first diff_first

# run NAME TOOL-OPTION… -- STEPS SMALL LARGE EVERY [WAIT]: leaves $TMP/NAME.fbt, .jsonl.gz and .truth
run()
{
	local name=$1 options=()

	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	rm -f "${OUT:?}".* "$TMP/$name".*
	start_waiting "$diff_first" "$TMP/truth.json" "$@"
	launch env --default-signal=INT "$FBT" --ready-fd 6 --report none --trace none --rate-guard 0 \
		--profile "$TMP/$name.jsonl.gz" --record "$TMP/$name.fbt" -p "$ENGINE" --step diff_step \
		"${options[@]}" >"$OUT.report" 2>"$OUT.err"
	wait_attached "$TOOL" || not_ok "$name: the tool attaches"
	go
	wait "$ENGINE"
	end_tool 0 "$name: the tool ends with 0"
	cp "$TMP/truth.json" "$TMP/$name.truth"
}

# compare STATUS A B OPTION…: $OUT.diff is the JSON
compare()
{
	local wanted=$1

	shift
	"$FBT" diff "$@" --report json >"$OUT.diff" 2>"$OUT.err"
	is "${*##*/}: exit status $wanted" $? "$wanted"
}

# says NAME EXPRESSION: of d, the JSON; of(size, quantile) is that change
says()
{
	local got

	got=$(python3 - "$OUT.diff" "$TMP" <<-END 2>&1
		import json, sys
		d = json.load(open(sys.argv[1]))
		truth = lambda name: json.load(open(f'{sys.argv[2]}/{name}.truth'))
		both = [c for c in d['classes'] if c['only_in'] is None]
		of = lambda size, quantile='p50': [c for c in both if c['size_low'] <= size <= c['size_high']][0]['quantiles'][quantile]
		print($2)
	END
	)
	if [ "$got" = True ]; then
		ok "$1"
	else
		echo "# ${2//[[:space:]]/ }: $got"
		python3 -m json.tool "$OUT.diff" | head -n 100 | sed 's/^/#   /'
		not_ok "$1"
	fi
}

run_all()
{
	local arg=(--step-arg n_tokens=arg0)

	run before "${arg[@]}" -- 6000 200 1500 10
	run again "${arg[@]}" -- 6000 200 1500 10
	run slower "${arg[@]}" -- 6000 240 1500 10
	run mixed "${arg[@]}" -- 6000 200 1500 3
	run waiting "${arg[@]}" -- 6000 140 1500 10 100
}

# Whether the program itself saw its steps as long as they should be, and the speed of the machine did not change
# so slowly that a run has too few independent steps: then diff rightly says that it cannot tell.
is_calm()
{
	local name

	for name in again slower mixed waiting; do
		"$FBT" diff "$TMP/before.fbt" "$TMP/$name.fbt" --report json >"$OUT.diff" 2>/dev/null
		python3 - "$OUT.diff" "$TMP" $name <<-END || return 1
			import json, sys
			d = json.load(open(sys.argv[1]))
			both = [c['quantiles']['p50'] for c in d['classes'] if c['only_in'] is None]
			a, b = (json.load(open(f'{sys.argv[2]}/{name}.truth')) for name in ('before', sys.argv[3]))
			wanted = {'slower': 1.2}.get(sys.argv[3], 1)
			calm = abs(b['large_ns'] / a['large_ns'] - 1) < 0.03 and (
			    sys.argv[3] == 'waiting' or abs(b['small_ns'] / a['small_ns'] / wanted - 1) < 0.03)
			sys.exit(not calm or any(q['low_percent'] is None or q['high_percent'] - q['low_percent'] > 12 for q in both))
		END
	done
}

for attempt in 1 2 3 4 5; do
	run_all
	! is_calm || break
	echo "# attempt $attempt: the machine is not calm"
done

# The median alone: on a machine that others use too, a tail may really be longer.
compare 0 "$TMP/before.fbt" "$TMP/again.fbt" --margin 10 --threshold 10
says 'unchanged: both medians are the same' \
	'of(4)["verdict"] == of(600)["verdict"] == "same" and not d["regression"]'
says 'unchanged: as many steps as there were' \
	'sorted(s["steps"] for c in both for s in c["sides"][:1]) == sorted([truth("before")["small"], truth("before")["large"]])'

for ending in fbt jsonl.gz; do
	compare 3 "$TMP/before.$ending" "$TMP/slower.$ending" --margin 10 --threshold 10
	says "slower, $ending: the small steps by 20 %" \
		'of(4)["verdict"] == "worse" and 15 < of(4)["change_percent"] < 25'
	says "slower, $ending: their interval has the truth" \
		'of(4)["low_percent"] < 100 * truth("slower")["small_ns"] / truth("before")["small_ns"] - 100 + 2 and of(4)["high_percent"] > 100 * truth("slower")["small_ns"] / truth("before")["small_ns"] - 100 - 2'
	says "slower, $ending: the large steps are the same" 'of(600)["verdict"] == "same"'
	says "slower, $ending: it is their own code" \
		'[p for c in both if c["size_low"] == 4 for a, b in [[s["parts_ns"] for s in c["sides"]]] for p in [max(a, key=lambda p: b[p] - a[p])]] == ["own"]'
done
compare 0 "$TMP/slower.fbt" "$TMP/before.jsonl.gz" --margin 10 --threshold 10
says 'faster: better, which is no regression' 'of(4)["verdict"] == "better" and d["verdict"] == "better"'

compare 0 "$TMP/before.fbt" "$TMP/mixed.fbt" --margin 10 --threshold 10
says 'three times as many large steps: nothing is worse' \
	'of(4)["verdict"] == of(600)["verdict"] == "same" and d["sides"][1]["steps"] == 6000'

compare 3 "$TMP/before.fbt" "$TMP/waiting.fbt" --margin 10 --threshold 10
says 'waits instead of computing: the futex is named' \
	'all(b["futex_net"] > a["futex_net"] + 50000 and b["own"] < a["own"] for c in both if c["size_low"] == 4 for a, b in [[s["parts_ns"] for s in c["sides"]]])'

# The same without sizes: classes are the modes of the work.
compare 3 "$TMP/before.fbt" "$TMP/slower.fbt" --class-by nothing --margin 10 --threshold 10
# A step that was disturbed may be alone in a class.
says 'by work: two classes, but for a few steps' \
	'all(c["size_by"] == "work" for c in both) and all(sum(sorted(c["sides"][i]["steps"] for c in both)[-2:]) > 5940 for i in (0, 1))'
says 'by work: the small steps are worse, the large ones the same' \
	'of(200000)["verdict"] == "worse" and of(1500000)["verdict"] == "same"'
compare 0 "$TMP/before.fbt" "$TMP/mixed.fbt" --class-by nothing --margin 10 --threshold 10
says 'by work, another mix: nothing is worse' 'of(200000)["verdict"] == of(1500000)["verdict"] == "same"'

# Twice the same output.
"$FBT" diff "$TMP/before.fbt" "$TMP/slower.jsonl.gz" >"$OUT.first" 2>&1
"$FBT" diff "$TMP/before.fbt" "$TMP/slower.jsonl.gz" >"$OUT.second" 2>&1
holds 'two runs print the same' cmp "$OUT.first" "$OUT.second"

# GPU records make steps longer: with them on one side only, what is worse may be due to them.
sed 's/"gpu_[a-z_]*":[^,}]*,//g' tests/golden/gpu.profile.jsonl >"$TMP/no_gpu.jsonl"
compare 1 tests/golden/gpu.profile.jsonl "$TMP/no_gpu.jsonl"
says 'GPU records on one side: a serious doubt' \
	'any("GPU records" in x["text"] and "on and off" in x["text"] and x["serious"] for x in d["doubts"])'

# What cannot be compared is no success.
head -c 20000 "$TMP/before.fbt" >"$TMP/short.fbt"
compare 1 "$TMP/before.fbt" "$TMP/short.fbt"
has 'a short file: says that it could not compare' "$OUT.err" 'could not compare'
says 'a short file: and that it was cut off' 'any("ends before its window" in x["text"] and x["serious"] for x in d["doubts"])'
for wrong in /dev/null "$TMP/before.truth" "$TMP/none"; do
	compare 1 "$TMP/before.fbt" "$wrong"
	has "$wrong: one line says why" "$OUT.err" "$wrong: "
	is "$wrong: no more than that" "$(grep -c . "$OUT.err")" 1
done
"$FBT" diff "$TMP/before.fbt" 2>"$OUT.err"
is 'one file: a usage error' $? 2
"$FBT" diff "$TMP/before.fbt" "$TMP/again.fbt" --margin 0 2>"$OUT.err"
is 'a margin of 0: a usage error' $? 2
"$FBT" diff "$TMP/before.fbt" "$TMP/again.fbt" --html "$TMP/before.fbt" 2>"$OUT.err"
is 'a page over an input: a usage error' $? 2
finish
