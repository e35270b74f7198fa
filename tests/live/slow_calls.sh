#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Stacks of slow calls of a program in C: which functions made them, and who ended them. What the
# frames are held against is in stacks.sh.
. "$(dirname "$0")/lib.sh"

start_program slow_calls 200
run_tool -p "$ENGINE" --step slow_step
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'pause: the functions below the step' \
	"any(g.get('cause_stack') == 'inner_pause <- outer_pause <- slow_step' for g in G.values() if g['cause'] == 'sleep')"
fact 'lock: the function that waits for it' \
	"any(g.get('cause_stack') == 'take_lock <- slow_step' for g in G.values() if g['cause'] == 'lock_contention')"
fact 'lock: the function that gave it back' \
	"any(g.get('waker_stack', '').startswith('hold_lock+0x') for g in G.values() if g['cause'] == 'lock_contention')"
fact 'each stack ends with the step' \
	"all(g['cause_stack'].split(' <- ')[-1].split(' (')[0] == 'slow_step' for g in G.values() if 'cause_stack' in g)"

# The report counts them, and that of those who ended a wait too.
start_program slow_calls 200
run_tool -p "$ENGINE" --step slow_step --report json
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'each slow call has a stack, or is counted' 'R["stacks"] + R["stacks_skipped"] >= T["slow"] == 20'

# More of them than may be copied in a turn of the kernel side, which takes 1.07 s.
rm -f "${OUT:?}".*
start_program slow_calls 80 storm
run_tool -p "$ENGINE" --step storm_step
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'a storm: at most 50 stacks a turn' '16 <= R["stacks"] <= 50 * T["turns"]'
fact 'a storm: each of the calls has a stack, or is counted' \
	'R["stacks"] + R["stacks_skipped"] >= T["slow"] == 200'
# On an emulated machine it takes so long that there is room for all.
fact 'a storm: there are some without one' 'R["stacks_skipped"] > 0 or T["turns"] >= 4'
fact 'a storm: no record of a call is lost' \
	'lost == 0'
finish
