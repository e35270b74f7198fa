#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Runs the tests of faults at full length. The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1

log=$(mktemp)
trap 'rm -f "$log"' EXIT
while read -r name arguments; do
	# shellcheck disable=SC2086
	"tests/live/$name.sh" $arguments </dev/null 2>&1 | tee -a "$log"
	[ "${PIPESTATUS[0]}" = 0 ] || echo "not ok - $name: it ends well" | tee -a "$log"
done <<'END'
fault_kill 200
fault_memory 1 29
fault_stop 10
fault_cpu really
long_step 1800
END
passed=$(grep -c '^ok' "$log")
failed=$(grep -c '^not ok' "$log")
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
