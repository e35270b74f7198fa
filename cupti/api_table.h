/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The CUDA API calls that are recorded: those that launch work or wait for it. They are chosen by
 * the name from cuptiGetCallbackName, because new callback ids come with each release.
 */
#ifndef FERRUM_API_TABLE_H
#define FERRUM_API_TABLE_H

#include <stdbool.h>

#include "cupti_abi.h"
#include "fbt_gpu.h"

#define API_TABLE_CBIDS 2048u

enum api_domain {
	API_DRIVER = 0,
	API_RUNTIME = 1,
	API_DOMAIN_COUNT = 2,
};

struct api_call {
	const char *name; /* CUPTI's, never freed; NULL: not recorded */
	uint16_t class;	  /* enum fbt_gpu_api_class */
	uint16_t flags;	  /* FBT_GPU_API_DRIVER, …_BLOCKING */
};

struct api_table {
	struct api_call calls[API_DOMAIN_COUNT][API_TABLE_CBIDS];
	bool others[API_DOMAIN_COUNT][API_TABLE_CBIDS]; /* calls that are not recorded */
	uint32_t canary; /* cbid of cuDriverGetVersion (takeover.h); its records go no further */
	uint32_t count;
};

/*
 * What a call is for, by its name. FBT_GPU_API_OTHER: it is not recorded. *flags is set to
 * FBT_GPU_API_BLOCKING or 0.
 */
enum fbt_gpu_api_class api_class(const char *name, uint16_t *flags);

/* Looks up the name of every callback id in the library. */
void api_table__fill(struct api_table *table, const struct cupti_calls *calls);

/*
 * Finds a call. NULL: it is not recorded, or there is no such call. kind: CUPTI_KIND_DRIVER or
 * CUPTI_KIND_RUNTIME.
 */
const struct api_call *api_table__find(const struct api_table *table, uint32_t kind, uint32_t cbid);

/*
 * Enables the records of these calls: of all calls, and then disables each of the others. The other
 * way round, as CUPTI's documentation offers it (these calls one by one, without their kind),
 * CUPTI 13.0 U1 accepts and then records no call. Before 12.5 CUPTI records all calls or none:
 * record_writer__put then skips the others. Returns the first CUPTI error.
 */
uint32_t api_table__enable(const struct api_table *table, const struct cupti_calls *calls);

/* Disables the records of all calls. */
void api_table__disable(const struct cupti_calls *calls);

#endif
