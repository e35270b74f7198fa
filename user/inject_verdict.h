/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What was found out about a process before anything is done to it, for --dry-run and messages. */
#ifndef FBT_INJECT_VERDICT_H
#define FBT_INJECT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "vec.h"

#define INJECT_TEXT_MAX 512

/* What there is instead, for the texts of refusals. */
#define INJECT_INSTEAD "start it with the shim instead (ferrum-bpftrace gpu-env)"

enum inject_severity {
	INJECT_FINE,
	INJECT_WARNING, /* it is done all the same; the user is told */
	INJECT_REFUSAL, /* nothing is done */
};

struct inject_finding {
	enum inject_severity severity;
	const char *subject;	    /* "libc", "seccomp", …: static */
	char text[INJECT_TEXT_MAX]; /* as it is; printed with control characters escaped */
};

struct inject_verdict {
	VEC(struct inject_finding) findings;
	bool refused;
	bool present; /* the shim is there already: there is nothing to inject */
};

/* Of a lack of memory only refused remains, which it then sets. */
void inject_verdict_add(struct inject_verdict *verdict, enum inject_severity severity,
			const char *subject, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The first refusal, "subject: text", in the given buffer of INJECT_TEXT_MAX; "" if there is none.
 */
void inject_verdict_reason(const struct inject_verdict *verdict, char *text);

/* A line for each finding, then what --gpu=inject would do. */
void inject_verdict_print(const struct inject_verdict *verdict, uint32_t tgid, FILE *out);

void inject_verdict_clear(struct inject_verdict *verdict);

#endif
