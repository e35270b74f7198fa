/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* libcupti as this process has it: found, opened for good, and its functions. */
#ifndef FERRUM_CUPTI_LIBRARY_H
#define FERRUM_CUPTI_LIBRARY_H

#include "cupti_abi.h"
#include "cupti_places.h"

#define CUPTI_DETAIL_BYTES 512

struct cupti_library {
	struct cupti_calls calls; /* all zero before it is loaded */
	uint32_t version;
	char path[CUPTI_PATH_BYTES];
	uint32_t strides[CUPTI_KIND_COUNT]; /* bytes of a record by kind; 0: not known */
};

/*
 * Finds and opens it: FERRUM_CUPTI_LIBRARY alone if that is set, else the mapped one, else by
 * cupti_places. Never closed again: CUPTI runs threads. 0; -ENOENT: there is none that can be
 * opened; -ENOSYS: it lacks functions of 11.8. detail, of CUPTI_DETAIL_BYTES, says which.
 */
int cupti_library__load(struct cupti_library *library, uint32_t driver_major, char *detail);

/*
 * The size of the records of a kind, as the library steps from one to the next; 0: it does not say.
 * Needs no GPU: it steps over a buffer of nothing but kinds.
 */
uint32_t cupti_library__stride(const struct cupti_calls *calls, uint32_t kind);

/* What a result is called; never NULL. */
const char *cupti_library__result(const struct cupti_calls *calls, uint32_t result);

#endif
