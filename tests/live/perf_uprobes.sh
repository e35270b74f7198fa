#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The fallback of kernels before 6.6: perf uprobes instead of uprobe_multi.
. "$(dirname "$0")/lib.sh"

export FBT_UPROBES=perf
start_engine --steps 97 --recurse 1 --sleep-us 300
attach
holds 'step probes are perf events' [ "$(find "/proc/$TOOL/fd" -lname '*perf_event*' | wc -l)" -ge 2 ]
go
wait "$ENGINE"
end_tool
check_truth 'perf uprobes'
finish
