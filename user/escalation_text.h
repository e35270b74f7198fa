/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Verdicts in words, as all outputs show them. Pure. */
#ifndef FBT_ESCALATION_TEXT_H
#define FBT_ESCALATION_TEXT_H

#include <stdint.h>
#include "cause.h"
#include "classify.h"

/* Room for the names of all reasons. */
#define FIRED_SIZE 128
/* Room for a cause's evidence; a longer one is cut. */
#define EVIDENCE_SIZE	 512
#define CAUSE_WORDS_SIZE 40

/* "cv_exceeded,efficiency_low" of a bit per reason. Writes to text and returns it. */
const char *escalation_fired_text(uint32_t fired, char text[FIRED_SIZE]);

/* The call of a step that took longest, or the category it is of. */
struct worst {
	const char *name; /* points into label, or is static; NULL if there was no call */
	uint64_t ns;	  /* in the step */
	bool is_category; /* the call itself is not known: not all were sent, or kept */
	char label[24];
};
void escalation_worst(const struct escalation *escalation, const struct window *window,
		      const struct step *step, struct worst *worst);

/* "lock contention". Writes to text and returns it. */
const char *cause_words(enum cause_kind kind, char text[CAUSE_WORDS_SIZE]);

#endif
