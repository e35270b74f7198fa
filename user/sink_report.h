/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The report: what a person reads when the window has ended. */
#ifndef FBT_SINK_REPORT_H
#define FBT_SINK_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include "sink.h"

enum report_format { REPORT_NONE = 0, REPORT_TEXT = 1, REPORT_JSON = 2 };

struct report_options {
	enum report_format format;
	bool color;
	const char *const
		*files; /* lines "trace  PATH" to show at the end, NULL-terminated; or NULL */
};

/* Writes to out, which stays the caller's; options are copied, files borrowed. NULL: -ENOMEM. */
struct sink *sink_report__new(FILE *out, const struct report_options *options);

#endif
