/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the probes cost on this machine, measured on the tool itself before the window begins. */
#ifndef FBT_CALIBRATE_H
#define FBT_CALIBRATE_H

#include "loader.h"

/* Picoseconds of a getppid. Once before the syscall probes are attached, in calibrate_calls after.
 */
uint64_t calibrate_bare_ps(void);

/*
 * The least that a page fault costs here, in picoseconds: a fresh anonymous page, touched by one
 * thread that is alone in its memory. Those of an engine cost more. Takes half a millisecond; 0 if
 * there is no memory for it.
 */
uint64_t calibrate_fault_ps(void);

/* Fills call_ps, neighbor_ps and floor_ns. Takes about 3 ms; leaves records of tgid 0 in the rings.
 */
void calibrate_calls(struct loader *loader, uint64_t bare_ps, struct fbt_cost *cost);

/*
 * Fills step_ns with what the two probes of a step take, on a function of our own; its probes stay
 * until loader__detach, for they cost nothing and their removal would. As much as it is at most
 * in an engine, which has slept and has filled the caches since the step before: two or three times
 * what it is in a loop.
 * Takes some 20 ms. 0 or -errno, logged. Leaves records of tgid 0 in the event ring.
 */
int calibrate_step(struct loader *loader, struct fbt_cost *cost);

/*
 * At the end: fills memory, CPU time (cpu_ns) and, if bpf_stats, the kernel's own statistics.
 * Spreads over the steps that were seen, in step_ns, what all hits of the window's probes took, and
 * what they spent on other threads, which calibration has not seen.
 */
void calibrate_finish(struct fbt_cost *cost, struct loader *loader, uint64_t cpu_ns, uint64_t steps,
		      bool bpf_stats);

#endif
