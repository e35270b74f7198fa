/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which calls of the CUDA API are recorded: those that launch work or wait for it. By name, as
 * cuptiGetCallbackName has it, not by number: libraries get new ones with each release.
 */
#ifndef FERRUM_API_TABLE_H
#define FERRUM_API_TABLE_H

#include "cupti_abi.h"
#include "fbt_gpu.h"

#define API_TABLE_CBIDS 2048u

enum api_domain {
	API_DRIVER = 0,
	API_RUNTIME = 1,
	API_DOMAIN_COUNT = 2,
};

struct api_call {
	const char *name; /* CUPTI's, for ever; NULL: not recorded */
	uint16_t class;	  /* enum fbt_gpu_api_class */
	uint16_t flags;	  /* FBT_GPU_API_DRIVER, …_BLOCKING */
};

struct api_table {
	struct api_call calls[API_DOMAIN_COUNT][API_TABLE_CBIDS];
	uint32_t count;
};

/* FBT_GPU_API_OTHER: not recorded. flags gets FBT_GPU_API_BLOCKING or 0. */
enum fbt_gpu_api_class api_class(const char *name, uint16_t *flags);

/* Asks the library for all its names. */
void api_table__fill(struct api_table *table, const struct cupti_calls *calls);

/* NULL: not recorded, or no such call. kind: CUPTI_KIND_DRIVER or CUPTI_KIND_RUNTIME. */
const struct api_call *api_table__find(const struct api_table *table, uint32_t kind, uint32_t cbid);

/*
 * Switches the records of those calls on or off: one by one, or where CUPTI cannot (before 12.5) by
 * whole kinds, of which record_copy__put takes only those calls. Returns CUPTI's result of the
 * first that failed.
 */
uint32_t api_table__enable(const struct api_table *table, const struct cupti_calls *calls,
			   uint8_t enable);

#endif
