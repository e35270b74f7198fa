/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which sizes of steps form a class: those of A and those of B with the same work. Pure.
 *
 * A size that is an argument says what a step had to do, so a class is an octave of it, as in
 * judge/class.h.
 *
 * A size that is work says how long the step's own code took, which changes if that code becomes
 * slower. So classes are not cut at fixed places, where slower steps would go to the next class:
 * they are the modes of the distribution over both files. Two modes are apart if there is a valley
 * between them, and if they are an octave apart, or both files have both. Where steps of many sizes
 * leave no valleys, a mode that is wider than WIDE_OCTAVES is cut at octaves; of these classes only
 * the time that is not work can be compared, since how much work there was is not known.
 */
#ifndef FBT_DIFF_CLUSTER_H
#define FBT_DIFF_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include "diff/side.h"

#define CLUSTERS_MAX 64
/* Nine of ten steps of a mode are within that, else it is wide. */
#define WIDE_OCTAVES 1.5

struct cluster {
	uint32_t from; /* bins (size_bin) */
	uint32_t to;   /* exclusive */
	/* Steps are compared bin by bin: more large ones in one file do not make that slower. */
	bool by_bin;
	bool is_cut; /* of a mode that is wide */
};

/* Returns how many; clusters are in the order of size, and each step is in one of them. */
int cluster_by_argument(const uint64_t a[SIZE_BINS], const uint64_t b[SIZE_BINS],
			struct cluster clusters[CLUSTERS_MAX]);
int cluster_by_work(const uint64_t a[SIZE_BINS], const uint64_t b[SIZE_BINS],
		    struct cluster clusters[CLUSTERS_MAX]);

#endif
