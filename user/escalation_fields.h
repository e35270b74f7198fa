/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A verdict as members of a JSON object: what the trace and the profile say alike. */
#ifndef FBT_ESCALATION_FIELDS_H
#define FBT_ESCALATION_FIELDS_H

#include "classify.h"
#include "escalation_text.h"
#include "json.h"
#include "window.h"

struct escalation_fields {
	struct json_fields fields; /* points into this struct, and to what it was filled from */
	struct trace_attributes attributes;
	char fired[FIRED_SIZE];
	char evidence[EVIDENCE_SIZE];
};

/*
 * The seed's 8 span attributes, as strings; cause, cause_evidence, fired, class_steps, cv_percent
 * if it is known, and class_nearest if the class that was judged by is not its own.
 */
void escalation_fields_fill(struct escalation_fields *fields, const struct window *window,
			    const struct escalation *escalation);

/* A share in percent with two decimals; not if it is not known (NaN). */
void escalation_fields_percent(struct json_fields *fields, const char *key, double percent);

#endif
