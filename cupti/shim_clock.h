/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The clock of CUPTI's timestamps, and samples that pair it with CLOCK_MONOTONIC. The method
 * depends on the version (CUPTI's release notes, see shim_clock__method_for) and is verified by the
 * first records.
 */
#ifndef FERRUM_SHIM_CLOCK_H
#define FERRUM_SHIM_CLOCK_H

#include <stdbool.h>
#include "cupti_abi.h"
#include "fbt_gpu.h"

/* CUPTI's clock is taken to be CLOCK_REALTIME if they differ by no more than this. */
#define SHIM_CLOCK_APART_NS 1000000ull

struct shim_clock {
	uint32_t method;	/* enum fbt_gpu_clock_method */
	bool registered;	/* our callback is registered, once per process: it stays */
	bool settled;		/* the method was verified by records of this arming */
	bool foreign;		/* another tool has set CUPTI's clock: times mean nothing to us */
	uint64_t began_ns;	/* CLOCK_REALTIME when it was armed */
	uint64_t began_mono_ns; /* CLOCK_MONOTONIC then */
	uint64_t record_ns; /* when a call of this arming began, by its record; 0: no record yet */
	bool has_offset;    /* there is an offset_ns of this arming and method */
	int64_t offset_ns;  /* clock of the records minus CLOCK_MONOTONIC */
	uint64_t error_ns;  /* the largest error of this arming */
	uint64_t steps;	    /* of this arming */
};

uint64_t shim_clock__now(void);	     /* CLOCK_MONOTONIC, ns */
uint64_t shim_clock__realtime(void); /* CLOCK_REALTIME, ns */

/*
 * The method for a version: our timestamp callback where it works correctly, else CLOCK_REALTIME.
 */
enum fbt_gpu_clock_method shim_clock__method_for(uint32_t version);

/*
 * Chooses the method of an arming. Call before any kind is enabled. If the method is the callback,
 * registers it, unless that was done before.
 */
void shim_clock__begin(struct shim_clock *clock, const struct cupti_calls *calls, uint32_t version);

/*
 * Verifies the method by a record (clock->record_ns) and by CUPTI's own clock. That clock may
 * settle only after CUDA is fully initialized, so it counts only if it agrees with the record. A
 * record on none of the clocks is one of another tool's clock, as PyTorch's profiler leaves one
 * that counts the ticks of the CPU: sets foreign, and our callback is no longer registered. Calls
 * CUPTI, and may take 50 us: works on a copy, without the writer lock; see shim_clock__adopt.
 */
void shim_clock__check(struct shim_clock *clock, const struct cupti_calls *calls);

/*
 * Takes over a verified copy. method: the method when the copy was made. false: another thread has
 * changed the method since, and samples of the copy are invalid. Call with the writer lock held.
 */
bool shim_clock__adopt(struct shim_clock *clock, uint32_t method, const struct shim_clock *checked);

/*
 * Takes a sample: the most precise of five readings. calls: NULL: do not call CUPTI. false: that is
 * not possible with this method.
 */
bool shim_clock__sample(const struct shim_clock *clock, const struct cupti_calls *calls,
			struct fbt_gpu_clock *sample);

/* Whether a record's host time shows that it was made before this arming. */
bool shim_clock__is_before_arming(const struct shim_clock *clock, uint64_t record_ns);

/* Updates error and steps by a sample that was sent. Call with the writer lock held. */
void shim_clock__account(struct shim_clock *clock, const struct fbt_gpu_clock *sample);

#endif
