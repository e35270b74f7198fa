/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The ioctls of NVIDIA's driver in steps, by name. */
#ifndef FBT_TALLY_DRIVER_TALLY_H
#define FBT_TALLY_DRIVER_TALLY_H

#include <stdbool.h>
#include "base/vec.h"
#include "model/driver_calls.h"
#include "model/step.h"
#include "model/window.h"

struct driver_row {
	char name[DRIVER_CALL_NAME];
	uint64_t command; /* fbt_call.args[1] */
	bool is_uvm;	  /* a command of nvidia-uvm, which may have the same number */
	struct fbt_sum sum;
	uint64_t worst_step; /* the number of the step with the longest one */
};

#define DRIVER_ROWS_MAX 64

/* Of calls whose records arrived. Sums saturate. {0} is empty. */
struct driver_tally {
	VEC(struct driver_row) rows;
	struct fbt_sum rest; /* of commands beyond DRIVER_ROWS_MAX */
	uint64_t incomplete; /* steps with driver calls of which some calls were lost */
};

/* 0 or -ENOMEM. */
int driver_tally_add(struct driver_tally *tally, const struct window *window,
		     const struct step *step);
void driver_tally_clear(struct driver_tally *tally);

#endif
