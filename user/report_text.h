/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The report as a person reads it: most important first, at most 100 columns. */
#ifndef FBT_REPORT_TEXT_H
#define FBT_REPORT_TEXT_H

#include "report_part.h"

/* Errors show in ferror(report->out). */
void report_text_write(const struct report *report);

#endif
