/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Fills a side from a file: a capture (--record) or a profile, compressed or not. */
#ifndef FBT_DIFF_READ_H
#define FBT_DIFF_READ_H

#include <stdio.h>
#include "diff/side.h"
#include "output/pipeline.h"

/*
 * What the file begins with tells what it is. judging is for captures: a profile has its own
 * verdicts. 0, or -errno, logged: the file cannot be read, or is neither.
 */
int side_read(struct side *side, const struct pipeline_options *judging);

/* The two, from an open file. Errors as above. */
int side_read_capture(struct side *side, FILE *in, const struct pipeline_options *judging);
int side_read_profile(struct side *side, FILE *in);

#endif
