/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "log.h"
#include "outputs.h"

static void push_records(void *ctx, const void *data, size_t size)
{
	outputs__push(ctx, data, size);
}

int replay_run(const struct options *options, const struct metadata *metadata)
{
	struct outputs *outputs = NULL;
	int err = 0, failed;
	FILE *in = fopen(options->replay, "re");

	if (!in) {
		err = -errno;
		log_err("%s: %s", options->replay, strerror(-err));
		return err;
	}
	err = outputs__open(&outputs, options, metadata, NULL);
	if (!err)
		err = capture_read(in, options->replay, push_records, outputs);
	fclose(in);
	/* Nothing in it was a capture: there is nothing to say but that. */
	if (err && (!outputs || !outputs__window(outputs)->record.start_ns)) {
		outputs__discard(outputs);
		return err;
	}
	failed = outputs__finish(outputs);
	outputs__free(outputs);
	return err ? err : failed;
}
