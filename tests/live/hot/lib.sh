# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What tests of the rate guard share; sourced after lib.sh. Their programs count in $TMP/counts.

# number N: the program's N-th number
number()
{
	od -An -tu8 -j$((8 * $1)) -N8 "$TMP/counts" | tr -d ' '
}

# exceeds N COUNT: whether the N-th number does; 0 while the program has not written any
# shellcheck disable=SC2317,SC2329 # wait_for calls it
exceeds()
{
	local now

	now=$(number "$1" 2>/dev/null)
	[ "${now:-0}" -gt "$2" ]
}

# await_calls N COUNT: until the N-th has made that many more calls
await_calls()
{
	wait_for 300 exceeds "$1" $(($(number "$1") + $2 - 1)) ||
		not_ok "the program makes its calls ($1)"
}
