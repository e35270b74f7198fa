#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The verdicts on an engine that is slow on demand, scored by its own account: those that recur, and
# healthy steps that differ. All of them are judge_all.sh's.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/judge/lib.sh
. tests/live/judge/lib.sh

for mode in lock_more lock_computed late late_polled sleep threads; do
	scored $mode 300
done
for mode in prefill device workers answer_epolled; do
	scored $mode 500
done
scored team_call 700
finish
