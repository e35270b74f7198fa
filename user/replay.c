/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "replay.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "fbt_event.h"
#include "log.h"
#include "outputs.h"

struct replay {
	struct outputs *outputs;
	bool escalate; /* and it was not asked for yet */
};

static void push_records(void *ctx, const void *data, size_t size)
{
	struct replay *replay = ctx;
	const struct fbt_window *window = data;

	/* As while tracing: right behind the window's record, with which a capture begins. */
	if (replay->escalate && size >= sizeof(*window) &&
	    window->header.type == FBT_EVENT_WINDOW && window->header.size <= size) {
		struct fbt_manual manual = {
			.header = {.type = FBT_EVENT_MANUAL, .size = sizeof(manual)},
			.time_ns = window->start_ns,
		};

		replay->escalate = false;
		outputs__push(replay->outputs, data, window->header.size);
		outputs__push(replay->outputs, &manual, sizeof(manual));
		data = (const char *)data + window->header.size;
		size -= window->header.size;
	}
	outputs__push(replay->outputs, data, size);
}

int replay_run(const struct options *options, const struct metadata *metadata)
{
	struct replay replay = {.escalate = options->escalate_now};
	struct outputs *outputs = NULL;
	int err = 0, failed;
	FILE *in = fopen(options->replay, "re");

	if (!in) {
		err = -errno;
		log_err("%s: %s", options->replay, strerror(-err));
		return err;
	}
	if (options->compute_env_hash && !strcmp(metadata->env_hash, METADATA_ENV_HASH_UNKNOWN))
		log_warn("--compute-env-hash: a capture does not tell of its host: the hash stays "
			 "unknown");
	err = outputs__open(&outputs, options, metadata, NULL);
	replay.outputs = outputs;
	if (!err)
		err = capture_read(in, options->replay, push_records, &replay);
	fclose(in);
	/* Nothing in it was a capture: there is nothing to say but that. */
	if (err && (!outputs || !outputs__window(outputs)->record.start_ns)) {
		outputs__discard(outputs);
		return err;
	}
	failed = outputs__finish(outputs);
	outputs__wait(outputs);
	outputs__free(outputs);
	return err ? err : failed;
}
