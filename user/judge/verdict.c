/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/verdict.h"

#include "base/format.h"
#include "model/syscalls.h"

const char *escalation_reason_text(enum escalation_reason reason)
{
	return reason == ESCALATION_BOTH ? "cv_exceeded and efficiency_low"
					 : escalation_otlp_value(reason);
}

const char *escalation_fired_text(uint32_t fired, char text[FIRED_SIZE])
{
	struct line line = {text, FIRED_SIZE, 0};

	text[0] = '\0';
	for (uint32_t i = ESCALATION_NONE + 1; i < ESCALATION_REASON_COUNT; i++) {
		if (fired & 1u << i)
			line_add(&line, "%s%s", line.length ? "," : "",
				 escalation_otlp_value((enum escalation_reason)i));
	}
	return text;
}

const char *escalation_not_shown_text(const struct escalation *escalation)
{
	if (escalation->repeated)
		return "repeated";
	if (escalation->as_usual)
		return "as_usual";
	return escalation->suppressed ? "rate_limit" : NULL;
}

void escalation_worst(const struct escalation *escalation, const struct window *window,
		      const struct step *step, struct worst *worst)
{
	const struct fbt_call *call = &escalation->worst;
	bool is_known = call->duration_ns && step->complete;

	*worst = (struct worst){.ns = call->duration_ns};
	if (call->duration_ns)
		worst->name =
			syscall_label((enum fbt_arch)window->record.arch, call->nr, worst->label);
	for (int i = 0; i < FBT_CATEGORY_COUNT && !is_known; i++) {
		const struct fbt_sum *sum = &step->record.sums[i];
		/* The longest call of an interval may have begun before it. */
		uint64_t ns = sum->max_ns < sum->ns ? sum->max_ns : sum->ns;

		if (ns <= worst->ns)
			continue;
		worst->ns = ns;
		worst->name = category_name((enum fbt_category)i);
		worst->is_category = true;
	}
}
