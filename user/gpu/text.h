/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the GPU did and waited for, in words, as report and messages show it. Pure. */
#ifndef FBT_GPU_TEXT_H
#define FBT_GPU_TEXT_H

#include <stddef.h>
#include "model/gpu.h"

/* Room for the text of gpu_idle_text. */
#define GPU_IDLE_TEXT_SIZE 384

/* What the text describes: a step, or a mean step. */
struct gpu_text {
	const struct gpu_figures *figures;
	uint64_t total_ns;
	uint64_t run_delay_ns; /* the thread waited for a CPU; UINT64_MAX: not known */
	enum fbt_arch arch;
	bool incomplete; /* GPU records are missing: it was busier than they say */
};

/*
 * "idle 1.80 ms of 6.20 ms: 1.10 ms futex (blocked), 400 us user code, 300 us in launch calls": why
 * the GPU had nothing to do, the longest parts first. "busy at least 1.80 ms of 6.20 ms, GPU
 * records missing" where that is all that is known. Writes to text and returns it.
 */
const char *gpu_idle_text(const struct gpu_text *about, char text[GPU_IDLE_TEXT_SIZE]);

/* What the thread did in a host wait, the longest part first: "1.10 ms futex (blocked), …". */
const char *gpu_wait_text(const struct gpu_text *about, char text[GPU_IDLE_TEXT_SIZE]);

/* "GPU-bound", "launch-bound", "not bound by one thing", … */
const char *gpu_bound_words(enum gpu_bound bound);

#endif
