/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The HTML report of a window: a sink. One file that asks no server for anything. Its data are the
 * two other reports, a choice of the steps (html/points.h), and the sums of all of them over time
 * (html/timeline.h). Everything that came from the target is data in JSON; the page's policy lets
 * no other script run than its own.
 */
#ifndef FBT_HTML_HTML_H
#define FBT_HTML_HTML_H

#include <stdio.h>
#include "output/sink.h"

/* out is borrowed. NULL: -ENOMEM. */
struct sink *sink_html__new(FILE *out);

#endif
