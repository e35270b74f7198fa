/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "escalation_text.h"

#include <stdio.h>

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

const char *cause_words(enum cause_kind kind, char text[CAUSE_WORDS_SIZE])
{
	snprintf(text, CAUSE_WORDS_SIZE, "%s", cause_name(kind));
	for (char *at = text; *at; at++)
		if (*at == '_')
			*at = ' ';
	return text;
}
