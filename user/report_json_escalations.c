/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_json_escalations.h"

static void write_counts(struct json *json, const struct classify_counts *counts)
{
	json_uint(json, "judged", counts->judged);
	json_uint(json, "unjudged", counts->unjudged);
	json_uint(json, "escalated", counts->escalated);
	json_uint(json, "suppressed", counts->suppressed);
	json_uint(json, "repeated", counts->repeated);
	json_object_begin(json, "by_reason");
	for (int i = ESCALATION_NONE + 1; i < ESCALATION_REASON_COUNT; i++)
		json_uint(json, escalation_otlp_value((enum escalation_reason)i),
			  counts->by_reason[i]);
	json_object_end(json);
}

static void write_causes(struct json *json, const struct escalation_tally *tally)
{
	enum cause_kind order[CAUSE_COUNT];
	int count = escalation_tally_sort(tally, order);

	json_array_begin(json, "causes");
	for (int i = 0; i < count; i++) {
		const struct cause_tally *cause = &tally->causes[order[i]];

		json_object_begin(json, NULL);
		json_string(json, "cause", cause_name(order[i]));
		json_uint(json, "steps", cause->steps);
		json_uint(json, "usual_known_steps", cause->usual_known);
		json_uint(json, "extra_ns", cause->extra_ns);
		json_bool(json, "estimated", cause->estimated);
		json_uint(json, "worst_step", cause->worst_step);
		json_uint(json, "worst_extra_ns", cause->worst_extra_ns);
		json_uint(json, "worst_duration_ns", cause->worst_total_ns);
		json_string(json, "worst_evidence", cause->worst_evidence);
		json_string(json, "advice", cause_advice(order[i]));
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_entry(struct json *json, const struct window *window,
			const struct escalation_entry *entry)
{
	char fired[FIRED_SIZE];

	json_object_begin(json, NULL);
	json_uint(json, "number", entry->number);
	json_uint(json, "step", entry->step);
	json_string(json, "name", window__kind_name(window, entry->kind));
	json_uint(json, "pid", entry->tgid);
	json_uint(json, "tid", entry->tid);
	json_uint(json, "start_ns", entry->start_ns);
	json_uint(json, "duration_ns", entry->total_ns);
	json_string(json, "reason", escalation_otlp_value(entry->reason));
	json_string(json, "fired", escalation_fired_text(entry->fired, fired));
	json_string(json, "cause", cause_name(entry->cause));
	json_uint(json, "cause_ns", entry->cause_ns);
	if (entry->judged) {
		json_uint(json, "budget_ns", entry->budget_ns);
		json_uint(json, "usual_ns", entry->usual_ns);
	} else {
		json_null(json, "budget_ns");
		json_null(json, "usual_ns");
	}
	if (entry->cause_usual_known)
		json_uint(json, "cause_usual_ns", entry->cause_usual_ns);
	else
		json_null(json, "cause_usual_ns");
	json_bool(json, "complete", entry->complete);
	json_object_end(json);
}

void report_json_escalations(struct json *json, const struct report *report)
{
	const struct escalation_tally *tally = &report->tally->escalations;
	const struct escalation_entry *entry;

	json_object_begin(json, "escalations");
	write_counts(json, classifier__counts(report->classifier));
	write_causes(json, tally);
	json_array_begin(json, "last");
	for (size_t i = 0; (entry = escalation_tally_entry(tally, i)); i++)
		write_entry(json, report->window, entry);
	json_array_end(json);
	json_object_end(json);
}
