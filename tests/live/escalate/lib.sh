# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What tests of named steps share; sourced after lib.sh.

# A step that its neighbours on this machine slow is rightly named, but not our trouble, and a storm of
# calls waits for no tool that has no CPU.
go_first FBT FBT_ENGINE

# Work in the middle of its class, which goes from 2.1 to 4.2 ms.
steady='--steady --compute-us 3000 --sleep-us 200 --calls 1,2,1,2,2,1 --errors 0,0,0,0,0,0'
# Calls that a step keeps are limited, and 15 ms of them must be far above its budget, whatever this
# machine adds to either.
short='--steady --compute-us 750 --sleep-us 200 --calls 1,2,1,2,2,1 --errors 0,0,0,0,0,0'
# What handlers and faults take looks like work, of which more is no inefficiency: a budget shows it.
one_class=(--step-arg 'depth=arg2' --class-by depth)

# named_exactly NAME: the steps in trouble, and of the others only those that the machine made slow, by
# the engine's own clock
named_exactly()
{
	fact "$1: every step of the engine was seen" \
		'[s["step"] for s in S] == list(range(1, T["steps"] + 1)) and W["incomplete_steps"] == 0'
	fact "$1: every step in trouble is named" 'due and due <= set(G)'
	echo "# $1: not named: $(q '[s for s in S if s["step"] in due - set(G)]')"
	named_no_other "$1"
}

# slowed [BUT]: the machine is why steps are named: of an unsteady class one that took little more than
# usual, of a memory cliff one that lost 30 % of its speed, else one that took far more.
slowed()
{
	echo "set(G)${1:-} <= slower(1.15) and cliffs${1:-} <= slower(1.4) and inefficient${1:-} <= slower(3)"
}

named_no_other()
{
	fact "$1: no other step is named" "$(slowed ' - troubled')"
	echo "# $1: the machine slowed and the tool named: $(q \
		'[(n, G[n]["escalation.reason"], G[n]["cause_evidence"], G[n]["us"]) for n in sorted(set(G) - troubled)]')"
}

# told NAME REASON CAUSE: of the steps in trouble, all but those that this machine besides let wait for
# a CPU, which the kernel has counted. A class that other programs make unsteady is a reason of its own.
told()
{
	local own="{s['step'] for s in S if s['step'] in due and
		('$3' == 'run_queue' or s['us']['run_delay'] * 10 <= s['us']['total'])}"

	fact "$1: the reason is $2" "$own and all('$2' in G[n]['fired'].split(',') and G[n]['escalation.reason'] ==
		('both' if '$2' == 'efficiency_low' and 'cv_exceeded' in G[n]['fired'] else '$2') for n in $own)"
	fact "$1: the cause is $3" "{G[n]['cause'] for n in $own} == {'$3'}"
}

# explained NAME: the calls of the step, found in the trace, are what it took too long
explained()
{
	# With page faults of the step that were timed, as after a fork: they are in no call.
	fact "$1: its own calls in the trace explain the extra time" \
		'all(spent(n) + sum(s["us"].get("faults", 0) + s["us"].get("disk_wait", 0)
			for s in S if s["step"] == n) >=
			0.9 * (G[n]["us"]["actual"] - G[n]["us"]["budget"]) for n in due)'
}

# trouble KIND REASON CAUSE [US [TOOL-OPTION…]], of the engine's usual: steady, or short
usual=$steady
trouble()
{
	local kind=$1 reason=$2 cause=$3 us=${4:-50000}

	shift $(($# < 4 ? $# : 4))
	trace_engine "$usual --steps 130 --trouble $kind --trouble-us $us --file $TMP/file" \
		--ring-records 262144 "$@"
	named_exactly "$kind"
	told "$kind" "$reason" "$cause"
}

# evidence NAME WORDS: all of them in the evidence of every step in trouble
evidence()
{
	fact "$1: the evidence says $2" \
		"all(word in G[n]['cause_evidence'] for n in due for word in '$2'.split())"
}

# quiet NAME ENGINE-OPTIONS TOOL-OPTION…: nothing is named but what the machine did
quiet()
{
	local name=$1 options=$2

	shift 2
	trace_engine "$options" --ring-records 262144 "$@"
	fact "$name: no step is named" "$(slowed)"
	echo "# $name: of $(q 'T["steps"]') steps the machine slowed and the tool named $(q \
		'[(n, g["escalation.reason"], g["cause_evidence"], g["us"]) for n, g in G.items()]')"
}
