#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A program that checks itself is injected again and again: by any thread, by each of its threads,
# and while other threads hold what loading a library needs. It must not be able to see any change.
#	INJECT_ROUNDS=100 INJECT_AIMED=5 INJECT_ALARMED=100 INJECT_NASTY=30
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inject/lib.sh"

: "${INJECT_ROUNDS:=100}" "${INJECT_AIMED:=$(at_length 5 20)}" "${INJECT_ALARMED:=100}" "${INJECT_NASTY:=30}"

# Calls that a mere stop would disturb.
never=(recv_waitall recv_timeo)
aimed=(nanosleep clock_relative clock_absolute poll poll_timed ppoll select select_timed pselect6
	epoll epoll_timed epoll_pwait epoll_pwait_t epoll_pwait2 read_pipe read_socket read_eventfd
	read_timerfd recvfrom recvmsg accept futex futex_timed futex_bitset semaphore condition wait4 math
	fibre_8k fibre_4k altstack s_nanosleep r_nanosleep s_clock_absolut r_clock_absolut s_poll_timed
	r_poll_timed s_epoll r_epoll s_read_pipe r_read_pipe s_futex r_futex)

start_target
drive
is 'the first time: it is loaded' "$(ask '[r["ok"] or r for r in R]')" '[True]'
held=$(count_held)
drive -n "$INJECT_ROUNDS" -T 60
is "any thread, $INJECT_ROUNDS times: it is loaded" \
	"$(ask 'sum(r["ok"] for r in R), [r for r in R if not r["ok"]][:2]')" "($INJECT_ROUNDS, [])"
is 'any thread: it was called as often' "$(count_probes)" $((INJECT_ROUNDS + 1))
ask '"# stopped for %.0f us at the median, %.0f us at most" % (
	(s := sorted(r["stop_us"] for r in R))[len(s) // 2], s[-1])'
back_to 'any thread' "$held"
is_clean 'any thread'

loaded=0
for name in "${aimed[@]}"; do
	drive -n "$INJECT_AIMED" -T 60 -t "$(thread_of "$name")"
	loaded=$((loaded + INJECT_AIMED))
	is "$name, $INJECT_AIMED times: it is loaded" \
		"$(ask 'sum(r["ok"] for r in R), [r for r in R if not r["ok"]][:2]')" "($INJECT_AIMED, [])"
done
is 'each thread: it was called as often' "$(count_probes)" $((loaded + INJECT_ROUNDS + 1))

# A signal every millisecond, which often comes while the thread is not in its call.
report_target
before=$(ask 'N["a_epoll"]["eintr_lost"]')
drive -n "$INJECT_ALARMED" -T 60 -t "$(thread_of a_epoll)"
is "alarmed, $INJECT_ALARMED times: it is loaded" \
	"$(ask 'sum(r["ok"] for r in R), [r for r in R if not r["ok"]][:2]')" "($INJECT_ALARMED, [])"
report_target
lost=$(($(ask 'N["a_epoll"]["eintr_lost"]') - before))
echo "# alarmed: after $lost handlers the call went on"
holds 'alarmed: hardly a handler is overlooked' [ $lost -le $((1 + INJECT_ALARMED / 100)) ]
for name in "${never[@]}"; do
	drive -T 0.3 -t "$(thread_of "$name")"
	is "$name is never taken" "$(ask '[r["status"] for r in R]')" "['no_thread']"
done
back_to 'each thread' "$held"
end_target 'each thread'
is 'each thread: nobody has seen an EINTR for nothing' "$(ask 'T["eintr_stray"]')" 0
for with in dlopen malloc threads setuid fork; do
	start_target --with $with
	drive -T 60
	held=$(count_held)
	drive -n "$INJECT_NASTY" -T 60
	is "$with, $INJECT_NASTY times: it is loaded" \
		"$(ask 'sum(r["ok"] for r in R), [r for r in R if not r["ok"]][:2]')" "($INJECT_NASTY, [])"
	back_to "$with" "$held"
	end_target "$with"
	is "$with: it was called as often" "$(count_probes)" $((INJECT_NASTY + 1))
done
finish
