/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "escalation_fields.h"

#include <math.h>

void escalation_fields_percent(struct json_fields *fields, const char *key, double percent)
{
	/* Above it there are no decimals left to round. */
	const double whole = 1e15;

	if (!isfinite(percent))
		return;
	if (fabs(percent) < whole)
		percent = round(percent * 100) / 100;
	json_fields_double(fields, key, percent);
}

void escalation_fields_fill(struct escalation_fields *fields, const struct window *window,
			    const struct escalation *escalation)
{
	struct json_fields *to = &fields->fields;

	to->count = 0;
	trace_result_attributes(&escalation->result, &fields->attributes);
	for (int i = 0; i < TRACE_ATTRIBUTES; i++)
		json_fields_string(to, fields->attributes.items[i].key,
				   fields->attributes.items[i].value);
	cause_describe(&escalation->cause, window, fields->evidence, sizeof(fields->evidence));
	json_fields_string(to, "cause", cause_name(escalation->cause.kind));
	json_fields_string(to, "cause_evidence", fields->evidence);
	json_fields_string(to, "fired", escalation_fired_text(escalation->fired, fields->fired));
	json_fields_uint(to, "class_steps", escalation->class_steps);
	if (escalation->nearest)
		json_fields_bool(to, "class_nearest", true);
	escalation_fields_percent(to, "cv_percent", escalation->cv_percent);
}
