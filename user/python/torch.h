/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * PyTorch's own profiler in the processes whose Python functions are armed (--torch-trace): one
 * window of it in each.
 */
#ifndef FBT_PYTHON_TORCH_H
#define FBT_PYTHON_TORCH_H

#include <stdbool.h>
#include <stdint.h>
#include "python/steps.h"

/* While it was on in any of the processes: in that time steps of all of them take longer. */
struct torch_span {
	uint64_t begin_ns; /* UINT64_MAX: it was not on yet */
	uint64_t end_ns;   /* UINT64_MAX: it is still on */
};

/* What a process has exported: two open files, owned by the receiver. */
struct torch_export {
	uint32_t tgid;
	int execution_fd; /* pytorch_et_*.json */
	int kineto_fd;	  /* a trace of Kineto */
};

struct torch_settings {
	uint32_t flags; /* FBT_TORCH_… */
	uint64_t max_steps;
};

/* Asks for a window of it, from the next step of each process on. Returns the window's number. */
uint32_t python_torch_begin(const struct python_steps *steps,
			    const struct torch_settings *settings);

/* The same of one process that is armed since: it takes part in that window. */
void python_torch_join(const struct python_steps *steps, const struct torch_settings *settings,
		       uint32_t window, uint32_t tgid);

struct torch_span python_torch_span(const struct python_steps *steps, uint32_t window);

/* Asks for the end. The functions must stay armed until python_torch_collect has returned. */
void python_torch_end(const struct python_steps *steps);

/*
 * Waits until all have exported, but for a step to end only 10 s, and hands over what they have. A
 * signal that asks for the end ends the wait. What went wrong is logged.
 */
void python_torch_collect(struct python_steps *steps, uint32_t window,
			  void (*take)(void *ctx, const struct torch_export *export), void *ctx);

#endif
