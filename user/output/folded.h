/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The stacks of slow calls of steps in folded form, for flame graphs: see folded_table.h. */
#ifndef FBT_OUTPUT_FOLDED_H
#define FBT_OUTPUT_FOLDED_H

#include <stdio.h>
#include "output/sink.h"

/*
 * out is borrowed; it is written at the end of the window. Each call counts with all its time, of
 * which it may have waited for a CPU. NULL: -ENOMEM.
 */
struct sink *sink_folded__new(FILE *out);

#endif
