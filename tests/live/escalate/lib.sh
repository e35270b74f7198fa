# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What tests of named steps share; sourced after lib.sh.

# A step that another program slows is rightly named, but is not the trouble under test. A storm of
# calls does not wait for a tool without a CPU. So tool and engine go first.
go_first FBT FBT_ENGINE

# Work in the middle of its class, which ranges from 2.1 to 4.2 ms.
steady='--steady --compute-us 3000 --sleep-us 200 --calls 1,2,1,2,2,1 --errors 0,0,0,0,0,0'
# The calls that are kept of a step are limited. 15 ms of them must far exceed its budget, whatever
# this machine adds to either.
short='--steady --compute-us 750 --sleep-us 200 --calls 1,2,1,2,2,1 --errors 0,0,0,0,0,0'
# The time of handlers and faults looks like work, and more work is no inefficiency. With a budget
# it is noticed.
one_class=(--step-arg 'depth=arg2' --class-by depth)

# named_exactly NAME: the steps in trouble are named, and of the others only those that the machine
# slowed, by the engine's own clock
named_exactly()
{
	fact "$1: every step of the engine was seen" \
		'[s["step"] for s in S] == list(range(1, T["steps"] + 1)) and W["incomplete_steps"] == 0'
	fact "$1: every step in trouble is named" 'due and due <= set(G)'
	echo "# $1: not named: $(q '[s for s in S if s["step"] in due - set(G)]')"
	named_no_other "$1"
}

# slowed [BUT]: the machine is the reason that a step is named. For an unsteady class the step took
# little more than usual, for a memory cliff it lost 30 % of its speed, else it took far more. Usual
# is what the tool had seen until then: later the host of a virtual machine may take more from all.
slowed()
{
	echo "set(G)${1:-} <= slower(1.15, 0.1) and cliffs${1:-} <= slower(1.4, 0.1) and
		inefficient${1:-} <= slower(3, 0.1)"
}

named_no_other()
{
	fact "$1: no other step is named" "$(slowed ' - troubled')"
	echo "# $1: the machine slowed and the tool named: $(q \
		'[(n, G[n]["escalation.reason"], G[n]["cause_evidence"], G[n]["us"]) for n in sorted(set(G) - troubled)]')"
}

# told NAME REASON CAUSE: checks the steps in trouble, except those that had to wait for a CPU too, or
# had none as the host of a virtual machine took it, by the engine's own account. A class that other programs make unsteady is a reason of its own.
told()
{
	local own="{n for n in due if '$3' == 'run_queue' or
		delay[n] * 10 <= T['threads'][0]['spans_ns'][n - 1][1] >= host[n] * 3}"

	fact "$1: the reason is $2" "$own and all('$2' in G[n]['fired'].split(',') and G[n]['escalation.reason'] ==
		('both' if '$2' == 'efficiency_low' and 'cv_exceeded' in G[n]['fired'] else '$2') for n in $own)"
	none "$1: the cause is $3" \
		"[(n, G[n]['cause'], G[n]['cause_evidence'], S[n - 1]['us']) for n in $own if G[n]['cause'] != '$3']"
}

# explained NAME: the step's calls in the trace explain the extra time
explained()
{
	# Includes timed page faults of the step, as after a fork, which are in no call; and what the
	# thread had no CPU, as the engine knows it.
	none "$1: its own calls in the trace explain the extra time" \
		'[(n, spent(n), delay[n], host[n], G[n]["us"], S[n - 1]["us"]) for n in due
		if spent(n) + sum(s["us"].get("faults", 0) + s["us"].get("disk_wait", 0)
			for s in S if s["step"] == n) + (delay[n] + host[n]) / 1000 <
			0.9 * (G[n]["us"]["actual"] - G[n]["us"]["budget"])]'
}

# trouble KIND REASON CAUSE [US [TOOL-OPTION…]]: usual holds the engine's other options, steady or
# short
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

# evidence NAME WORDS: the evidence of every step in trouble contains all of them
evidence()
{
	fact "$1: the evidence says $2" \
		"all(word in G[n]['cause_evidence'] for n in due for word in '$2'.split())"
}

# quiet NAME ENGINE-OPTIONS TOOL-OPTION…: no step is named except those that the machine slowed
quiet()
{
	local name=$1 options=$2

	shift 2
	trace_engine "$options" --ring-records 262144 "$@"
	fact "$name: no step is named" "$(slowed)"
	echo "# $name: of $(q 'T["steps"]') steps the machine slowed and the tool named $(q \
		'[(n, g["escalation.reason"], g["cause_evidence"], g["us"]) for n, g in G.items()]')"
}
