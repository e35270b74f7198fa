#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Steps that wait for another process, by memory, a pipe or a socket, spinning or asleep: told as one
# wait, for that process, and with what that did meanwhile. Counts are those of the program.
. "$(dirname "$0")/lib.sh"

[ "$(nproc)" -ge 2 ] || { echo 'SKIP needs two CPUs' && exit 77; }
chrt -f 1 true 2>/dev/null || { echo 'SKIP real-time priorities are not allowed' && exit 77; }
# A tool that has no CPU sees nothing of what others do meanwhile.
go_first FBT
# shellcheck disable=SC2317,SC2329 # called by name
undo()
{
	rm -f "/dev/shm/fbt_peers_${ENGINE:-}"
}
rounds=$(at_length 4 16)
read -ra ways <<<"${PEERS_WAYS:-yield nap poll futex futex_long pipe socket}"

for way in "${ways[@]}"; do
	rm -f "${OUT:?}".*
	start_program peers "$way" "$rounds"
	case $way in
	yield) has "$way: the processes share a memfd" "/proc/$ENGINE/maps" 'rw-s .*/memfd:fbt_peers' ;;
	nap) has "$way: the processes share a file in /dev/shm" "/proc/$ENGINE/maps" 'rw-s .*/dev/shm/fbt_peers_' ;;
	esac
	attach --step waiting_step --record "$OUT.capture"
	go
	wait "$ENGINE"
	end_tool 0 "$way: the tool ends with 0"
	"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok "$way: a capture"
	python3 tests/live/peers.py "$TMP/truth.json" "$OUT.profile" "$OUT.json" "$way" \
		"$OUT.report" >"$OUT.facts" ||
		FAILED=1
	sed "s/ok - /ok - $way: /" "$OUT.facts"
	fact "$way: the table has the program's own number of calls" \
		"sum(s['calls'] for s in T['steps']) <= sum(table.values())"
	holds "$way: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
	"$FBT" --replay "$OUT.capture" --report json --trace none --profile "$OUT.again" \
		>/dev/null 2>&1
	is "$way: the capture has the same verdicts" \
		"$(grep '"escalation_prof"' "$OUT.again" | grep -o '"cause_evidence":"[^"]*"')" \
		"$(grep '"escalation_prof"' "$OUT.profile" | grep -o '"cause_evidence":"[^"]*"')"
done

# The same with the other process traced too: it is in a step of its own. All calls have a record
# then, those outside of steps too; an independent tracer counts them.
rm -f "${OUT:?}".*
start_program peers yield 1
wait_for 30 pgrep -P "$ENGINE" the-peer >"$TMP/peer"
peer=$(cat "$TMP/peer")
run_tool -p "$ENGINE" -p "$peer" --step waiting_step --step peer_step --detail all \
	--record "$OUT.capture"
wait_attached "$TOOL"
counter=
if bpftrace -l tracepoint:syscalls:sys_exit_sched_yield 2>/dev/null | grep -q sched_yield; then
	bpftrace -e "$(counter_ends "$(counter_code 0)")
		BEGIN { printf(\"counting\n\"); }
		tracepoint:syscalls:sys_exit_sched_yield /pid == $ENGINE/ { @yields = count(); }" \
		>"$TMP/counts" 2>&1 7>&- </dev/null &
	counter=$!
	wait_for 60 grep -qs counting "$TMP/counts"
fi
go
wait "$ENGINE"
end_tool 0 'traced: the tool ends with 0'
fact 'traced: nothing is lost' 'lost == 0'
fact 'traced: the peer is named with its step' \
	"{h.get('peer_step') for h in H.values() if h['pid'] == $ENGINE and h['cause'] == 'peer_process' and
		h['peer_did'] in ('stopped', 'asleep')} == {'peer_step'}"
behind="[h for n, h in H.items() if h['pid'] == $ENGINE and
	T['steps'][h['kind_number'] - 1]['trouble'] == 'behind']"
fact 'traced: the process behind the peer is named too' \
	"[h.get('peer_beyond_pid') for h in $behind] == [T['source']]"
fact 'traced: in words, and what that did' \
	"[' and waited for the-source (pid %d), which was in clock_nanosleep' % T['source'] in h['cause_evidence']
		for h in $behind] == [True]"
fact 'traced: the step of the peer itself waited for that process' \
	"{h.get('peer_pid') for h in H.values() if h['pid'] == $peer and h['cause'] == 'peer_process'} == {T['source']}"
none 'traced: where the peer waits for nobody, nobody is behind it' \
	"[h for n, h in H.items() if h['pid'] == $ENGINE and 'peer_beyond_pid' in h and
		T['steps'][h['kind_number'] - 1]['trouble'] != 'behind']"
is 'traced: each call of the table has a record' \
	"$(python3 tests/live/count_records.py "$OUT.capture")" "$(q 'sum(sum(t.values()) for t in tables.values())')"
if [ -n "$counter" ]; then
	end_counter "$(counter_code 0)" $counter
	is 'traced: the table has as many sched_yield as bpftrace counted' \
		"$(q 'table["sched_yield"]')" "$(sed -n 's/^@yields: //p' "$TMP/counts")"
else
	echo 'SKIP the calls of the table: there is no bpftrace to count beside'
fi

# Waits that end before anybody has looked at the other process for long enough: its own steps tell
# what it did. It computes in one of them, which is work.
rm -f "${OUT:?}".*
start_program peers yield "$rounds" 12
wait_for 30 pgrep -P "$ENGINE" the-peer >"$TMP/peer"
peer=$(cat "$TMP/peer")
run_tool -p "$ENGINE" -p "$peer" --step waiting_step --step peer_step --record "$OUT.capture"
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool 0 'short: the tool ends with 0'
rows="[(t['trouble'], t['ns'], next((h for h in H.values()
	if h['pid'] == $ENGINE and h['kind_number'] == n), None))
	for n, t in enumerate(T['steps'], 1) if t['trouble'] != 'none']"
fact 'short: nothing is lost' 'lost == 0'
fact 'short: a process that slept, or had no CPU, is named with its step' \
	"[(w, ns, h and (h['cause'], h['cause_evidence'])) for w, ns, h in $rows
		if w in ('sleeps', 'starved') and not (h and h['cause'] == 'peer_process' and
			h['peer_pid'] == $peer and h['peer_step'] == 'peer_step' and
			h['peer_did'] == {'sleeps': 'asleep', 'starved': 'no_cpu'}[w])] == []"
none 'short: one that computed in its step is no escalation, unless it had no CPU for most of that' \
	"[(ns, h['cause'], h['cause_evidence']) for w, ns, h in $rows
		if w == 'computes' and h and ns < 18e6]"
finish
