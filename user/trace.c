/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace.h"

#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "loop.h"
#include "outputs.h"
#include "privilege.h"
#include "session.h"

/* No wakeups from the kernel: each would cost a traced thread 10 us. Half of what a ring must hold.
 */
#define POLL_NS	  (10 * 1000000ull)
#define STATUS_NS (1000 * 1000000ull)

static void run(struct loop *loop, struct session *session, struct outputs *outputs,
		const struct options *options)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t status_ns = start_ns + STATUS_NS;
	unsigned int news;

	while (!((news = loop__wait(loop)) & LOOP_END)) {
		session__poll(session);
		if (news & LOOP_MANUAL)
			session__escalate(session);
		outputs__poll(outputs);
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

		if (session__is_over(session) ||
		    (options->duration_ns && now_ns - start_ns >= options->duration_ns))
			break;
		if (now_ns >= status_ns) {
			outputs__show_status(outputs, now_ns);
			status_ns += STATUS_NS;
		}
	}
	loop__restore_signals(loop);
}

static void make_tag(char tag[64], uint32_t tgid)
{
	snprintf(tag, 64, "pid%u_%llu", tgid,
		 (unsigned long long)(clock_ns(CLOCK_REALTIME) / 1000000));
}

/*
 * 0, or -errno; *began tells whether there was a window, so that the outputs hold something.
 * Signals come through the loop only from here on: before, they end us, and nothing is attached.
 */
static int attach_and_run(struct session *session, struct outputs *outputs,
			  const struct options *options, const char *tag, bool *began)
{
	struct loop *loop;
	int err = loop__new(&loop);

	if (!err)
		err = loop__set_turn(loop, POLL_NS);
	if (!err)
		err = session__start(session, tag);
	*began = !err;
	if (!err) {
		run(loop, session, outputs, options);
		session__finish(session);
		err = outputs__finish(outputs);
	}
	loop__free(loop);
	return err;
}

int trace_run(const struct options *options, const struct metadata *metadata)
{
	/* Filled in once the outputs are open; the session sends nothing before it starts. */
	struct record_output records = {0};
	struct session *session = NULL;
	struct outputs *outputs = NULL;
	bool began = false;
	char tag[64];
	int err = privilege_check();

	if (!err)
		err = session__open(&session, options, &records, NULL);
	if (err)
		return err;
	make_tag(tag, session__main_tgid(session));
	err = outputs__open(&outputs, options, metadata, tag);
	if (!err) {
		records = outputs__records(outputs);
		err = attach_and_run(session, outputs, options, tag, &began);
	}
	session__free(session);
	if (began)
		outputs__free(outputs);
	else
		outputs__discard(outputs);
	return err;
}
