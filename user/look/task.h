/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The threads of a process at one moment. */
#ifndef FBT_LOOK_TASK_H
#define FBT_LOOK_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "fbt_shared.h"

/* A thread as it is seen once. */
struct look_task {
	struct fbt_look_task seen;
	uint64_t call_ns; /* when its call began, as its slot has it; 0: not known, or in none */
	bool was_called;  /* its registers are those of a call, rather than of an interrupt */
	uint64_t step_sp; /* where the frame of its step begins; 0: it is in none */
};

typedef VEC(struct look_task) look_task_vec;

#endif
