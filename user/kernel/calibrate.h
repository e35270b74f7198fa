/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Measures what the probes cost on this machine, with the tool itself, before the window begins. */
#ifndef FBT_KERNEL_CALIBRATE_H
#define FBT_KERNEL_CALIBRATE_H

#include "kernel/loader.h"

/* Duration of a getppid(), in picoseconds. To be called before the syscall probes are attached. */
uint64_t calibrate_bare_ps(void);

/*
 * What a page fault costs, in picoseconds: that of a new anonymous page in a process with a single
 * thread. The page faults of an engine may cost more. Takes some milliseconds; 0 if there is no
 * memory.
 */
uint64_t calibrate_fault_ps(void);

/*
 * Sets cost->fault_ps to what it costs to time a page fault, and control->fault_entry_ns. 0 where
 * page faults are not timed. To be called before the syscall probes are attached. 0, or the -errno
 * of fault_events_open().
 */
int calibrate_faults(struct loader *loader, struct fbt_cost *cost);

/* Sets call_ps, neighbor_ps and floor_ns. Takes 3 ms and leaves records of tgid 0 in the rings. */
void calibrate_calls(struct loader *loader, uint64_t bare_ps, struct fbt_cost *cost);

/*
 * Sets step_ns to the cost of the two probes of a step, measured on a function of the tool. Between
 * the measurements the tool sleeps and evicts the caches, as an engine does between steps. The
 * result is an upper bound for engines, two or three times the cost in a loop. 0 or -errno, logged.
 *
 * Takes 20 ms and leaves records of tgid 0 in the event ring. The probes stay attached until
 * loader__free(), because removing them is slow.
 */
int calibrate_step(struct loader *loader, struct fbt_cost *cost);

/*
 * What the probes of a kind have cost in the window, walks over other threads included. To be
 * called before calibrate_finish().
 */
uint64_t calibrate_kind_ns(const struct fbt_cost *cost, struct loader *loader, uint32_t kind);

/*
 * At the end of the window: sets memory and CPU time, and changes step_ns to the cost of all probe
 * hits of the window, walks over other threads included, divided by the number of recorded steps.
 */
void calibrate_finish(struct fbt_cost *cost, struct loader *loader, uint64_t cpu_ns,
		      uint64_t steps);

#endif
