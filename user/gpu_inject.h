/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * --gpu inject: which of the processes that lack a shim is given one when. One at a time, each once
 * in a window; and what became of it, in words.
 */
#ifndef FBT_GPU_INJECT_H
#define FBT_GPU_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include "inject_verdict.h"

/*
 * A process in which libcuda has just come may be in its first call of CUDA, which loads libraries
 * and starts threads for a while. The shim could be loaded then too, but nobody has tried all
 * drivers: it waits so long. Where libcuda was there when we came, and the process is older than
 * that, it is not waited.
 */
#define GPU_INJECT_SETTLE_NS 2000000000ull

struct gpu_inject;

struct gpu_injected {
	uint32_t tgid;
	bool loaded;		   /* the shim is there: it can be looked for */
	char why[INJECT_TEXT_MAX]; /* else why not; "" if the process is gone */
};

/* timeout_ns: to find a thread in each. 0; -ENOENT, logged: there is no shim to inject; -ENOMEM. */
int gpu_inject__new(struct gpu_inject **inject, uint64_t timeout_ns);

/* The same with a shim of that path, from malloc, which is taken over. NULL: -ENOMEM. */
struct gpu_inject *gpu_inject__new_for(char *shim, uint64_t timeout_ns);

/* Waits for a running injection, see inject__free. */
void gpu_inject__free(struct gpu_inject *inject);

/*
 * The process has been seen to lack a shim since since_ns; from_start: since it was first looked
 * at. Said again, it means nothing, until gpu_inject__forget.
 */
void gpu_inject__want(struct gpu_inject *inject, uint32_t tgid, uint64_t since_ns, bool from_start);

/* It has ended, or called execve: what is done to it has no answer. */
void gpu_inject__forget(struct gpu_inject *inject, uint32_t tgid);

/* A turn. Whether one is over: then *injected is set. */
bool gpu_inject__poll(struct gpu_inject *inject, uint64_t now_ns, struct gpu_injected *injected);

/* No more is begun, and a running one is waited for as long as inject__free would. */
void gpu_inject__finish(struct gpu_inject *inject);

#endif
