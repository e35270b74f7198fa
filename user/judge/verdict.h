/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Verdicts in words, as all outputs show them. Pure. */
#ifndef FBT_JUDGE_VERDICT_H
#define FBT_JUDGE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>
#include "judge/classify.h"

/* Room for the names of all reasons. */
#define FIRED_SIZE 128

/* "cv_exceeded,efficiency_low" of a bit per reason. Writes to text and returns it. */
const char *escalation_fired_text(uint32_t fired, char text[FIRED_SIZE]);

/*
 * The reason for a person to read: its machine value, but "cv_exceeded and efficiency_low" for
 * ESCALATION_BOTH.
 */
const char *escalation_reason_text(enum escalation_reason reason);

/*
 * Why alerts and trace do not have an escalation: "rate_limit", "repeated" or "as_usual"
 * (judge/classify.h). NULL: they have it.
 */
const char *escalation_not_shown_text(const struct escalation *escalation);

/* The call of a step that took longest, or the category it is of. */
struct worst {
	const char *name; /* points into label, or is static; NULL if there was no call */
	uint64_t ns;	  /* in the step */
	bool is_category; /* the call itself is not known: not all were sent, or kept */
	char label[24];
};
void escalation_worst(const struct escalation *escalation, const struct window *window,
		      const struct step *step, struct worst *worst);

#endif
