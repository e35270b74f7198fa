/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Samples where threads compute in their steps, each thread by an event of its CPU clock. */
#ifndef FBT_STREAM_SAMPLER_H
#define FBT_STREAM_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

/* Threads at once: their samples share the places for stacks with slow calls. */
#define SAMPLER_THREADS 4
/* A second of CPU time. A prime, so that nothing regular is missed. */
#define SAMPLER_HZ 199

struct sampler {
	uint32_t tids[SAMPLER_THREADS];
	int fds[SAMPLER_THREADS];
	uint32_t count; /* of threads */
};

/* program is a descriptor. 0, also if it is sampled already; -ENOSPC; -ESRCH; or another -errno. */
int sampler_add(struct sampler *sampler, int program, uint32_t tid);
void sampler_remove(struct sampler *sampler, uint32_t tid); /* nothing if it is not sampled */
void sampler_clear(struct sampler *sampler);

#endif
