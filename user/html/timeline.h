/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * All steps of a kind over time, in bounded memory: the window is cut into at most TIMELINE_SLOTS
 * slots of equal length, which doubles when the window outgrows them. A slot has the sum of each
 * part of the time, and how many steps took how long.
 */
#ifndef FBT_HTML_TIMELINE_H
#define FBT_HTML_TIMELINE_H

#include <stdint.h>
#include "base/json.h"
#include "model/gpu.h"
#include "model/step.h"

#define TIMELINE_SLOTS 240

/* Eight to an octave, so a duration is known to within 9 %. The first holds all below 1 us. */
#define TIMELINE_BINS 256

struct timeline;

struct timeline *timeline__new(void); /* NULL: -ENOMEM */

/*
 * start_ns: since the begin of the window. wall_ns: from begin to end; total_ns: the sum of the
 * parts, which is more for an interval of several threads. gpu: NULL if there are no GPU records.
 */
void timeline__add(struct timeline *timeline, uint64_t start_ns, uint64_t wall_ns,
		   uint64_t total_ns, const struct step_parts *parts, const struct step_gpu *gpu);

/* The lower bound of a bin, in ns. */
uint64_t timeline_bin_ns(uint32_t bin);

/*
 * Writes {"width":ns,"slots":[{"parts":[ns, …],"gpu":[busy ns, known ns],"bins":[[bin, count], …]},
 * …]}. A step's parts are spread over the slots that it lies in; it is counted in that in which it
 * began. "gpu" is there if GPU records of a step in the slot are complete.
 */
void timeline__write(const struct timeline *timeline, struct json *json, const char *key);
void timeline__free(struct timeline *timeline);

#endif
