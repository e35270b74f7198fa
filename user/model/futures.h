/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Joins the polls of a future to one step: an async function of Rust runs as a series of calls, of
 * which each but the last returns where it awaits something, on any thread of its executor.
 */
#ifndef FBT_MODEL_FUTURES_H
#define FBT_MODEL_FUTURES_H

#include "model/step.h"

/*
 * Futures that await at one time. Of one more, the one that was polled least recently is taken for
 * dropped: a cancelled future is never polled again, and nobody says so.
 */
#define FUTURES_MAX 4096
/* Calls that are kept of them; of more, steps have calls_truncated. */
#define FUTURES_CALLS_MAX 262144

struct futures;

/*
 * on_step is given each step that has ended; it may take the calls and wakes out of it. It returns
 * 0 or -errno, which is passed up. NULL: -ENOMEM.
 */
struct futures *futures__new(int (*on_step)(void *ctx, struct step *step), void *ctx);
void futures__free(struct futures *futures);

/*
 * The next poll (FBT_STEP_POLL), by time of its end, with its calls; they are taken out of it. The
 * step ends with the poll after which the future is ready. It is unwound if the future panicked, or
 * was dropped, which shows when another one begins at its address: then it ends with its last poll.
 * Polls of a future that began before the window are no steps: *late counts them. 0 or the first
 * -errno.
 */
int futures__take(struct futures *futures, struct step *poll, uint64_t *late);

/* The process has ended or called execve: its futures end there. */
int futures__end_process(struct futures *futures, uint32_t tgid, uint64_t time_ns);

/* The window ends: what still awaits is truncated. */
int futures__flush(struct futures *futures, uint64_t time_ns);

size_t futures__count(const struct futures *futures); /* that await */

#endif
