#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The fallback for kernels before 6.6: perf uprobes instead of uprobe_multi.
. "$(dirname "$0")/lib.sh"

export FBT_UPROBES=perf
start_engine --steps 97 --recurse 1 --sleep-us 300
attach
holds 'step probes are perf events' [ "$(find "/proc/$TOOL/fd" -lname '*perf_event*' | wc -l)" -ge 2 ]
go
wait "$ENGINE"
end_tool
check_truth 'perf uprobes'

# These probes are set after the tool has given up its rights.
rm -f "${OUT:?}".*
run_tool --step engine_step -- "$FBT_ENGINE" --steps 23 --sleep-us 300
end_tool
is 'COMMAND: nothing is refused' "$(grep -c 'attach:' "$OUT.err")" 0
fact 'COMMAND: all its steps' 'len(S) == 23'

# Kernels of 2025 and later, and stable releases of that time, want more than CAP_PERFMON for perf
# uprobes.
start_engine --steps 0 --sleep-us 1000
rights=+bpf,+perfmon,+sys_ptrace,+dac_read_search,+dac_override,+checkpoint_restore
setpriv --bounding-set="-all,$rights" --inh-caps="-all,$rights" \
	"$FBT" -p "$ENGINE" --step engine_step -d 0.2 --trace none --profile none \
	>"$OUT.report" 2>"$OUT.err" 7>&- </dev/null
status=$?
if [ $status = 0 ]; then
	ok 'without CAP_SYS_ADMIN: this kernel allows it'
else
	is 'without CAP_SYS_ADMIN: exit status 1' $status 1
	has 'without CAP_SYS_ADMIN: that is said' "$OUT.err" 'uprobes only with CAP_SYS_ADMIN'
fi
finish
