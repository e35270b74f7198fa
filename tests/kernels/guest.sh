#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# guest.sh live|quick|refuses|LIST: runs in the guest: the tests of live.txt, the short ones of
# them, the check of an unsupported kernel, or the named ones, separated by commas. Ends like
# tests/run.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
export TEST_SECONDS=${TEST_SECONDS:-900}

case $1 in
live) tests=$(awk '$1 ~ /^[a-z]/ { print "tests/live/" $1 ".sh" }' tests/kernels/live.txt) ;;
quick) tests=$(awk '$2 == "quick" { print "tests/live/" $1 ".sh" }' tests/kernels/live.txt) ;;
refuses) tests=tests/kernels/refuses.sh ;;
all) tests=$(find tests/live -maxdepth 1 -name '*.sh' ! -name lib.sh | sort) ;;
*) tests=${1//,/ } ;;
esac
# A question about outputs costs a fork instead of the start of an interpreter.
export FBT_QUERY_SERVER=/run/query
python3 tests/kernels/query_server.py $FBT_QUERY_SERVER </dev/null >/dev/null 2>&1 &
server=$!
for _ in $(seq 60); do
	[ -S $FBT_QUERY_SERVER ] && break
	sleep 1
done
export PATH=$FBT_BUILD/made/bin:$PATH
passed=0
failed=0
skipped=0
for file in $tests tests/kernels/complaints.sh; do
	tests/run.sh "$file" >/run/one 2>&1
	sed '$d' /run/one
	read -r good _ bad _ skips _ <<<"$(tail -n 1 /run/one)"
	passed=$((passed + good))
	failed=$((failed + bad))
	skipped=$((skipped + ${skips:-0}))
done
kill $server
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
[ "$failed" = 0 ]
