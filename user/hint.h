/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * When no step is seen: what else could be one. Finding candidates takes long in a large process,
 * so a child does it, this very program with --list-steps, while the window goes on.
 */
#ifndef FBT_HINT_H
#define FBT_HINT_H

#include <stdbool.h>
#include <stdint.h>
#include "options.h"

struct broker_order;
struct hint;

/* The child, where a broker starts it: struct broker_task, its ctx are the options. */
void hint_run(const void *options, const struct broker_order *order, int output);

/* NULL: it cannot be started, which is logged, or nobody would hear it. */
struct hint *hint__begin(const struct options *options, uint32_t tgid);

/* The same with another program, for tests. */
struct hint *hint__begin_with(const char *program, const struct options *options, uint32_t tgid);

/* Never waits. True once it has said what it has to say; then it is to be freed. */
bool hint__check(struct hint *hint);

/* Of a window: when one is given, and while it is. */
struct hint_wait {
	uint64_t due_ns; /* 0: it was */
	struct hint *hint;
};

/*
 * True once, when it is due: where no step has begun until then, a hint is to begin. Nothing
 * silently measures a function that is never called; but one call of it may well take that long.
 */
bool hint_wait_turn(struct hint_wait *wait, uint64_t now_ns);

/* Ends the child if it still runs, without waiting until all its probes are gone. */
void hint__free(struct hint *hint);

#endif
