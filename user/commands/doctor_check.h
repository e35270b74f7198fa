/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The output of doctor's checks, one finding each with a remedy if it is bad, as text and as JSON;
 * and what the program logs while it checks.
 */
#ifndef FBT_COMMANDS_DOCTOR_CHECK_H
#define FBT_COMMANDS_DOCTOR_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include "base/findings.h"

/*
 * One line per check, at most 100 columns wide, and a last line that says whether -p would work,
 * or why not. pids: those of -p, for the last line; none if doctor checked the machine only.
 */
void doctor_print_text(const struct findings *checks, const uint32_t *pids, size_t pid_count,
		       bool colors, FILE *out);

/*
 * {"works":bool,"checks":[{"pid":null or number,"name","status","finding","remedy": string or
 * null}]}, one check per line.
 */
void doctor_print_json(const struct findings *checks, FILE *out);

/* What failed in one process and is fine in another, which is enough, becomes a warning. */
void doctor_ease(struct findings *checks, const char *subject);

/* What the program logs from doctor_listen to doctor_listen_end: the first of the worst lines. */
struct doctor_words {
	bool any;
	int level; /* enum log_level */
	char text[FINDING_TEXT_MAX];
};

void doctor_listen(struct doctor_words *words); /* empties it */
void doctor_listen_end(void);

/* The words without "process TGID: " of checks at their begin; otherwise if there are none. */
const char *doctor_words_text(const struct doctor_words *words, const struct findings *checks,
			      const char *otherwise);

#endif
