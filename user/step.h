/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The model: one step, and the seed's figures of it (cbtop types.rs). */
#ifndef FBT_STEP_H
#define FBT_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_event.h"
#include "vec.h"

/* Calls kept of one step; above it calls_truncated is set and the sums stay exact. */
#define STEP_CALLS_MAX 65536

typedef VEC(struct fbt_call) call_vec;

struct step_gpu;

struct step {
	uint64_t number;      /* 1, 2, … in the order they ended, over the whole window */
	uint64_t kind_number; /* the same among the steps of its kind */
	struct fbt_step record;
	call_vec calls; /* by start time; empty unless the kernel sent them */
	bool calls_truncated;
	bool complete;	      /* nothing of it was lost or cut off; says nothing of gpu */
	bool manual;	      /* the user asked for it to be escalated */
	struct step_gpu *gpu; /* NULL: no GPU records of its process; merge's */
};

/* The seed's SyscallBreakdown. */
struct breakdown {
	uint64_t category_us[FBT_CATEGORY_COUNT];
	uint64_t total_us;
};

uint64_t step_total_ns(const struct step *step);   /* of the step thread(s): record.thread_ns */
uint64_t step_wall_ns(const struct step *step);	   /* end - start */
uint64_t step_syscall_ns(const struct step *step); /* sum of the six */
uint64_t step_compute_ns(const struct step *step); /* total - syscall, never below 0 */
uint64_t step_calls(const struct step *step);
uint64_t step_errors(const struct step *step);
const char *step_end_name(enum fbt_step_end end); /* "return", "unwound", "truncated", "exited" */

/* Nanoseconds to microseconds by floor, each figure once, so the sum never exceeds the total. */
void step_breakdown(const struct step *step, struct breakdown *breakdown);

/* Adds a call by its exact name, as the seed's add_syscall; saturates. total_us stays. */
void breakdown_add_syscall(struct breakdown *breakdown, const char *name, uint64_t duration_us);
uint64_t breakdown_syscall_us(const struct breakdown *breakdown); /* saturates */
uint64_t breakdown_compute_us(const struct breakdown *breakdown);

/* 0 if total is 0; not clamped. */
double breakdown_overhead_percent(const struct breakdown *breakdown);

/* The same as the number that the seed's text form "{:.1}" shows. */
double breakdown_overhead_tenths(const struct breakdown *breakdown);

/* Category with the most time, the last of equals; "none" if all are 0. */
const char *breakdown_dominant(const struct breakdown *breakdown);

#endif
