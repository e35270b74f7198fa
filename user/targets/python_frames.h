/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Python functions for the stacks of threads that are looked at from outside, of processes in which
 * python_stalls has found an interpreter.
 */
#ifndef FBT_TRACE_PYTHON_FRAMES_H
#define FBT_TRACE_PYTHON_FRAMES_H

#include "stacks/script.h"
#include "targets/python_stalls.h"

struct python_frames;

/* stalls is borrowed. NULL: -ENOMEM. */
struct python_frames *python_frames__new(struct python_stalls *stalls);
void python_frames__free(struct python_frames *frames);

/* Lives as long as frames. */
struct script_reader python_frames__reader(struct python_frames *frames);

#endif
