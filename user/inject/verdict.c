/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/verdict.h"

#include <string.h>

#include "base/format.h"

static const char *const severity_names[] = {
	[FINDING_OK] = "ok",
	[FINDING_NOTE] = "note",
	[FINDING_WARN] = "warning",
	[FINDING_FAIL] = "refused",
};

void inject_verdict_reason(const struct inject_verdict *verdict, char *text)
{
	const struct finding *refusal = findings_first(&verdict->findings, FINDING_FAIL);

	if (refusal)
		snprintf(text, INJECT_TEXT_MAX, "%s: %.*s", refusal->subject,
			 INJECT_TEXT_MAX - (int)strlen(refusal->subject) - 3, refusal->text);
	else
		snprintf(text, INJECT_TEXT_MAX, "%s",
			 inject_refused(verdict) ? "out of memory" : "");
}

void inject_verdict_print(const struct inject_verdict *verdict, const struct inject_words *words,
			  uint32_t tgid, FILE *out)
{
	char reason[INJECT_TEXT_MAX];

	terminal_line(out, "process %u:", tgid);
	vec_for_each (finding, &verdict->findings.items)
		terminal_line(out, "  %-8s %-14s %s", severity_names[finding->severity],
			      finding->subject, finding->text);
	inject_verdict_reason(verdict, reason);
	if (inject_refused(verdict))
		terminal_line(out, "%s would do nothing: %s", words->option, reason);
	else if (verdict->present)
		terminal_line(out, "%s would inject nothing: it would arm %s that is there",
			      words->option, words->library);
	else
		terminal_line(out, "%s would load %s", words->option, words->library);
}
