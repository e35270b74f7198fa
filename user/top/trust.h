/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which figures cannot be trusted, and why, in words. Pure. */
#ifndef FBT_TOP_TRUST_H
#define FBT_TOP_TRUST_H

#include <stddef.h>
#include "top/model.h"

#define TRUST_LINES 32

struct trust {
	uint64_t lost; /* records, since the window began */
	size_t count;
	char lines[TRUST_LINES][256];
	double cost_percent; /* of the time of the steps of the last seconds; less than 0: not known
			      */
};

/* cost is what was measured when the tool attached. */
void trust_find(struct trust *trust, const struct window *window, const struct fbt_cost *cost,
		const struct top_model *model, const struct top_figures *figures);

#endif
