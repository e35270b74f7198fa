/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A list of what was found, line by line, each with a severity. {0} is empty. */
#ifndef FBT_BASE_FINDINGS_H
#define FBT_BASE_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"

#define FINDING_TEXT_MAX 1024

enum severity {
	FINDING_OK,
	FINDING_NOTE, /* nothing is wrong: something is absent, or for information */
	FINDING_WARN, /* what was asked about works, but not all of it, or at a cost */
	FINDING_FAIL, /* what was asked about does not work */
};

struct finding {
	enum severity severity;
	uint32_t tgid;	     /* the process it is about; 0: none */
	const char *subject; /* "libc", "seccomp", ...: static */
	/* Not escaped, and may hold a target's own text. */
	char text[FINDING_TEXT_MAX];
	char remedy[FINDING_TEXT_MAX]; /* "": none */
};

struct findings {
	VEC(struct finding) items;
	uint32_t tgid;	 /* of the findings that are added next */
	bool incomplete; /* there was no memory for a finding */
};

/* Cuts a text that is too long. Without memory the finding is lost and the list incomplete. */
void findings_add(struct findings *findings, enum severity severity, const char *subject,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sets the remedy of the last finding. */
void findings_advise(struct findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first finding of a severity; NULL if there is none. */
const struct finding *findings_first(const struct findings *findings, enum severity severity);

size_t findings_count(const struct findings *findings, enum severity severity);

/* One failed, or may have: the list is incomplete. */
bool findings_failed(const struct findings *findings);

void findings_free(struct findings *findings);

#endif
