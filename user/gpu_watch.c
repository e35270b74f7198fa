/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_watch.h"

#include "log.h"

#define BEAT_NS (FBT_GPU_BEAT_NS / 2)

void gpu_watch_ask(struct gpu_watch *watch, uint64_t now_ns)
{
	watch->asked_ns = now_ns;
	watch->beat_ns = now_ns;
	watch->told = false;
}

void gpu_watch_beat(struct gpu_watch *watch, struct gpu_ring *ring, uint64_t now_ns)
{
	if (now_ns - watch->beat_ns < BEAT_NS)
		return;
	gpu_ring__beat(ring);
	watch->beat_ns = now_ns;
}

bool gpu_watch_is_overdue(struct gpu_watch *watch, uint32_t tgid, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns - watch->asked_ns;

	if (waited_ns >= GPU_WATCH_ANSWER_NS)
		return true;
	if (waited_ns >= GPU_WATCH_PATIENCE_NS && !watch->told) {
		watch->told = true;
		log_info("process %u: waiting for CUPTI to start in it, which may take 15 s the "
			 "first time",
			 tgid);
	}
	return false;
}

void gpu_watch_start(struct gpu_watch *watch, const struct gpu_ring *ring, uint64_t now_ns)
{
	watch->pulse = gpu_ring__pulse(ring);
	watch->pulse_ns = now_ns;
}

bool gpu_watch_lives(struct gpu_watch *watch, const struct gpu_ring *ring, uint64_t now_ns)
{
	if (gpu_ring__pulse(ring) == watch->pulse)
		return false;
	gpu_watch_start(watch, ring, now_ns);
	return true;
}

bool gpu_watch_is_silent(const struct gpu_watch *watch, uint64_t now_ns)
{
	return now_ns - watch->pulse_ns >= GPU_WATCH_PULSE_NS;
}
