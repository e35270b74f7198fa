/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A window with one engine, and steps of it. Include after cmocka.h. */
#ifndef FBT_METRICS_FIXTURE_H
#define FBT_METRICS_FIXTURE_H

#include <stdio.h>
#include "metrics/tally.h"

#define ENGINE_PID 7

static inline struct window *window_at(uint64_t start_ns)
{
	const char *strings[WINDOW_STRINGS] = {"tag", "1", "6.1", "host"};
	struct fbt_window record = {
		.header = {.size = sizeof(record), .type = FBT_EVENT_WINDOW},
		.start_ns = start_ns,
		.realtime_ns = UINT64_C(1700000000000000000),
	};
	struct window *window = window__new();

	assert_non_null(window);
	assert_int_equal(window__open(window, &record, strings), 0);
	return window;
}

static inline void add_process(struct window *window, uint32_t tgid, const char *comm,
			       const char *cmdline)
{
	struct fbt_target target = {.tgid = tgid, .start_ns = window->record.start_ns};

	assert_int_equal(window__add_process(window, &target, comm, "/e", cmdline), 0);
}

static inline void add_kind(struct window *window, uint32_t number, const char *name)
{
	const char *args[FBT_ARG_COUNT] = {NULL};
	struct fbt_kind kind = {.kind = number};

	for (int i = 0; i < FBT_ARG_COUNT; i++)
		args[i] = "";
	assert_int_equal(window__add_kind(window, &kind, name, "/e", args), 0);
}

static inline struct step step_of(uint32_t tgid, uint32_t kind, uint64_t start_ns, uint64_t ns)
{
	return (struct step){
		.complete = true,
		.record = {.tgid = tgid,
			   .tid = tgid,
			   .kind = kind,
			   .start_ns = start_ns,
			   .end_ns = start_ns + ns,
			   .thread_ns = ns},
	};
}

#endif
