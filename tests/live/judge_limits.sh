#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The verdicts on steps that are slow because a limit of CPU time or memory is set on the cgroup above
# the engine's own: see judge/limits.h. Whatever else is slow on this machine is not held for that.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/judge/lib.sh
. tests/live/judge/lib.sh

# named_for CAUSE: how many steps, of all
named_for()
{
	local count=${causes##*"$1:"}

	[ "$count" != "$causes" ] || count=0
	echo "${count%%,*}"
}

# limited ENGINE STEPS MODE CAUSE CONTROLLER LIMIT…
limited()
{
	local engine=$1 steps=$2

	shift 2
	if ! make_group "${@:3}"; then
		echo "SKIP $1: no cgroup with the controller $3 can be made here"
		return 1
	fi
	engine_in_group "$engine"
	run_mode "$1" "$steps"
	holds "$1: the limit made steps slow" [ "$slow" -gt 0 ]
	holds "$1: some of them are found" [ "$found" -gt 0 ]
	is "$1: what is found is $2" "$wrong" 0
	is "$1: and nothing else is" "$(named_for "$2")" "$found"
	undo
	group=
}

first=$JUDGE
# A limit of CPU time is for threads that take turns with others, not for those that go first.
if limited "$FBT_BUILD/tests/live_judge" 300 quota cpu_limit cpu cpu.max cpu.cfs_quota_us; then
	where_quiet 'quota: of what is slow 97 % are found' at_least 97 "$found" "$slow"
	read -r steps same more < <(
		ask_python tests/live/judge/throttled.py "$TMP/truth.json" "$OUT.profile")
	is 'quota: no step was throttled for longer than cpu.stat says' "$more" 0
	is 'quota: the limit itself is told, and no other group has one' \
		"$(grep -o ': the CPU limit of its cgroup[^"]*, was' "$OUT.profile" | sort -u)" \
		': the CPU limit of its cgroup, 0.01 CPUs in each 100 ms, was'
	# The limit may hold the engine up between the step and its look at cpu.stat.
	holds 'quota: most of them for as long as it says' at_least 50 "$same" "$steps"
fi
if [ "$(stat -f -c %T "$TMP")" = tmpfs ]; then
	echo 'SKIP memory: the weights would be in memory'
else
	for mode in memory worker_memory; do
		limited "$first" 400 $mode memory_limit memory memory.max memory.limit_in_bytes &&
			where_quiet "$mode: of what is slow 97 % are found" at_least 97 "$found" "$slow"
	done
fi
finish
