/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memfd.h"
#include "model/event.h"
#include "output/capture.h"
#include "trace/outputs.h"

#define DUMP_NS (60 * NS_PER_S)
/* Twice the longest record: a block always has a whole one. */
#define BLOCK_BYTES (2 * DECODE_RECORD_MAX)

struct dump {
	struct options options; /* a shallow copy; its paths are the next two, and of the caller */
	char *base;
	char *record;
	struct otlp_health health; /* not used: there is no collector */
	struct outputs *outputs;
	FILE *capture; /* a memory file */
	char *block;
	size_t held; /* bytes in block */
	struct segments_written written;
	char tag[64];
	char *result;
};

static int name_files(struct dump *dump, const struct options *options, uint32_t tgid)
{
	snprintf(dump->tag, sizeof(dump->tag), "pid%" PRIu32 "_%" PRIu64, tgid,
		 clock_ns(CLOCK_REALTIME) / NS_PER_MS);
	if ((options->output ? asprintf(&dump->base, "%s_top", options->output)
			     : asprintf(&dump->base, "%s/ferrum_top", options->windows.dir)) < 0)
		dump->base = NULL;
	if (dump->base && asprintf(&dump->record, "%s_%s.fbt", dump->base, dump->tag) < 0)
		dump->record = NULL;
	if (!dump->base || !dump->record)
		return -ENOMEM;
	dump->options = *options;
	dump->options.mode = MODE_REPLAY;
	dump->options.output = dump->base;
	dump->options.record = dump->record;
	dump->options.trace = NULL;
	dump->options.profile = NULL;
	dump->options.html = NULL;
	dump->options.folded = "none";
	dump->options.report = REPORT_NONE;
	dump->options.otlp = NULL;
	dump->options.torch.is_on = false;
	return 0;
}

/* The last minute as a capture in memory. */
static int take_minute(struct dump *dump, struct segments *segments)
{
	const struct segments_cut cut = {
		.tag = dump->tag,
		.last_ns = DUMP_NS,
		.end_ns = clock_ns(CLOCK_MONOTONIC),
		.realtime_ns = clock_ns(CLOCK_REALTIME),
	};
	int fd = memfd_make("ferrum-dump"), err;

	dump->capture = fd < 0 ? NULL : fdopen(fd, "w+e");
	if (!dump->capture) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = segments__write(segments, dump->capture, &cut, &dump->written);
	if (!err && fseek(dump->capture, sizeof(struct capture_header), SEEK_SET))
		err = -errno;
	return err;
}

int dump__start(struct dump **result, struct segments *segments, const struct options *options,
		const struct metadata *metadata, uint32_t tgid)
{
	struct dump *dump = calloc(1, sizeof(*dump));
	int err = -ENOMEM;

	*result = NULL;
	if (dump)
		dump->block = malloc(BLOCK_BYTES);
	if (dump && dump->block)
		err = name_files(dump, options, tgid);
	if (!err)
		err = take_minute(dump, segments);
	if (err) {
		log_err("dump: %s", strerror(-err));
	} else {
		err = outputs__open(&dump->outputs, &dump->options, metadata, dump->tag,
				    &dump->health, NULL);
		if (err == -EEXIST)
			log_err("dump: files of %s exist: try again", dump->tag);
	}
	if (err) {
		dump__free(dump);
		return err;
	}
	*result = dump;
	return 0;
}

/* Whole records at the begin of the block. */
static size_t count_whole(const struct dump *dump)
{
	const struct fbt_header *record;
	size_t taken = 0;

	while (dump->held - taken >= sizeof(*record)) {
		record = (const struct fbt_header *)(dump->block + taken);
		if (record->size < sizeof(*record) || record->size > dump->held - taken)
			break;
		taken += record->size;
	}
	return taken;
}

static void finish(struct dump *dump)
{
	int err = outputs__finish(dump->outputs);

	outputs__free(dump->outputs);
	dump->outputs = NULL;
	if (err)
		return;
	if (asprintf(&dump->result, "wrote %s_%s.* (%" PRIu64 " steps%s)", dump->base, dump->tag,
		     dump->written.steps,
		     dump->written.crowded ? ", less than a minute: older records had no room"
					   : "") < 0)
		dump->result = NULL;
}

bool dump__turn(struct dump *dump)
{
	size_t taken;

	dump->held += fread(dump->block + dump->held, 1, BLOCK_BYTES - dump->held, dump->capture);
	taken = count_whole(dump);
	if (!taken) {
		finish(dump);
		return false;
	}
	outputs__push(dump->outputs, dump->block, taken);
	dump->held -= taken;
	memmove(dump->block, dump->block + taken, dump->held);
	return true;
}

const char *dump__result(const struct dump *dump)
{
	return dump->result;
}

void dump__free(struct dump *dump)
{
	if (!dump)
		return;
	outputs__discard(dump->outputs);
	if (dump->capture)
		fclose(dump->capture);
	free(dump->block);
	free(dump->base);
	free(dump->record);
	free(dump->result);
	free(dump);
}
