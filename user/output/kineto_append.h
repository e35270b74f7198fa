/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The events of a trace that PyTorch's profiler has written, beside those of our own. */
#ifndef FBT_OUTPUT_KINETO_APPEND_H
#define FBT_OUTPUT_KINETO_APPEND_H

#include "output/kineto_file.h"

/*
 * Copies the events of in, whose bytes are those of the traced process, behind the event
 * KINETO_FOREIGN: each is parsed first, and its time becomes one of file's base. Names of processes
 * are left out, since file has them. Reads at most limit bytes. 0; -EBADMSG, logged: in is no such
 * trace, and events may be missing; or -ENOMEM.
 */
int kineto_append(struct kineto_file *file, const struct window *window, FILE *in, uint64_t limit);

#endif
