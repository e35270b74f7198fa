/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The kinds of threads. */
#ifndef INJECT_KINDS_H
#define INJECT_KINDS_H

#include "inject_reads.h"
#include "inject_signals.h"

static void feeder_check(struct worker *w, long result)
{
	struct target *target = w->target;

	expect(w, "result", (uint64_t)result, 0);
	for (size_t i = 0; i < target->count; i++) {
		struct worker *to = target->workers[i];
		bool half = to->kind->feed == feed_half && to->sent % 2;

		if (!to->tid || !to->kind->feed || to->sent - to->received >= 4 ||
		    (target->stopping && !half) || random_below(w, 6))
			continue;
		if (to->kind->feed(to))
			atomic_fetch_add(&to->sent, 1);
	}
}

#define CALLS(called, restarts, times, first, before, after, by)                                   \
	.name = (called), .restart = RESTART_##restarts, .timing = TIMING_##times,                 \
	.set_up = (first), .prepare = (before), .check = (after), .feed = (by)

static const struct kind kinds[] = {
	{CALLS("nanosleep", NO_HAND, EXACT, NULL, nanosleep_prepare, expect_zero, NULL)},
	{CALLS("poll_timed", NO_HAND, EXACT, quiet_pipe, poll_prepare, expect_zero, NULL)},
	{CALLS("read_pipe", SA, NONE, pipe_set_up, read_prepare, number_check, feed_number)},
	{CALLS("futex", SA, NONE, NULL, futex_prepare, futex_check, feed_word)},
	{CALLS("feeder", NO_HAND, NONE, NULL, tick_prepare, feeder_check, NULL)},
	/* A light program only has the kinds above. */
	{CALLS("sender", NO_HAND, NONE, NULL, tick_prepare, sender_check, NULL)},
	{CALLS("clock_relative", NO_HAND, EXACT, NULL, clock_relative_prepare, expect_zero, NULL)},
	{CALLS("clock_absolute", NO_HAND, EXACT, NULL, clock_absolute_prepare, expect_zero, NULL)},
	{CALLS("poll", NO_HAND, NONE, pipe_set_up, poll_endless_prepare, ready_check, feed_number)},
	{CALLS("ppoll", NO_HAND, EXACT, quiet_pipe, ppoll_prepare, expect_zero, NULL)},
	{CALLS("select_timed", NO_HAND, EXACT, NULL, select_prepare, expect_zero, NULL)},
	{CALLS("select", NO_HAND, NONE, pipe_set_up, select_endless_prepare, ready_check,
	       feed_number)},
	{CALLS("pselect6", NO_HAND, EXACT, quiet_pipe, pselect_prepare, expect_zero, NULL)},
	{CALLS("epoll_timed", FINAL, LATE, quiet_epoll, epoll_prepare, expect_zero, NULL)},
	{CALLS("epoll", FINAL, NONE, quiet_epoll, epoll_endless_prepare, ready_check, feed_number)},
	{CALLS("epoll_pwait", FINAL, NONE, quiet_epoll, epoll_pwait_endless_prepare, ready_check,
	       feed_number)},
	{CALLS("epoll_pwait_t", FINAL, LATE, quiet_epoll, epoll_pwait_prepare, expect_zero, NULL)},
	{CALLS("epoll_pwait2", FINAL, LATE, quiet_epoll, epoll_pwait2_prepare, expect_zero, NULL)},
	{CALLS("read_socket", SA, NONE, stream_set_up, read_prepare, number_check, feed_number)},
	{CALLS("read_eventfd", SA, NONE, eventfd_set_up, read_prepare, eventfd_check, feed_one)},
	{CALLS("read_timerfd", SA, EXACT, timer_set_up, timer_prepare, timer_check, NULL)},
	{CALLS("recvfrom", SA, NONE, datagram_set_up, recvfrom_prepare, number_check, feed_number)},
	{CALLS("recvmsg", SA, NONE, datagram_set_up, recvmsg_prepare, number_check, feed_number)},
	{CALLS("recv_waitall", SA, NONE, stream_set_up, waitall_prepare, waitall_check, feed_half)},
	{CALLS("recv_timeo", FINAL, JIFFY, rcvtimeo_set_up, rcvtimeo_prepare, rcvtimeo_check,
	       NULL)},
	{CALLS("accept", SA, NONE, accept_set_up, accept_prepare, accept_check, feed_connection)},
	{CALLS("futex_timed", NO_HAND, EXACT, NULL, futex_relative_prepare, expect_timed_out,
	       NULL)},
	{CALLS("futex_bitset", NO_HAND, EXACT, NULL, futex_absolute_prepare, expect_timed_out,
	       NULL)},
	{CALLS("wait4", SA, NONE, NULL, child_prepare, child_check, NULL)},
	{CALLS("math", NO_HAND, NONE, NULL, nanosleep_prepare, math_check, NULL)},
	{.name = "semaphore",
	 .restart = RESTART_NO_HAND,
	 .timing = TIMING_EXACT,
	 .set_up = semaphore_set_up,
	 .plain = semaphore_plain},
	{.name = "condition",
	 .restart = RESTART_NO_HAND,
	 .timing = TIMING_EXACT,
	 .set_up = condition_set_up,
	 .plain = condition_plain},
	{CALLS("fibre_8k", NO_HAND, EXACT, NULL, nanosleep_prepare, expect_zero, NULL),
	 .stack = 8192},
	{CALLS("fibre_4k", NO_HAND, NONE, pipe_set_up, poll_endless_prepare, ready_check,
	       feed_number),
	 .stack = 4096},
	{CALLS("altstack", SA, NONE, pipe_set_up, read_prepare, number_check, feed_number),
	 .stack = 65536, .alternate = true},
};

#define KINDS	    (sizeof(kinds) / sizeof(kinds[0]))
#define LIGHT_KINDS 5

static const char *const signal_kinds[] = {"nanosleep", "clock_absolute", "poll_timed",
					   "epoll",	"read_pipe",	  "futex"};

static const struct kind *find_kind(const struct kind *from, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(from[i].name, name))
			return &from[i];
	return NULL;
}

#endif
