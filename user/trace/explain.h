/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * --explain: attaches what only explains slow steps when there are some (demand.h), and tells the
 * user and the stream.
 */
#ifndef FBT_TRACE_EXPLAIN_H
#define FBT_TRACE_EXPLAIN_H

#include "judge/classify.h"
#include "model/step.h"
#include "targets/live.h"

struct explain;

/*
 * Measures what an event of each kind costs, for options.explain_ps: once for several windows,
 * before the tool is confined. The loader must be loaded.
 */
void explain_measure(struct loader *loader, uint64_t ps[FBT_EXPLAIN_COUNT]);

/*
 * Loads the programs and measures what they cost, which takes some 20 ms, before the tool is
 * confined. live is borrowed, and its loader must be loaded. A kernel that refuses the programs is
 * told about only when they would be needed. NULL: no memory.
 */
struct explain *explain__new(const struct live *live);
void explain__free(struct explain *explain);

/* The window begins. */
void explain__begin(struct explain *explain);

/* A step was escalated. */
void explain__note(struct explain *explain, const struct step *step,
		   const struct escalation *escalation);

/* A step has ended. */
void explain__take_step(struct explain *explain, const struct fbt_step *step);

/* Call every few ms: arms and disarms. */
void explain__turn(struct explain *explain, uint64_t now_ns);

/* Sends what was done so far, of what is armed up to the last look. */
void explain__send_totals(const struct explain *explain);

/* The window ends: detaches, and sends what was done. */
void explain__finish(struct explain *explain, uint64_t now_ns);

#endif
