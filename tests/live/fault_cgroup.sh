#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A cgroup that leaves the tool little memory (memory.max of a unit or container): the tool works,
# or says what is missing, or the kernel kills it. The target is in another group and continues, and
# the next trace attaches at once.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

truth=$TMP/truth.bin
group=

# make_group: creates $group, with its limit's file in $limit; cgroup v2, or v1 if v1 has the
# controller
make_group()
{
	local root

	for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/memory; do
		[ -w "$root/cgroup.procs" ] || continue
		echo +memory 2>/dev/null >"$root/cgroup.subtree_control"
		group=$root/fbt_test_$$
		mkdir "$group" 2>/dev/null || continue
		for limit in "$group/memory.max" "$group/memory.limit_in_bytes"; do
			[ -w "$limit" ] && return 0
		done
		rmdir "$group"
	done
	group=
	return 1
}

undo()
{
	[ -z "$group" ] || rmdir "$group"
}

if ! make_group; then
	echo 'SKIP no control group with a memory limit can be made here'
	exit 77
fi

# The kernel refuses a limit below what the trace before has left, until that is reclaimed (EBUSY).
set_limit()
{
	for _ in $(seq 100); do
		echo $(($1 << 20)) 2>/dev/null >"$limit" && return
		sleep 0.1
	done
	not_ok "a limit of $1 MiB can be set"
}

# limited MIB [OPTION…]: a trace with that much memory
limited()
{
	set_limit "$1"
	shift
	[ ! -w "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
	# shellcheck disable=SC2016
	timeout 200 sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		"$FBT" -p "$ENGINE" --step fault_step --detail all -d 1 --report json --trace "$OUT.trace" \
		--profile "$OUT.profile" --rate-guard 0 "${calm[@]}" "$@" >"$OUT.report" 2>"$OUT.err" </dev/null 7>&-
}

start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 2000 3
go
bad=0
said=0
killed=0
worked=0
for mib in 1 2 4 6 8 10 14 20 26 32 40 64 256 4096; do
	rm -f "${OUT:?}".*
	limited $mib
	status=$?
	case $status in
	0) "$FBT" validate -q "$OUT.trace" "$OUT.profile" && worked=$((worked + 1)) || bad=$((bad + 1)) ;;
	1) grep -q '^ferrum-bpftrace: ' "$OUT.err" && said=$((said + 1)) || bad=$((bad + 1)) ;;
	137) killed=$((killed + 1)) ;;
	*) bad=$((bad + 1)) ;;
	esac
	echo "# $mib MiB: status $status: $(head -1 "$OUT.err" | cut -c1-150)"
	kill -0 "$ENGINE" || break
done
echo "# $worked worked, $said said why not, $killed were killed"
limited 20
has 'no room for the rings: it says what to do' "$OUT.err" --ring-records
is 'with little memory it works, says why not, or is killed' $bad 0
holds 'enough is enough' [ $worked -gt 0 ]
holds 'too little is noticed' [ $((said + killed)) -gt 0 ]
holds 'the target goes on' kill -0 "$ENGINE"
"$FBT" -p "$ENGINE" --step fault_step -n 20 --report json --trace "$OUT.trace" --profile "$OUT.profile" \
	--rate-guard 0 "${calm[@]}" >"$OUT.report" 2>"$OUT.err" </dev/null
is 'the next trace attaches' $? 0
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wants, each of its calls as it should be' $? 0
finish
