#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The use of each thread, compared with the kernel's counters read just outside and just inside of
# the window.
. "$(dirname "$0")/lib.sh"

# sample NAME: the counters of the engine's threads, and what the host has taken
sample()
{
	(cd "/proc/$ENGINE/task" && grep . -- */schedstat) >"$TMP/$1" 2>/dev/null
	awk '$1 == "cpu" { print "stolen", $9 }' /proc/stat >>"$TMP/$1"
}

start_engine --steps 0 --noise 2 --trouble threads --file "$TMP/file"
go
# shellcheck disable=SC2317,SC2329 # wait_for calls it
has_all()
{
	[ "$(find "/proc/$ENGINE/task" -mindepth 1 -maxdepth 1 | wc -l)" -ge 3 ]
}
wait_for 10 has_all
sample before
run_tool -p "$ENGINE" --step engine_step
wait_attached "$TOOL"
sample begun
sleep 2
sample ends
stop_tool
sample after
python3 tests/live/thread_uses.py "$OUT.report" "$ENGINE" "$TMP" || FAILED=1

run_tool -p "$ENGINE" --step engine_step --detail probes
wait_attached "$TOOL"
sleep 0.5
stop_tool
is 'no calls are traced: none is shown' \
	"$(grep -cE '"(calls|syscall_ns)"' "$OUT.report") $(grep -c '"cpu_wait_ns"' "$OUT.report" | sed 's/^[1-9].*/some/')" \
	'0 some'
finish
