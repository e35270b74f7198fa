/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How long a shim that was asked keeps us waiting, and whether it lives; it is told that we do. */
#ifndef FBT_GPU_WATCH_H
#define FBT_GPU_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include "gpu_ring.h"

/* A shim that has not answered for this long is waited for aloud … */
#define GPU_WATCH_PATIENCE_NS 10000000000ull
/* … and given up: CUPTI takes up to 15 s when it is first used. */
#define GPU_WATCH_ANSWER_NS 30000000000ull
/* The flusher of an armed shim turns several times a second. */
#define GPU_WATCH_PULSE_NS 5000000000ull

struct gpu_watch {
	uint64_t asked_ns;
	uint64_t beat_ns;  /* when we beat last */
	uint64_t pulse_ns; /* when its pulse last changed */
	uint32_t pulse;
	bool told; /* that it is waited for */
};

void gpu_watch_ask(struct gpu_watch *watch, uint64_t now_ns);

/* Beats, when it is time to. */
void gpu_watch_beat(struct gpu_watch *watch, struct gpu_ring *ring, uint64_t now_ns);

/* Whether it has not answered for too long; says before that it is waited for. */
bool gpu_watch_is_overdue(struct gpu_watch *watch, uint32_t tgid, uint64_t now_ns);

/* It lives as of now. */
void gpu_watch_start(struct gpu_watch *watch, const struct gpu_ring *ring, uint64_t now_ns);

/* Whether its pulse has changed since. */
bool gpu_watch_lives(struct gpu_watch *watch, const struct gpu_ring *ring, uint64_t now_ns);

/* Whether it has not changed for too long. */
bool gpu_watch_is_silent(const struct gpu_watch *watch, uint64_t now_ns);

#endif
