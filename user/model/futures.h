/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Joins the polls of a future to one step. An async function of Rust runs as a series of calls, on
 * any threads of its executor. Each call but the last returns where the function awaits something.
 */
#ifndef FBT_MODEL_FUTURES_H
#define FBT_MODEL_FUTURES_H

#include "model/step.h"

/*
 * Most futures that await at one time. If there is one more, the future that was polled least
 * recently counts as dropped: a cancelled future is never polled again, and nothing announces that.
 */
#define FUTURES_MAX 4096
/*
 * Most calls that are kept for these futures. Beyond that, the future that has most loses the later
 * half of them, and its step has calls_truncated set.
 */
#define FUTURES_CALLS_MAX 262144
/*
 * Most wakes, stacks, peers, looks and wokens: of each kind in one future, and of all kinds in all
 * futures, some 40 MiB. Beyond that, the same.
 */
#define FUTURE_BESIDE_MAX  4096
#define FUTURES_BESIDE_MAX 65536

struct futures;

/*
 * on_step is given each step that has ended; it may take the calls and wakes out of it. It returns
 * 0 or -errno, which is passed up. NULL: -ENOMEM.
 */
struct futures *futures__new(int (*on_step)(void *ctx, struct step *step), void *ctx);
void futures__free(struct futures *futures);

/*
 * Takes the next poll (FBT_STEP_POLL), in the order in which polls end, and moves its calls out of
 * it. The step ends with the poll after which the future is ready. It is unwound if the future
 * panicked or was dropped. A drop shows only when another future begins at the same address; the
 * step then ends with its last poll. Polls of a future that began before the window belong to no
 * step: *late counts them. If the probes were off while the future awaited, its step is truncated,
 * which cut counts by kind, and *late counts its later polls. 0 or the first -errno.
 */
int futures__take(struct futures *futures, struct step *poll, uint64_t *late, uint64_t *cut);

/* The process has ended or called execve at time_ns: its futures end then. */
int futures__end_process(struct futures *futures, uint32_t tgid, uint64_t time_ns);

/* The window ends: the steps of futures that still await are truncated. */
int futures__flush(struct futures *futures, uint64_t time_ns);

size_t futures__count(const struct futures *futures); /* that await */

#endif
