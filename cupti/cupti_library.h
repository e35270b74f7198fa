/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The libcupti of this process: finds it, opens it, never closes it, and looks up its functions. */
#ifndef FERRUM_CUPTI_LIBRARY_H
#define FERRUM_CUPTI_LIBRARY_H

#include "cupti_abi.h"
#include "cupti_places.h"

#define CUPTI_DETAIL_BYTES 512

struct cupti_library {
	struct cupti_calls calls; /* all NULL until it is loaded */
	uint32_t version;
	char path[CUPTI_PATH_BYTES];
	uint32_t strides[CUPTI_KIND_COUNT]; /* bytes of a record by kind; 0: not known */
};

/*
 * Finds and opens libcupti: only the file FERRUM_CUPTI_LIBRARY if that is set; else the one that is
 * mapped; else the first of cupti_places. It is never closed, because CUPTI runs threads. 0;
 * -ENOENT none can be opened; -ENOSYS it lacks functions of 11.8. detail (CUPTI_DETAIL_BYTES) says
 * what is wrong.
 */
int cupti_library__load(struct cupti_library *library, uint32_t driver_major, char *detail);

/* The name of a result; never NULL. */
const char *cupti_library__result(const struct cupti_calls *calls, uint32_t result);

#endif
