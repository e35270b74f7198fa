/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What was seen of threads from outside, in words. Pure. */
#ifndef FBT_JUDGE_LOOK_H
#define FBT_JUDGE_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include "base/format.h"
#include "judge/frames.h"
#include "model/step.h"
#include "model/window.h"

/* Room for a line about one group of threads. */
#define LOOK_GROUP_SIZE (FRAMES_SIZE + 160)
/* Groups that are shown of a hang; the JSON report has all. */
#define LOOK_GROUPS_SHOWN 8

/* "thread 7331 "kv-evict""; the name comes from the target: it is escaped. */
void look_add_thread(struct line *line, uint32_t tid, const struct window *window);

/* Threads that hold locks: the first one that of the waiter, each next one that of the one before.
 */
struct look_holders {
	const struct fbt_look_thread *threads;
	uint32_t count;
	bool is_call_said; /* the text before has named the call of the first one */
	/* The process for which the last one waited; NULL, or of another thread: none is known. */
	const struct step_peer *peer;
};

/*
 * ": clock_nanosleep for 19.8 ms in evict <- run (seen 20.0 ms into the wait), lock at 0x7f… held
 * by thread …". A stack that was taken of a thread that ran is "near" its functions.
 */
void look_add_holders(struct line *line, const struct look_holders *holders,
		      const struct window *window);

/* "12 threads in futex: a <- b <- c", or of one "thread 7331 "node" on a CPU: near f <- g". */
void look_describe_group(const struct fbt_look_thread *group, const struct window *window,
			 char text[LOOK_GROUP_SIZE]);

/* Room for those that are shown of a cause. */
#define LOOK_OTHERS_SIZE 2048

/* Groups of the other threads: "thread 7340 "io" in read for 180 ms: load_block; 12 others". */
void look_describe_others(const struct fbt_look_thread *others, uint32_t count,
			  const struct window *window, char text[LOOK_OTHERS_SIZE]);

/* The name of its call, "cpu", "cpu_wait", "stopped", "kernel", or "unknown". */
const char *look_doing_name(const struct fbt_look_thread *thread, const struct window *window,
			    char label[24]);

/* Its stack as that of a call, for frames_describe. */
void look_stack(const struct fbt_look_thread *thread, struct fbt_stack *stack);

bool look_has_script(const struct fbt_look_thread *thread, const struct window *window);

/*
 * Where a step made one of its calls: the stack that was copied at the end of the call; or, if
 * there is none, or if functions of a script are only there, the one that was seen while the call
 * was open. false: neither is known, and stack is empty.
 */
bool look_call_stack(const struct step *step, const struct window *window,
		     const struct fbt_call *call, struct fbt_stack *stack);

#endif
