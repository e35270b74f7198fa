/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The report for programs: one JSON object, a superset of the text's figures, in ns. */
#ifndef FBT_REPORT_JSON_H
#define FBT_REPORT_JSON_H

#include "report_text.h"

/* Errors show in ferror(report->out). */
void report_json_write(const struct report *report);

#endif
