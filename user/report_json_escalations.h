/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The verdicts in the report for programs. */
#ifndef FBT_REPORT_JSON_ESCALATIONS_H
#define FBT_REPORT_JSON_ESCALATIONS_H

#include "json.h"
#include "report_part.h"

/* "escalations": counts, all causes, and the last that were shown. */
void report_json_escalations(struct json *json, const struct report *report);

#endif
