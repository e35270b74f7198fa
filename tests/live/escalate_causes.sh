#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Each trouble of the engine is named on the steps that suffered from it and on no others. Engines
# with mixed work or with more work give no escalation. Also with less detail of calls.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/escalate/lib.sh
. tests/live/escalate/lib.sh

trouble mmap memory_cliff allocation_churn
explained mmap
# If the host takes the CPU for 0.3 of the 15 ms, the step moves to another class of work.
usual=$short
trouble write efficiency_low tiny_writes 15000 "${one_class[@]}"
evidence write "$TMP/file"
trouble pipe efficiency_low tiny_writes 15000 "${one_class[@]}"
trouble ioctl efficiency_low driver_calls 12000 "${one_class[@]}"
evidence ioctl '0xc020462a'
usual=$steady
trouble bigwrite efficiency_low file_io
explained bigwrite
evidence bigwrite "$TMP/file"
trouble fileread efficiency_low file_io
explained fileread
evidence fileread "$TMP/file"
trouble threads efficiency_low thread_churn
explained threads
trouble processes efficiency_low thread_churn
explained processes
# Another thread takes the CPU with a higher real-time priority.
if chrt -f 1 true 2>/dev/null; then
	trouble runqueue efficiency_low run_queue
else
	echo 'SKIP runqueue: no thread may go first here'
fi
trouble signals efficiency_low signal_storm 50000 "${one_class[@]}" --budget-us 8000
trouble faults efficiency_low page_faults 50000 "${one_class[@]}" --budget-us 8000

quiet 'steady at length' "$steady --steps 1000"
quiet 'mixed work' "--steady --steps 1000 --compute-us 500 --mixed-us 9000 --sleep-us 200"
quiet 'more work' "$steady --steps 130 --trouble compute"

# Without call records, the categories still tell the cause.
trace_engine "$steady --steps 130 --trouble lock" --detail steps
named_exactly 'detail steps'
told 'detail steps' efficiency_low lock_contention
fact 'detail steps: no calls' '{x["cat"] for x in X} == {"step", "escalation"}'
fact 'detail steps: no call is said to be the worst' 'all(not G[n].get("worst_call") for n in due)'
trace_engine "$steady --steps 130 --trouble lock" --detail all
named_exactly 'detail all'
told 'detail all' efficiency_low lock_contention
explained 'detail all'
finish
