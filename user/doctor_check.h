/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What doctor found out: one check a line, each that is not well with what to do. */
#ifndef FBT_DOCTOR_CHECK_H
#define FBT_DOCTOR_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include "vec.h"

#define DOCTOR_TEXT_MAX 1024

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_NOTE, /* nothing is wrong: something is not there, or only to be known */
	DOCTOR_WARN, /* -p works, but not all of it, or at a cost */
	DOCTOR_NO,   /* -p does not work */
	DOCTOR_STATUS_COUNT,
};

struct doctor_check {
	enum doctor_status status;
	uint32_t tgid;	  /* 0: of this machine */
	const char *name; /* static */
	/* As they are, perhaps with a target's own text; printed with controls escaped. */
	char finding[DOCTOR_TEXT_MAX];
	char remedy[DOCTOR_TEXT_MAX]; /* "": there is nothing to do */
};

struct doctor_checks {
	VEC(struct doctor_check) items;
	uint32_t tgid; /* of what is added */
	bool failed;   /* -ENOMEM: checks are missing */
};

/* Adds a check. Of a lack of memory only failed remains. */
void doctor_say(struct doctor_checks *checks, enum doctor_status status, const char *name,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

/* What to do about the check that was added last. */
void doctor_advise(struct doctor_checks *checks, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first check that keeps -p from working; NULL: it would work (if checks did not fail). */
const struct doctor_check *doctor_obstacle(const struct doctor_checks *checks);

size_t doctor_count(const struct doctor_checks *checks, enum doctor_status status);

/* "ok", "note", "warn", "no". */
const char *doctor_status_name(enum doctor_status status);

void doctor_checks_clear(struct doctor_checks *checks);

/*
 * What a part of the program logs while it is asked (log_divert): the most serious line, of these
 * the first.
 */
struct doctor_words {
	bool any;
	int level; /* enum log_level */
	char text[DOCTOR_TEXT_MAX];
};

void doctor_listen(struct doctor_words *words); /* empties it */
void doctor_listen_end(void);

/*
 * What was heard, without a "process TGID: " in front; where nothing was, what err (negative, or 0)
 * means.
 */
const char *doctor_words_text(const struct doctor_words *words, uint32_t tgid, int err);

#endif
