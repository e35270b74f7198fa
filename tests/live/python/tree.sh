# shellcheck shell=bash disable=SC2034,SC2153,SC2154
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Runs of tree.py, an engine of several Python processes.  PYTHON=PATH runs another interpreter.

steps=300

# run_tree NAME ENGINE ROLE TOOL-OPTION…: one run of the whole tree; -p is the process with that role
run_tree()
{
	local engine=$2 role=$3

	NAME=$1
	shift 3
	rm -f "${OUT:?}".*
	start_waiting env ${preload:+LD_PRELOAD="$preload"} "${PYTHON:-/usr/bin/python3}" tests/live/python/tree.py "$engine" \
		"$TMP/truth.json" $steps
	run_tool -p "$(pid_of "$role")" "$@"
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok "$NAME: the tool attaches"; }
	go
	wait "$ENGINE"
	is "$NAME: the engine ends as ever" $? 0
	end_tool
	[ -z "${SHOW:-}" ] || cat "$OUT.err" "$OUT.report"
}

# pid_of ROLE
pid_of()
{
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$TMP/truth.json.pids" "$1"
}

# How many processes a tree has, but for the tracker.
count_of_tree()
{
	python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))) - 1)' "$TMP/truth.json.pids"
}

# The steps of each process and function are those that it counted itself, and so are the sums of their
# numbers; nothing else is a step.
check_tree()
{
	fact "$NAME: each call is a step, of its process and function" \
		'{(int(pid), kind): n for pid, counts in T.items() for kind, n in counts.items()
			if not kind.startswith("n_") and kind != "each" and n} ==
		 dict(__import__("collections").Counter((s["pid"], s["kind"]) for s in S))'
	fact "$NAME: numbers are recorded" \
		"len(T) == $(count_of_tree)"' and all(sum(s.get("arg." + name) or 0 for s in S if s["pid"] == int(pid)) == sum_of
			for pid, counts in T.items() for name, sum_of in counts.items() if name.startswith("n_"))'
	fact "$NAME: nothing lost" 'all(v == 0 for k, v in W.items() if k.startswith("lost_"))'
	holds "$NAME: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

# only_steps ROLE…: of the tree's processes those with these roles, and no others, are traced
only_steps()
{
	local role

	fact "$NAME: no other process is traced" "set(tables) == {$(for role; do echo "$(pid_of "$role"),"; done)}"
}

# kill_tree ROLE…: ends the processes of a run that would go on for long
kill_tree()
{
	local role

	for role; do kill -KILL "$(pid_of "$role")"; done
	wait "$ENGINE" 2>/dev/null
}
