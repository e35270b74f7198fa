#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Two tracers of one target at once have the same results.
. "$(dirname "$0")/lib.sh"

start_engine --steps 211 --sleep-us 300 --noise 1
OUT=$TMP/first attach --detail all
first=$TOOL
OUT=$TMP/second attach --detail steps
go
wait "$ENGINE"
end_tool 0 'the second ends'
TOOL=$first
end_tool 0 'the first ends'
for run in first second; do
	OUT=$TMP/$run
	check_truth "$run"
done
finish
