#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# -p with several processes that each run a file of their own, and with a process that lacks the
# step.
. "$(dirname "$0")/lib.sh"

# Each process makes another number of steps, of another length.
mkfifo "$TMP/go"
pids=
for i in 1 2 3 4 5 6 7 8; do
	cp "$FBT_BUILD/tests/live_own_steps" "$TMP/copy$i"
	mkfifo "$TMP/ready"
	"$TMP/copy$i" "$TMP/truth$i" $((40 + i)) "$i" <"$TMP/go" >"$TMP/ready" 7>&- &
	pids=$pids${pids:+,}$!
	[ "$i" != 1 ] || exec 7>"$TMP/go"
	read -r _ <"$TMP/ready"
	rm "$TMP/ready"
done

rm -f "${OUT:?}".*
run_tool -p "$pids" --step my_step
wait_attached "$TOOL"
is 'copies: probes in each of them' "$(($(count_links "$TOOL") >= 13))" 1
# The end of stdin is the go for all of them.
exec 7>&-
for i in 1 2 3 4 5 6 7 8; do
	for _ in $(seq 1500); do
		grep -qs '}$' "$TMP/truth$i" && break
		sleep 0.02
	done
done
stop_tool
python3 -c '
import json, sys
json.dump({t["pid"]: [t["calls"]] * t["steps"] for t in map(json.load, map(open, sys.argv[1:]))}, sys.stdout)' \
	"$TMP"/truth? >"$TMP/truth.json"
fact 'copies: the steps of each process are its own, and all of them' \
	'{str(p): [s["calls"] for s in S if s["pid"] == p] for p in {s["pid"] for s in S}} == T and len(T) == 8'
fact 'copies: each has a table' \
	'{str(p): tables[p]["getppid"] for p in tables} == {p: sum(T[p]) for p in T}'
# shellcheck disable=SC2086
kill ${pids//,/ }

# Only the first of the two has the step.
rm -f "${OUT:?}".*
start_program own_steps 20 3
first=$ENGINE
sleep 30 &
second=$!
run_tool -p "$first,$second" --step my_step
wait_attached "$TOOL"
go
for _ in $(seq 1500); do
	grep -qs '}$' "$TMP/truth.json" && break
	sleep 0.02
done
stop_tool
is 'a process without the step: one line names it' "$(grep -cw $second "$OUT.err")" 1
fact 'a process without the step: the steps of the other' \
	'len(S) == T["steps"] == 20 and {s["pid"] for s in S} == {T["pid"]}'
fact 'a process without the step: its calls are still in a table' "sorted(tables) == sorted([$first, $second])"
finish
