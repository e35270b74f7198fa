#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# tests/sum.sh COMMAND…: runs each command line, and ends with the sum of their last lines "N
# passed, N failed[, N skipped]". A command that fails without such a line, or with a line without
# failures, counts as one failure.
set -u

passed=0
failed=0
skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for command in "$@"; do
	bash -o pipefail -c "{ $command; } 2>&1 | tee '$log'"
	status=$?
	line=$(tail -n 5 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' | tail -n 1)
	read -r good _ bad _ skips _ <<<"${line:-0 passed, 0 failed}"
	passed=$((passed + good))
	skipped=$((skipped + ${skips:-0}))
	if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		echo "not ok - $command: exit status $status"
		bad=1
	fi
	failed=$((failed + bad))
done
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
[ "$failed" = 0 ]
