/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The GPU side of a session: finds the shims of the traced processes, arms them, sends their
 * records on and says how things stand with each process (FBT_EVENT_GPU_STATE), once and at each
 * change.
 */
#ifndef FBT_GPU_LINK_H
#define FBT_GPU_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "option_gpu.h"
#include "record.h"

struct gpu_link;

/* output is borrowed. NULL: -ENOMEM. */
struct gpu_link *gpu_link__new(enum gpu_mode mode, const struct record_output *output);

/*
 * The same, with what the mode needs: a shim that can be injected. 0 or -errno, logged but for
 * -ENOMEM.
 */
int gpu_link__open(struct gpu_link **link, const struct option_gpu *options,
		   const struct record_output *output);

/* Disarms what is armed; waits for nothing but an injection (gpu_inject.h). */
void gpu_link__free(struct gpu_link *link);

/*
 * A process is traced; one that was taken before has called execve. Its shim may come later, when
 * it first uses CUDA: it is looked for every 100 ms, more seldom where that takes long and where
 * there are many processes (80 of them: once a second).
 */
void gpu_link__take(struct gpu_link *link, uint32_t tgid, uint64_t now_ns);

/* It has ended: the rest of its records is sent. */
void gpu_link__end(struct gpu_link *link, uint32_t tgid, uint64_t now_ns);

/* Looks for shims (reads /proc), sends what has come, and beats. Every few milliseconds. */
void gpu_link__poll(struct gpu_link *link, uint64_t now_ns);

/* Processes whose shim has been armed. */
size_t gpu_link__armed(const struct gpu_link *link);

/* Something was asked of a shim, and it has not answered yet. */
bool gpu_link__is_waiting(const struct gpu_link *link);

/*
 * --gpu require: 0; or -ENOENT, logged once, if no process was armed and none is waited for.
 * may_come: one may still use CUDA for the first time. 0 in other modes.
 */
int gpu_link__check(struct gpu_link *link, bool may_come);

/*
 * The window ends: disarms all, waits for their last records, at most two seconds, and sends them;
 * an injection that runs is waited for.
 */
void gpu_link__finish(struct gpu_link *link);

#endif
