/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What tracing added to the targets. */
#ifndef FBT_REPORT_COST_H
#define FBT_REPORT_COST_H

#include <stdint.h>
#include "model/window.h"
#include "tally/tally.h"

struct cost {
	uint64_t calls; /* system calls of all traced processes */
	uint64_t steps;
	uint64_t call_ns;	/* added by all calls */
	uint64_t step_ns;	/* added by all steps */
	uint64_t faults;	/* page faults that were timed … */
	uint64_t fault_ns;	/* … and what that added */
	uint64_t collection_ns; /* added by the probes of garbage collections */
	uint64_t gpu_calls;	/* recorded calls of the CUDA API */
	uint64_t gpu_nodes;	/* recorded work of CUDA graphs */
	double gpu_idle;     /* share of the steps' time in which the GPU was idle; 1: not known */
	uint64_t gpu_ns;     /* added by both; what hides behind the GPU's work delays nobody */
	uint64_t traced_ns;  /* sum of the times the processes were traced */
	double percent;	     /* of traced_ns */
	double step_percent; /* what was added within steps, of step time */
};

/* Sums saturate. */
void cost_sum(const struct tally *tally, const struct window *window, struct cost *cost);

#endif
