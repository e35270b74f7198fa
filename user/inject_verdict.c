/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_verdict.h"

#include <stdarg.h>
#include <string.h>

#include "terminal.h"

static const char *const severity_names[] = {
	[INJECT_FINE] = "ok",
	[INJECT_WARNING] = "warning",
	[INJECT_REFUSAL] = "refused",
};

void inject_verdict_add(struct inject_verdict *verdict, enum inject_severity severity,
			const char *subject, const char *format, ...)
{
	struct inject_finding finding = {.severity = severity, .subject = subject, .text = ""};
	va_list args;

	va_start(args, format);
	vsnprintf(finding.text, sizeof(finding.text), format, args);
	va_end(args);
	if (vec_push(&verdict->findings, finding) || severity == INJECT_REFUSAL)
		verdict->refused = true;
}

static const struct inject_finding *first_refusal(const struct inject_verdict *verdict)
{
	vec_for_each (finding, &verdict->findings) {
		if (finding->severity == INJECT_REFUSAL)
			return finding;
	}
	return NULL;
}

void inject_verdict_reason(const struct inject_verdict *verdict, char *text)
{
	const struct inject_finding *finding = first_refusal(verdict);

	*text = '\0';
	if (finding)
		snprintf(text, INJECT_TEXT_MAX, "%s: %.*s", finding->subject,
			 INJECT_TEXT_MAX - (int)strlen(finding->subject) - 3, finding->text);
	else if (verdict->refused)
		snprintf(text, INJECT_TEXT_MAX, "%s", "out of memory");
}

static void print_finding(const struct inject_finding *finding, FILE *out)
{
	terminal_line(out, "  %-8s %-14s %s", severity_names[finding->severity], finding->subject,
		      finding->text);
}

void inject_verdict_print(const struct inject_verdict *verdict, uint32_t tgid, FILE *out)
{
	char reason[INJECT_TEXT_MAX];

	terminal_line(out, "process %u:", tgid);
	vec_for_each (finding, &verdict->findings)
		print_finding(finding, out);
	inject_verdict_reason(verdict, reason);
	if (verdict->refused)
		terminal_line(out, "--gpu=inject would do nothing: %s", reason);
	else if (verdict->present)
		terminal_line(out, "--gpu=inject would put nothing into it: the shim that is there "
				   "would be switched on");
	else
		terminal_line(out, "--gpu=inject would load the shim");
}

void inject_verdict_clear(struct inject_verdict *verdict)
{
	vec_free(&verdict->findings);
	memset(verdict, 0, sizeof(*verdict));
}
