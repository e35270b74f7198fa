# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the tests of verdicts share; sourced after lib.sh.

JUDGE=$FBT_BUILD/tests/live_judge
# A step that its neighbours on this machine slow is rightly named, but no trouble of the engine.
go_first FBT JUDGE
others=0 # see count_others

# run_mode MODE STEPS: the score of one run is in the variables that score.py names, and what
# count_others has counted in $others
run_mode()
{
	rm -f "${OUT:?}".*
	start_waiting "$JUDGE" "$TMP/truth.json" "$1" "$2" "$TMP/file"
	count_others_from_here
	attach_judge
	go
	wait "$ENGINE"
	end_tool 0 "$1: the tool ends with 0"
	count_others
	ask_python tests/live/judge/score.py "$TMP/truth.json" "$OUT.profile" >"$OUT.score"
	read -r anomalous slow found wrong false confirmed causes <"$OUT.score"
	printf '# %-10s %5d steps, slow %3d, found %3d, wrong cause %d, false %d, confirmed %d, others %d ‰: %s\n' \
		"$1" "$2" "$slow" "$found" "$wrong" "$false" "$confirmed" "$others" "$causes"
	sed -n '2,$p' "$OUT.score"
}

attach_judge()
{
	run_tool -p "$ENGINE" --step judged_step --rate-limit 100000 --ring-records 262144 \
		${BUDGET_US:+--budget-us $BUDGET_US}
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok 'the tool attaches'; }
}

# at_least PERCENT PART WHOLE
at_least()
{
	(($2 * 100 >= $1 * $3))
}

# scored MODE STEPS: that it finds what is slow, names its cause, and leaves the others alone. Where
# nothing was slow, or nothing was found, there is nothing to score: that is no success.
scored()
{
	run_mode "$@"
	if [ "$anomalous" = 1 ]; then
		holds "$1: the mode made steps slow" [ "$slow" -gt 0 ]
		holds "$1: some of them are found" [ "$found" -gt 0 ]
	fi
	[ "$slow" = 0 ] || holds "$1: the cause is right" at_least 97 $((found - wrong)) "$found"
	[ "$slow" = 0 ] || where_quiet holds "$1: of what is slow 97 % are found" at_least 97 "$found" "$slow"
	where_quiet holds "$1: of 1,000 healthy steps at most one is named" [ $((false * 1000)) -le "$2" ]
}

# A cgroup that a test has made, with the engine's below it.
group=

undo()
{
	[ -z "$group" ] || rmdir "$group/engine" "$group"
}

# make_group CONTROLLER LIMIT…: in $group, which has one of these files, with a cgroup for the engine
# below it; version 2, or 1 where that has the controller
make_group()
{
	local root limit

	for root in /sys/fs/cgroup /sys/fs/cgroup/unified "/sys/fs/cgroup/$1" /sys/fs/cgroup/cpu,cpuacct; do
		[ -w "$root/cgroup.procs" ] || continue
		echo "+$1" 2>/dev/null >"$root/cgroup.subtree_control"
		group=$root/fbt_test_$$
		mkdir "$group" 2>/dev/null || continue
		for limit in "${@:2}"; do
			[ -w "$group/$limit" ] && mkdir "$group/engine" && return 0
		done
		rmdir "$group"
	done
	group=
	return 1
}

# engine_in_group ENGINE: JUDGE is the engine in the cgroup
engine_in_group()
{
	printf '#!/bin/sh\necho $$ >"%s/engine/cgroup.procs"\nexec "%s" "$@" "%s"\n' \
		"$group" "$1" "$group" >"$TMP/limited"
	chmod +x "$TMP/limited"
	JUDGE=$TMP/limited
}
