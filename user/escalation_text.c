/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "escalation_text.h"

#include <stdio.h>

#include "syscalls.h"

const char *escalation_fired_text(uint32_t fired, char text[FIRED_SIZE])
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = ESCALATION_NONE + 1; i < ESCALATION_REASON_COUNT; i++) {
		if (!(fired & 1u << i))
			continue;
		used += (size_t)snprintf(text + used, FIRED_SIZE - used, "%s%s", used ? "," : "",
					 escalation_otlp_value((enum escalation_reason)i));
	}
	return text;
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
		/* Of an interval the longest call may have begun before it. */
		uint64_t ns = sum->max_ns < sum->ns ? sum->max_ns : sum->ns;

		if (ns <= worst->ns)
			continue;
		worst->ns = ns;
		worst->name = category_name((enum fbt_category)i);
		worst->is_category = true;
	}
}

const char *cause_words(enum cause_kind kind, char text[CAUSE_WORDS_SIZE])
{
	snprintf(text, CAUSE_WORDS_SIZE, "%s", cause_name(kind));
	for (char *at = text; *at; at++)
		if (*at == '_')
			*at = ' ';
	return text;
}
