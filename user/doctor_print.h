/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The checks of doctor as text and as JSON. */
#ifndef FBT_DOCTOR_PRINT_H
#define FBT_DOCTOR_PRINT_H

#include <stdio.h>
#include "doctor_check.h"

/*
 * A line for each check, at most 100 columns wide, and at the end one that says whether -p would
 * work, and if not, why. pids: of -p, for that line; none: of processes at large. colors: marks in
 * colour.
 */
void doctor_print_text(const struct doctor_checks *checks, const uint32_t *pids, size_t pid_count,
		       bool colors, FILE *out);

/*
 * {"works":bool,"checks":[{"pid":null or number,"name","status","finding","remedy": string or
 * null}]}: one check a line.
 */
void doctor_print_json(const struct doctor_checks *checks, FILE *out);

#endif
