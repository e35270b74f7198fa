#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The step of a program that nobody knows, stripped and without names that mean anything: found by
# its stacks, against where nm saw the function before, and the program's own account. And no step
# where there is none.
. "$(dirname "$0")/lib.sh"

command -v strip nm >"$TMP/tools" || { echo 'SKIP strip and nm are not installed' && exit 77; }

# address_of PROGRAM SYMBOL: as nm prints it, without zeros
address_of()
{
	nm -C "$1" | awk -v name="$2" '$2 ~ /[tT]/ && substr($0, 20) == name { sub(/^0+/, "", $1); print $1; exit }'
}

# list: what --list-steps says of the engine is in $TMP/list and $TMP/err. Where nothing is found since
# the engine is short of CPUs, again, a few times.
list()
{
	local status

	for _ in 1 2 3 4; do
		env --default-signal=INT "$FBT" --list-steps -p "$ENGINE" >"$TMP/list" 2>"$TMP/err" </dev/null
		status=$?
		grep -qs 'short of CPUs' "$TMP/err" "$TMP/list" || break
	done
	return $status
}

end_engine()
{
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	is "$1: it ends as it wants" $? 0
}

# finds NAME PROGRAM SYMBOL ARGUMENT…: the step of the stripped PROGRAM is SYMBOL
finds()
{
	local name=$1 program=$2 wanted

	wanted=$(address_of "$2" "$3")
	shift 3
	strip -o "$TMP/stripped" "$program"
	start_waiting "$TMP/stripped" "$TMP/truth.json" "$@"
	go
	list
	is "$name: --list-steps exits with 0" $? 0
	end_engine "$name"
	echo "# $name"
	python3 tests/live/unknown.py "$TMP/truth.json" "$TMP/list" "$wanted" || FAILED=1
}

# finds_none NAME ARGUMENT…
finds_none()
{
	local name=$1

	shift
	start_waiting "$TMP/unknown_stripped" "$TMP/truth.json" "$@"
	go
	list
	is "$name: --list-steps fails" $? 1
	has "$name: it says that there is none" "$TMP/err" 'no regular step found|its threads are idle'
	is "$name: it lists none" "$(cat "$TMP/list")" ''
	end_engine "$name"
}

if g++ -D_GNU_SOURCE -O2 -fomit-frame-pointer tests/live/unknown.cc -o "$TMP/unknown" -lpthread 2>"$TMP/g++"; then
	strip -o "$TMP/unknown_stripped" "$TMP/unknown"
	finds 'C++' "$TMP/unknown" 'turn(int)' engine
	finds 'C++, a worker' "$TMP/unknown" 'pair_turn()' pool
	finds 'C++, a wait around the step' "$TMP/unknown" 'turn(int)' paced
	for what in phases handler requests pause; do
		finds_none "C++, $what" $what
	done
else
	echo "SKIP C++: no g++ for it here: $(head -1 "$TMP/g++")"
fi

if rustc --edition 2021 -O tests/live/unknown.rs -o "$TMP/unknown_rs" 2>"$TMP/rustc"; then
	finds 'Rust' "$TMP/unknown_rs" '<unknown::Tokens as unknown::Work>::advance'
else
	echo "SKIP Rust: no rustc for it here: $(head -1 "$TMP/rustc")"
fi

# The embedded engine, by what is pasted: its own count of steps is the tool's. The kernel may
# refuse the search while the machine has other work.
strip -o "$TMP/engine" "$FBT_ENGINE"
wanted=$(address_of "$FBT_ENGINE" run_one_step)
FBT_ENGINE=$TMP/engine start_engine --steps 0 --compute-us 3000 --sleep-us 1000
go
list
has 'the embedded engine: what calls engine_step once for each step' "$TMP/list" \
	"^ +[0-9.]+ +[0-9.]+ ms .* $TMP/engine\\+0x$wanted "
"$FBT" doctor "$ENGINE" --trace none --profile none >"$TMP/doctor" 2>"$TMP/err" </dev/null
is 'doctor: exit status' $? 0
tr -s ' \n' ' ' <"$TMP/doctor" >"$TMP/line"
has 'doctor: what to paste, or that the engine is short of CPUs' "$TMP/line" \
	"use --step '$TMP/engine\\+0x$wanted': a busy thread is in it for [0-9]+ % of its CPU time|are short of CPUs"
run_tool -p "$ENGINE"
await_lines 1 "\\+0x$wanted|short of CPUs" "$OUT.err"
stop_tool
has 'no step in 5 s: it is named, unless other work needs the CPUs' "$OUT.err" \
	"--step '$TMP/engine\\+0x$wanted'  \\([0-9.]+ calls/s, mean|short of CPUs"
touched=$(awk -v file="$TMP/engine" '/^[0-9a-f]+-/ { code = $2 ~ /x/ && $6 == file }
	/^Rss:/ && code { kb += $2 } END { print kb + 0 }' "/proc/$ENGINE/smaps")
holds 'its code is there' [ "$touched" -gt 0 ]
kill "$ENGINE"
wait "$ENGINE"
rm -f "${OUT:?}".*
FBT_ENGINE=$TMP/engine start_engine --steps 300 --compute-us 1000 --sleep-us 100
run_tool -p "$ENGINE" --step "engine+0x$wanted"
wait_attached "$TOOL" || { cat "$OUT.err" && not_ok 'the tool attaches' && finish; }
go
wait "$ENGINE"
end_tool
fact 'what is pasted: as many steps as the engine made' 'len(S) == T["steps"] == 300'
finish
