/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The findings about a process before an injection, for --dry-run and messages. */
#ifndef FBT_INJECT_VERDICT_H
#define FBT_INJECT_VERDICT_H

#include <stdio.h>
#include "base/findings.h"

#define INJECT_TEXT_MAX 512

/* The alternative, for the texts of refusals. */
#define INJECT_INSTEAD "start it with the library instead (ferrum-bpftrace engine-env)"

struct inject_verdict {
	struct findings findings;
	bool present; /* the shim is there already; nothing needs to be injected */
};

/* A warning does not prevent the injection. A refusal does. */
#define inject_fine(verdict, ...)   findings_add(&(verdict)->findings, FINDING_OK, __VA_ARGS__)
#define inject_warn(verdict, ...)   findings_add(&(verdict)->findings, FINDING_WARN, __VA_ARGS__)
#define inject_refuse(verdict, ...) findings_add(&(verdict)->findings, FINDING_FAIL, __VA_ARGS__)

static inline bool inject_refused(const struct inject_verdict *verdict)
{
	return findings_failed(&verdict->findings);
}

/*
 * Writes the first refusal, "subject: text", to text, which has INJECT_TEXT_MAX bytes; "" if there
 * is none.
 */
void inject_verdict_reason(const struct inject_verdict *verdict, char *text);

/* What is injected, in words. */
struct inject_words {
	const char *option;  /* "--gpu=inject" */
	const char *library; /* "the shim" */
};

/* Prints a line for each finding, then what the option would do. */
void inject_verdict_print(const struct inject_verdict *verdict, const struct inject_words *words,
			  uint32_t tgid, FILE *out);

#endif
