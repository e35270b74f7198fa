/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where libcupti may be. Which one matters: it has to be the one that the engine's own profilers
 * use, and one that its driver knows, so what is already mapped comes first, then what lies beside
 * the CUDA libraries that the engine uses, then the usual places.
 */
#ifndef FERRUM_CUPTI_PLACES_H
#define FERRUM_CUPTI_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define CUPTI_PATH_BYTES 512
#define CUPTI_FOLDERS	 4

/* What is known of the process. Empty strings: not known, or not set. */
struct cupti_places {
	char mapped[CUPTI_PATH_BYTES];		       /* libcupti that is there already */
	char folders[CUPTI_FOLDERS][CUPTI_PATH_BYTES]; /* of the CUDA libraries it has mapped */
	char driver[CUPTI_PATH_BYTES];		       /* folder of libcuda */
	const char *homes[3];			       /* CUDA_HOME, CUDA_PATH, /usr/local/cuda */
	uint32_t driver_major;			       /* of CUDA; 0: not known */
};

/* Fills all but driver_major, from the libraries of this process and its environment. */
void cupti_places__look(struct cupti_places *places);

/* Takes note of a mapped library: what cupti_places__look does with each of them. */
void cupti_places__add_library(struct cupti_places *places, const char *path);

/*
 * Tries paths, the best first, until one is taken; path is the callback's only while it runs, and a
 * name without a slash is for the dynamic linker to find. mapped is not among them. Whether one was
 * taken.
 */
bool cupti_places__try(const struct cupti_places *places, bool (*take)(void *ctx, const char *path),
		       void *ctx);

#endif
