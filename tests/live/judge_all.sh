#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The verdicts on each way to be slow, and on each way to be healthy and not steady: see judge.c.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/judge/lib.sh
. tests/live/judge/lib.sh

for mode in lock lock_more lock_less lock_computed lock_beside late late_read late_polled late_epolled sleep \
	threads mmap writes reads ioctl; do
	scored $mode 700
done
if chrt -f 1 true 2>/dev/null; then
	scored hog 700
	[ "$(nproc)" -lt 2 ] || scored starved 700
else
	echo 'SKIP hog, starved: no thread may go first here'
fi
for mode in steady prefill device mixed growing bursts two busy_lock workers pool crew sleepers answer_read \
	answer_polled answer_epolled faulting warm_up; do
	scored $mode 2000
done

scored stop 700
scored traced 700
scored worker_traced 700
# Behind a leader that spins with its own priority the tool would wait, although the other CPU is idle.
[ "$FBT" != "$TMP/FBT" ] || sed -i 's/chrt -f 1/chrt -f 2/' "$FBT"
scored team_traced 700
[ "$FBT" != "$TMP/FBT" ] || sed -i 's/chrt -f 2/chrt -f 1/' "$FBT"
scored team_call 700
scored team_lock 700
scored signals 700
scored faults 700

if [ "$(stat -f -c %T "$TMP")" = tmpfs ]; then
	echo 'SKIP cold, worker_cold: the weights would be in memory'
else
	scored cold 700
	scored worker_cold 700
fi
JUDGE=$FBT_BUILD/tests/live_judge # a team that spins gets a CPU in turns, if none goes first
scored pinned 300
finish
