/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * On which clock CUPTI stamps its records, and pairs of that clock and CLOCK_MONOTONIC. Which
 * method a version can be trusted with: gpu-side release notes of CUPTI, see
 * shim_clock__method_for. What a version promises is held against the records that come.
 */
#ifndef FERRUM_SHIM_CLOCK_H
#define FERRUM_SHIM_CLOCK_H

#include <stdbool.h>
#include "cupti_abi.h"
#include "fbt_gpu.h"

/* CUPTI's clock and CLOCK_REALTIME are one if they are no further apart. */
#define SHIM_CLOCK_APART_NS 1000000ull

struct shim_clock {
	uint32_t method; /* enum fbt_gpu_clock_method */
	bool registered; /* our callback: once in the life of a process, it cannot be taken back */
	bool settled;	 /* held against records of this arming */
	uint64_t began_ns;  /* CLOCK_REALTIME when it was armed */
	uint64_t record_ns; /* when a call of this arming began, by its record; 0: none has come */
	bool has_offset;    /* of this arming and method: */
	int64_t offset_ns;  /* records' clock minus CLOCK_MONOTONIC */
	uint64_t error_ns;  /* the largest of this arming */
	uint64_t steps;	    /* of this arming */
};

uint64_t shim_clock__now(void);	     /* CLOCK_MONOTONIC, ns */
uint64_t shim_clock__realtime(void); /* CLOCK_REALTIME, ns */

/* By version: a callback of ours where CUPTI calls it right, else CLOCK_REALTIME. */
enum fbt_gpu_clock_method shim_clock__method_for(uint32_t version);

/*
 * Chooses the method of an arming; before any kind is enabled. Registers the callback if that is
 * the method and it was not done before.
 */
void shim_clock__begin(struct shim_clock *clock, const struct cupti_calls *calls, uint32_t version);

/*
 * Holds the method against a record that has come (clock->record_ns) and against CUPTI's own clock.
 * That one may settle late, once CUDA is fully up: it is believed only if it goes with the record.
 * Calls CUPTI: not under the writer lock, and so on a copy, see shim_clock__adopt.
 */
void shim_clock__check(struct shim_clock *clock, const struct cupti_calls *calls);

/*
 * Takes over from a copy that was checked; method: what it was when copied. false: another thread
 * has changed it meanwhile, and samples of the copy are no good. Under the writer lock.
 */
bool shim_clock__adopt(struct shim_clock *clock, uint32_t method, const struct shim_clock *checked);

/*
 * Takes a sample by the method: the narrowest of five. calls NULL: without asking CUPTI. false: not
 * to be had in that way.
 */
bool shim_clock__sample(const struct shim_clock *clock, const struct cupti_calls *calls,
			struct fbt_gpu_clock *sample);

/* Keeps the books of a sample that is sent: error, steps. Under the writer lock. */
void shim_clock__account(struct shim_clock *clock, const struct fbt_gpu_clock *sample);

#endif
