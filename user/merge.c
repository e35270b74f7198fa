/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "merge.h"

#include <stdlib.h>

struct merger {
	struct merge_options options;
	struct merge_output output;
};

struct merger *merger__new(const struct merge_options *options, const struct merge_output *output)
{
	struct merger *merger = calloc(1, sizeof(*merger));

	if (!merger)
		return NULL;
	merger->options = *options;
	merger->output = *output;
	return merger;
}

void merger__free(struct merger *merger)
{
	free(merger);
}

int merger__push_step(struct merger *merger, struct window *window, struct step *step)
{
	return merger->output.on_step(merger->output.ctx, window, step);
}

int merger__push_gpu(struct merger *merger, struct window *window, const struct fbt_header *event)
{
	return 0;
}

int merger__flush(struct merger *merger, struct window *window)
{
	return 0;
}
