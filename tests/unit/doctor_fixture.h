/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What doctor says of made up findings. Include after cmocka.h. */
#ifndef FBT_DOCTOR_FIXTURE_H
#define FBT_DOCTOR_FIXTURE_H

#include <string.h>

#include "doctor_check.h"

/* The check of that name; NULL: there is none. */
static inline const struct doctor_check *find_check(const struct doctor_checks *checks,
						    const char *name)
{
	vec_for_each (check, &checks->items) {
		if (!strcmp(check->name, name))
			return check;
	}
	return NULL;
}

/*
 * There is a check of that name and status, in whose finding and remedy those parts are. What is
 * not well has a remedy, what is well has none.
 */
static inline void assert_check(const struct doctor_checks *checks, const char *name,
				enum doctor_status status, const char *finding, const char *remedy)
{
	const struct doctor_check *check = find_check(checks, name);

	if (!check) {
		fail_msg("there is no check %s", name);
		return;
	}
	if (check->status != status || !strstr(check->finding, finding))
		fail_msg("%s: %s \"%s\", wanted %s \"%s\"", name, doctor_status_name(check->status),
			 check->finding, doctor_status_name(status), finding);
	if (remedy ? !strstr(check->remedy, remedy) : *check->remedy)
		fail_msg("%s: remedy \"%s\", wanted \"%s\"", name, check->remedy,
			 remedy ? remedy : "");
}

/* Whatever a test made of the findings: who is told that something is wrong is told what to do. */
static inline void end_checks(struct doctor_checks *checks)
{
	vec_for_each (check, &checks->items) {
		bool bad = check->status == DOCTOR_WARN || check->status == DOCTOR_NO;

		if (bad && !*check->remedy)
			fail_msg("%s: \"%s\" has no remedy", check->name, check->finding);
		if (check->status == DOCTOR_OK && *check->remedy)
			fail_msg("%s: is well and has a remedy", check->name);
	}
	doctor_checks_clear(checks);
}

#endif
