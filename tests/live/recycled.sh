#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What has the number and the kernel stack of a thread that has ended is not taken for it.
. "$(dirname "$0")/lib.sh"

start_program recycled 300 7
run_tool -q -p "$ENGINE" --step my_step --detail all "${calm[@]}"
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool 0 'a clean end'
recycled=$(q 'T["recycled"]')
echo "# $recycled of 300 numbers were used again"
[ "$recycled" != 0 ] || { echo 'SKIP processes cannot be given a number here' && exit 77; }
fact 'every step is seen' 'len(S) == T["rounds"] and all(s["calls"] == 7 for s in S)'
fact 'the table has the calls of the threads that are traced' 'table["getppid"] == T["getppid"]'
fact 'and none of those that are not' '"getsid" not in table'
fact 'none was missed' 'W["lost_threads"] == 0'
finish
