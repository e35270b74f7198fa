/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where libcupti may be. It must be the one that the engine's own profilers use, and one that the
 * driver supports. So the mapped one comes first, then those near the CUDA libraries of the engine,
 * then the usual places.
 */
#ifndef FERRUM_CUPTI_PLACES_H
#define FERRUM_CUPTI_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define CUPTI_PATH_BYTES 512
#define CUPTI_FOLDERS	 4

/* What is known of the process. Empty strings: not known, or not set. */
struct cupti_places {
	char mapped[CUPTI_PATH_BYTES];		       /* a libcupti that is mapped already */
	char folders[CUPTI_FOLDERS][CUPTI_PATH_BYTES]; /* of the mapped CUDA libraries */
	char driver[CUPTI_PATH_BYTES];		       /* folder of libcuda */
	const char *homes[3];			       /* CUDA_HOME, CUDA_PATH, /usr/local/cuda */
	uint32_t driver_major;			       /* of CUDA; 0: not known */
};

/* Fills all but driver_major, from the libraries of this process and its environment. */
void cupti_places__look(struct cupti_places *places);

/* Takes a mapped library into account; cupti_places__look calls it for each one. */
void cupti_places__add_library(struct cupti_places *places, const char *path);

/*
 * Calls take with each path, best first, until it returns true; returns whether it did. path is
 * valid during the call only. The dynamic linker searches for a name without a slash. mapped is not
 * among the paths.
 */
bool cupti_places__try(const struct cupti_places *places, bool (*take)(void *ctx, const char *path),
		       void *ctx);

#endif
