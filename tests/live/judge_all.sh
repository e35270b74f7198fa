#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The verdicts on each way to be slow, and on each way to be healthy and not steady: see judge.c.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/judge/lib.sh
. tests/live/judge/lib.sh

for mode in lock lock_more lock_less sleep threads mmap writes reads ioctl; do
	scored $mode 700
done
if chrt -f 1 true 2>/dev/null; then
	scored hog 700
else
	echo 'SKIP hog: no thread may go first here'
fi
for mode in steady prefill device mixed growing bursts two busy_lock warm_up; do
	scored $mode 2000
done

# No record says yet how long a thread was stopped, how long its page faults and signal handlers took,
# and what its workers did.
for mode in cold faults signals workers; do
	shown $mode 300
done
shown stop 500
JUDGE=$FBT_BUILD/tests/live_judge # a team that spins gets a CPU in turns, if none goes first
shown pinned 300
finish
