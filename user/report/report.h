/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The report at the end of a window, as text or JSON: a sink. */
#ifndef FBT_REPORT_REPORT_H
#define FBT_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include "output/sink.h"

/* REPORT_OPEN: an option that was not given; options_complete decides. */
enum report_format { REPORT_NONE = 0, REPORT_TEXT = 1, REPORT_JSON = 2, REPORT_OPEN = 3 };

struct report_options {
	enum report_format format;
	bool color;
	bool verbose;		  /* of text: with the threads of each process */
	const char *const *files; /* lines "trace  PATH", NULL-terminated; or NULL */
};

/* out and files are borrowed, options copied. NULL: -ENOMEM. */
struct sink *sink_report__new(FILE *out, const struct report_options *options);

#endif
