/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the report says of escalations, gathered one by one in bounded memory. */
#ifndef FBT_ESCALATION_TALLY_H
#define FBT_ESCALATION_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include "classify.h"
#include "escalation_text.h"
#include "step.h"
#include "vec.h"
#include "window.h"

/* Escalations that are listed: the last ones. */
#define ESCALATIONS_LISTED 1000

/* The steps that had one cause, those too that are not shown. */
struct cause_tally {
	uint64_t steps;
	uint64_t usual_known; /* of them: it is known how much time the cause usually takes */
	uint64_t extra_ns;    /* time of the cause over what is usual, of those */
	bool estimated;	      /* extra_ns is, in part at least */
	/* The step with the most extra time: */
	uint64_t worst_step; /* its number */
	uint64_t worst_extra_ns;
	uint64_t worst_total_ns;
	char worst_evidence[EVIDENCE_SIZE];
};

/* One that was shown. */
struct escalation_entry {
	uint64_t number;
	uint64_t step;
	uint64_t start_ns; /* since the window began */
	uint64_t total_ns;
	uint64_t budget_ns;
	uint64_t usual_ns;
	uint64_t cause_ns;
	uint64_t cause_usual_ns;
	uint32_t kind;
	uint32_t tgid;
	uint32_t tid;
	uint32_t fired;
	enum escalation_reason reason;
	enum cause_kind cause;
	bool judged;
	bool cause_usual_known;
	bool complete;
};

struct escalation_tally {
	struct cause_tally causes[CAUSE_COUNT];
	VEC(struct escalation_entry) entries; /* a ring once it is full */
	uint64_t shown;
};

/* 0 or -ENOMEM: counted, but not listed. */
int escalation_tally_add(struct escalation_tally *tally, const struct window *window,
			 const struct step *step, const struct escalation *escalation);
void escalation_tally_clear(struct escalation_tally *tally);

/* Causes that were found, the most expensive first; returns how many. */
int escalation_tally_sort(const struct escalation_tally *tally, enum cause_kind order[CAUSE_COUNT]);

/* The index-th oldest that is listed, NULL behind the last. */
const struct escalation_entry *escalation_tally_entry(const struct escalation_tally *tally,
						      size_t index);

#endif
