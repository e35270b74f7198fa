/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Assertions on the checks that doctor derives from given facts. Include after cmocka.h. */
#ifndef FBT_DOCTOR_FIXTURE_H
#define FBT_DOCTOR_FIXTURE_H

#include <stdio.h>
#include <string.h>

#include "commands/doctor_check.h"

static inline void hear(struct doctor_words *words, const char *text)
{
	words->any = true;
	snprintf(words->text, sizeof(words->text), "%s", text);
}

/* The first check of that name, or NULL. */
static inline const struct finding *find_check(const struct findings *checks, const char *name)
{
	vec_for_each (check, &checks->items) {
		if (!strcmp(check->subject, name))
			return check;
	}
	return NULL;
}

/*
 * Asserts the severity of the check of that name, and parts of its finding and remedy. remedy NULL:
 * it must have none.
 */
static inline void assert_check(const struct findings *checks, const char *name,
				enum severity severity, const char *finding, const char *remedy)
{
	const struct finding *check = find_check(checks, name);

	if (!check) {
		fail_msg("there is no check %s", name);
		return;
	}
	if (check->severity != severity || !strstr(check->text, finding))
		fail_msg("%s: severity %u \"%s\", wanted %u \"%s\"", name, check->severity,
			 check->text, severity, finding);
	if (remedy ? !strstr(check->remedy, remedy) : *check->remedy)
		fail_msg("%s: remedy \"%s\", wanted \"%s\"", name, check->remedy,
			 remedy ? remedy : "");
}

/*
 * Frees the checks. Checks that warn or fail must have a remedy; those that are OK must have none.
 */
static inline void end_checks(struct findings *checks)
{
	vec_for_each (check, &checks->items) {
		bool bad = check->severity == FINDING_WARN || check->severity == FINDING_FAIL;

		if (bad && !*check->remedy)
			fail_msg("%s: \"%s\" has no remedy", check->subject, check->text);
		if (check->severity == FINDING_OK && *check->remedy)
			fail_msg("%s: is well and has a remedy", check->subject);
	}
	findings_free(checks);
}

#endif
