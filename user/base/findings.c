/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/findings.h"

#include <stdarg.h>
#include <stdio.h>

void findings_add(struct findings *findings, enum severity severity, const char *subject,
		  const char *format, ...)
{
	struct finding finding = {.severity = severity, .tgid = findings->tgid, .subject = subject};
	va_list args;

	va_start(args, format);
	vsnprintf(finding.text, sizeof(finding.text), format, args);
	va_end(args);
	if (vec_push(&findings->items, finding))
		findings->incomplete = true;
}

void findings_advise(struct findings *findings, const char *format, ...)
{
	struct finding *last;
	va_list args;

	if (!findings->items.count)
		return;
	last = &findings->items.items[findings->items.count - 1];
	va_start(args, format);
	vsnprintf(last->remedy, sizeof(last->remedy), format, args);
	va_end(args);
}

const struct finding *findings_first(const struct findings *findings, enum severity severity)
{
	vec_for_each (finding, &findings->items) {
		if (finding->severity == severity)
			return finding;
	}
	return NULL;
}

size_t findings_count(const struct findings *findings, enum severity severity)
{
	size_t count = 0;

	vec_for_each (finding, &findings->items)
		count += finding->severity == severity;
	return count;
}

bool findings_failed(const struct findings *findings)
{
	return findings->incomplete || findings_first(findings, FINDING_FAIL);
}

void findings_free(struct findings *findings)
{
	vec_free(&findings->items);
	*findings = (struct findings){.tgid = 0};
}
