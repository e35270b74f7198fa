/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "jsonl_escalation.h"

#define NS_PER_US 1000

void jsonl_escalation_fill(struct jsonl_escalation *event, const struct window *window,
			   const struct step *step, const struct escalation *escalation)
{
	struct json_fields *shape = &event->common.fields;
	const struct cause *cause = &escalation->cause;
	struct worst *worst = &event->worst;

	escalation_fields_fill(&event->common, window, escalation);
	json_fields_uint(shape, "number", escalation->number);
	json_fields_uint(shape, "step", step->number);
	json_fields_uint(shape, "kind_number", step->kind_number);
	json_fields_uint(shape, "pid", step->record.tgid);
	json_fields_uint(shape, "tid", step->record.tid);
	json_fields_bool(shape, "complete", step->complete);
	json_fields_bool(shape, "judged", escalation->judged);
	json_fields_uint(shape, "cause_us", cause->time_ns / NS_PER_US);
	if (cause->usual_known)
		json_fields_uint(shape, "cause_usual_us", cause->usual_ns / NS_PER_US);
	if (escalation->judged)
		json_fields_uint(shape, "usual_us", escalation->usual_ns / NS_PER_US);
	escalation_fields_percent(shape, "drop_percent", escalation->drop_percent);
	if (cause->estimated)
		json_fields_bool(shape, "cause_estimated", true);
	escalation_worst(escalation, window, step, worst);
	if (worst->name) {
		json_fields_string(shape, worst->is_category ? "worst_category" : "worst_call",
				   worst->name);
		json_fields_uint(shape, worst->is_category ? "worst_category_us" : "worst_call_us",
				 worst->ns / NS_PER_US);
	}
	event->stage_us.count = 0;
	json_fields_uint(&event->stage_us, "budget", escalation->result.budget_us);
	json_fields_uint(&event->stage_us, "actual", escalation->result.actual_us);
}
