#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# -f while the tree of children grows, and children that call execve.
. "$(dirname "$0")/lib.sh"

# Hundreds of processes that only fork and call leave the tool no CPU, so it would lose records and
# say so.
go_first FBT

# -q: there is no step, so no hints and no escalations. The window's length depends on the machine.
# If the tool has no CPU for a while it loses records, and the report says how many.
missed='R["lost"]["processes"] + R["lost"]["threads"]'
for round in 1 2 3; do
	rm -f "${OUT:?}".*
	start_program fork_tree
	run_tool -p "$ENGINE" -f -q --profile none
	wait_attached "$TOOL"
	for _ in $(seq 1200); do
		[ "$(pgrep -cf "$TMP/truth.json")" -gt 150 ] && break
		sleep 0.05
	done
	echo >&7
	for _ in $(seq 1200); do
		[ -s "$TMP/truth.json" ] && break
		sleep 0.05
	done
	stop_tool
	exec 7>&-
	wait "$ENGINE"
	echo "# round $round: $(q 'R["lost"]')"
	fact "round $round: every process that was alive is there, or counted as lost" \
		"len({int(p) for p in T['parents']} - set(tables)) <= $missed and len(T['parents']) > 100"
	fact "round $round: with exactly its calls" \
		"len([p for p in T['parents'] if tables.get(int(p), {}).get('getppid') != T['calls']]) <= $missed"
	fact "round $round: and its parent" \
		"len([p for p in R['processes'] if p['parent_pid'] == T['parents'].get(str(p['pid']), 0)]) >=
		 len(T['parents']) - R['lost']['total']"
	is "round $round: what came and went is no news" "$(grep -v ': lost ' "$OUT.err")" ''
done

rm -f "${OUT:?}".*
# shellcheck disable=SC2016
start_waiting sh -c 'echo ready; read -r go; for i in 1 2 3; do sh -c "exec sleep 0.\$1" sh $i & done; wait'
run_tool -p "$ENGINE" -f
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'execve: a child still has its parent' \
	"[p['parent_pid'] for p in R['processes'] if p['pid'] != $ENGINE] == [$ENGINE] * 3"
fact 'execve: and the name of what it has become' \
	"{p['comm'] for p in R['processes'] if p['pid'] != $ENGINE} == {'sleep'}"
finish
