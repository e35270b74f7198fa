/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How a trace format writes the slices that output/trace_slices makes of a window. */
#ifndef FBT_OUTPUT_TRACE_ENCODER_H
#define FBT_OUTPUT_TRACE_ENCODER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/json.h"
#include "model/step.h"
#include "model/window.h"

struct slice {
	const char *name;
	const char *cat;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t pid;
	uint32_t tid; /* or a lane, see trace_slices.h */
	bool is_leaf; /* there are no slices in it */
	/* What some formats have besides; NULL: nothing. */
	const struct step *step;       /* it is the slice of this step */
	const struct fbt_stack *stack; /* in which functions it was */
};

/*
 * Slices of a lane nest. An outer one comes before those in it, and of two with the same times the
 * outer one comes first. The functions return 0 or -errno; errors of out they leave to ferror. All
 * but slice and free may be NULL.
 */
struct trace_encoder {
	int (*slice)(struct trace_encoder *encoder, const struct window *window,
		     const struct slice *slice, const struct json_fields *args);
	/* What else a format can tell of a step, which was just written as a slice in lane. */
	int (*step)(struct trace_encoder *encoder, const struct window *window,
		    const struct step *step, uint32_t lane);
	int (*finish)(struct trace_encoder *encoder, const struct window *window);
	void (*free)(struct trace_encoder *encoder);
};

#endif
