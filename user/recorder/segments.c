/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "recorder/segments.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memfd.h"
#include "model/event.h"
#include "output/capture.h"
#include "recorder/excerpt.h"
#include "recorder/facts.h"

/* Records are gathered, so that not each of them costs a system call. */
#define GATHER_BYTES (64u << 10)
/* Twice the longest record: a block always has a whole one. */
#define BLOCK_BYTES (2 * DECODE_RECORD_MAX)

struct segment {
	int fd;
	uint64_t size; /* bytes, those that are gathered not included */
	uint64_t records;
	uint64_t steps;
	uint64_t first_ns; /* when its first record came; 0: it is empty */
	uint64_t last_ns;
};

struct segments {
	struct segments_options options;
	struct segment items[SEGMENTS_COUNT]; /* a ring */
	size_t oldest;
	size_t count; /* in use; the last of them is written to */
	uint64_t segment_bytes;
	struct facts *facts; /* as they were before the oldest segment */
	char *gathered;	     /* of the last segment */
	size_t gathered_size;
	uint64_t gathered_records; /* the last segment counts them already, and its steps */
	uint64_t gathered_steps;
	char *block; /* for reading */
	bool opened; /* a window has begun */
	struct segments_figures totals;
};

static struct segment *segment_at(struct segments *segments, size_t index)
{
	return &segments->items[(segments->oldest + index) % SEGMENTS_COUNT];
}

static int fail(int err)
{
	log_err("flight recorder: %s", strerror(-err));
	return err;
}

/* Descriptors that are opened here may be written to when the tool is confined. */
static int open_files(struct segments *segments)
{
	for (size_t i = 0; i < SEGMENTS_COUNT; i++) {
		struct segment *segment = &segments->items[i];

		segment->fd = memfd_make("ferrum-segment");
		if (segment->fd < 0)
			return -errno;
	}
	return 0;
}

int segments__new(struct segments **result, const struct segments_options *options)
{
	struct segments *segments = calloc(1, sizeof(*segments));
	int err = -ENOMEM;

	*result = NULL;
	if (!segments)
		return fail(err);
	for (size_t i = 0; i < SEGMENTS_COUNT; i++)
		segments->items[i].fd = -1;
	segments->options = *options;
	segments->segment_bytes = max_u64(options->bytes, SEGMENTS_BYTES_MIN) / SEGMENTS_COUNT;
	segments->facts = facts__new(segments->segment_bytes * SEGMENTS_COUNT / 4);
	segments->gathered = malloc(GATHER_BYTES);
	segments->block = malloc(BLOCK_BYTES);
	if (segments->facts && segments->gathered && segments->block)
		err = open_files(segments);
	if (err) {
		segments__free(segments);
		return fail(err);
	}
	*result = segments;
	return 0;
}

void segments__free(struct segments *segments)
{
	if (!segments)
		return;
	for (size_t i = 0; i < SEGMENTS_COUNT; i++) {
		if (segments->items[i].fd >= 0)
			close(segments->items[i].fd);
	}
	facts__free(segments->facts);
	free(segments->gathered);
	free(segments->block);
	free(segments);
}

static void reset(struct segment *segment)
{
	/* A file that cannot be cut is written over; its size here counts. */
	if (ftruncate(segment->fd, 0))
		log_debug("flight recorder: %s", strerror(errno));
	*segment = (struct segment){.fd = segment->fd};
}

/* A visitor of records; false ends the walk. */
typedef bool (*visit_fn)(void *ctx, const struct fbt_header *record);

/* Visits whole records at the begin of data, and sets *taken to their bytes. */
static bool visit_block(const char *data, size_t size, size_t *taken, visit_fn visit, void *ctx)
{
	const struct fbt_header *record;

	*taken = 0;
	while (size - *taken >= sizeof(*record)) {
		record = (const struct fbt_header *)(data + *taken);
		if (record->size < sizeof(*record) || record->size > size - *taken)
			break;
		*taken += record->size;
		if (!visit(ctx, record))
			return false;
	}
	return true;
}

/* All records of a segment. 0, -EIO: its file is not as it was written, or -errno. */
static int visit_segment(struct segments *segments, const struct segment *segment, visit_fn visit,
			 void *ctx)
{
	uint64_t position = 0;

	while (position < segment->size) {
		size_t wanted = (size_t)min_u64(BLOCK_BYTES, segment->size - position), taken;
		ssize_t size = pread(segment->fd, segments->block, wanted, (off_t)position);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return -errno;
		if (!visit_block(segments->block, (size_t)size, &taken, visit, ctx))
			return 0;
		if (!taken)
			return -EIO;
		position += taken;
	}
	return 0;
}

static bool keep_fact(void *ctx, const struct fbt_header *record)
{
	struct segments *segments = ctx;

	if (facts_is_type(record->type) && facts__put(segments->facts, record))
		segments->totals.failed_records++;
	return true;
}

static void clear_gathered(struct segments *segments)
{
	segments->gathered_size = 0;
	segments->gathered_records = 0;
	segments->gathered_steps = 0;
}

/* What the oldest segment says about later ones is kept. */
static void drop_oldest(struct segments *segments, uint64_t now_ns)
{
	struct segment *segment = segment_at(segments, 0);
	int err;

	facts__forget_ended(segments->facts);
	err = visit_segment(segments, segment, keep_fact, segments);
	if (err)
		log_warn("flight recorder: %s: names are lost", strerror(-err));
	if (segments->options.span_ns &&
	    sub_saturating(now_ns, segment->last_ns) > segments->options.span_ns) {
		segments->totals.dropped_records += segment->records;
	} else {
		segments->totals.crowded_records += segment->records;
		segments->totals.crowded_ns = segment->last_ns;
	}
	reset(segment);
	segments->oldest = (segments->oldest + 1) % SEGMENTS_COUNT;
	segments->count--;
}

/* What could not be written is counted, and told once: it is missing in a dump. */
static int lose_gathered(struct segments *segments, struct segment *segment, int err)
{
	if (!segments->totals.failed_records)
		log_warn("flight recorder: %s: records are missing in the next dumps",
			 strerror(-err));
	segments->totals.failed_records += segments->gathered_records;
	segment->records -= segments->gathered_records;
	segment->steps -= segments->gathered_steps;
	clear_gathered(segments);
	return err;
}

/* Writes all of it, or nothing: what was written of it is written over by what follows. */
static int write_gathered(struct segments *segments)
{
	struct segment *segment = segment_at(segments, segments->count - 1);
	size_t done = 0;

	while (done < segments->gathered_size) {
		ssize_t size =
			pwrite(segment->fd, segments->gathered + done,
			       segments->gathered_size - done, (off_t)(segment->size + done));
		int err = -errno;

		if (size < 0 && err == -EINTR)
			continue;
		if (size <= 0)
			return lose_gathered(segments, segment, size ? err : -EIO);
		done += (size_t)size;
	}
	segment->size += done;
	clear_gathered(segments);
	return 0;
}

static uint64_t turn_ns(const struct segments *segments)
{
	return segments->options.span_ns / (SEGMENTS_COUNT - 1);
}

/* Begins a segment for a record of that size, if the last one has no room, or is long enough. */
static int make_room(struct segments *segments, size_t size, uint64_t now_ns)
{
	struct segment *last = segments->count ? segment_at(segments, segments->count - 1) : NULL;
	int err = 0;

	if (last) {
		uint64_t used = last->size + segments->gathered_size;
		bool is_long = segments->options.span_ns && last->first_ns &&
			       now_ns - last->first_ns >= turn_ns(segments);

		if (used + size <= segments->segment_bytes && !is_long)
			return segments->gathered_size + size > GATHER_BYTES
				       ? write_gathered(segments)
				       : 0;
		err = write_gathered(segments);
	}
	if (segments->count == SEGMENTS_COUNT)
		drop_oldest(segments, now_ns);
	segments->count++;
	return err;
}

/* A record that is longer than what is gathered. */
static int write_long(struct segments *segments, const struct fbt_header *record)
{
	char *kept = segments->gathered;
	int err = write_gathered(segments);

	if (err)
		return err;
	segments->gathered = (char *)record;
	segments->gathered_size = record->size;
	err = write_gathered(segments);
	segments->gathered = kept;
	return err;
}

static int push_record(struct segments *segments, const struct fbt_header *record, uint64_t now_ns)
{
	struct segment *last;
	int err = make_room(segments, record->size, now_ns);

	if (err)
		return err;
	if (record->size > GATHER_BYTES) {
		err = write_long(segments, record);
		if (err)
			return err;
	} else {
		memcpy(segments->gathered + segments->gathered_size, record, record->size);
		segments->gathered_size += record->size;
	}
	last = segment_at(segments, segments->count - 1);
	if (!last->first_ns)
		last->first_ns = now_ns;
	last->last_ns = now_ns;
	last->records++;
	last->steps += record->type == FBT_EVENT_STEP;
	if (segments->gathered_size) {
		segments->gathered_records++;
		segments->gathered_steps += record->type == FBT_EVENT_STEP;
	}
	return 0;
}

static void begin_anew(struct segments *segments)
{
	clear_gathered(segments);
	for (size_t i = 0; i < SEGMENTS_COUNT; i++)
		reset(&segments->items[i]);
	segments->oldest = 0;
	segments->count = 0;
	facts__clear(segments->facts);
	segments->opened = true;
}

int segments__push(struct segments *segments, const void *data, size_t size, uint64_t now_ns)
{
	const struct fbt_header *record;
	int err = 0, result;

	for (const char *position = data; size; position += record->size, size -= record->size) {
		bool is_sound = decode_event(position, size, &record) > 0;

		/* Without a valid header the start of the next record is unknown. */
		if (!record)
			break;
		if (is_sound && record->type == FBT_EVENT_WINDOW)
			begin_anew(segments);
		/* The end of the stream is where an excerpt is made to end. */
		if (!is_sound || !segments->opened || record->type == FBT_EVENT_WINDOW_END)
			continue;
		result = push_record(segments, record, now_ns);
		segments->totals.failed_records += result != 0;
		keep_first(&err, result);
	}
	segments__turn(segments, now_ns);
	return err;
}

void segments__turn(struct segments *segments, uint64_t now_ns)
{
	if (!segments->options.span_ns)
		return;
	while (segments->count) {
		const struct segment *oldest = segment_at(segments, 0);

		if (sub_saturating(now_ns, oldest->last_ns) <= segments->options.span_ns)
			return;
		if (segments->count == 1)
			(void)write_gathered(segments);
		drop_oldest(segments, now_ns);
	}
}

struct segments_figures segments__figures(const struct segments *segments)
{
	struct segments_figures figures = segments->totals;

	for (size_t i = 0; i < segments->count; i++) {
		const struct segment *segment =
			&segments->items[(segments->oldest + i) % SEGMENTS_COUNT];

		figures.records += segment->records;
		figures.steps += segment->steps;
		figures.bytes += segment->size;
		if (!figures.oldest_ns)
			figures.oldest_ns = segment->first_ns;
	}
	figures.bytes += segments->gathered_size;
	figures.dropped_names = facts__dropped(segments->facts);
	return figures;
}

static bool look_at(void *ctx, const struct fbt_header *record)
{
	excerpt_look(ctx, record);
	return true;
}

static bool pass_on(void *ctx, const struct fbt_header *record)
{
	struct excerpt *excerpt = ctx;

	if (!excerpt->err)
		excerpt->err = excerpt_pass(excerpt, record);
	return !excerpt->err;
}

static int walk(struct segments *segments, visit_fn visit, void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < segments->count && !err; i++)
		err = visit_segment(segments, segment_at(segments, i), visit, ctx);
	return err;
}

static bool write_record(void *ctx, const void *data, size_t size)
{
	return !capture_write(ctx, data, size);
}

int segments__write(struct segments *segments, FILE *out, const struct segments_cut *cut,
		    struct segments_written *written)
{
	struct excerpt excerpt = {
		.facts = segments->facts, .write = write_record, .ctx = out, .end_ns = cut->end_ns};
	struct segments_figures figures;
	const struct fbt_header *fact;
	int err;

	if (!segments->opened)
		return -ENODATA;
	if (segments->count) {
		err = write_gathered(segments);
		if (err)
			return err;
	}
	figures = segments__figures(segments);
	excerpt.from_ns = sub_saturating(cut->end_ns, cut->last_ns);
	excerpt.first_ns = figures.oldest_ns ? figures.oldest_ns : cut->end_ns;
	excerpt_begin(&excerpt);
	err = walk(segments, look_at, &excerpt);
	if (!err)
		err = capture_write_header(out);
	if (!err)
		err = excerpt_open(&excerpt, cut->tag, cut->realtime_ns);
	for (size_t i = 0; (fact = facts__at(segments->facts, i)) && !err; i++)
		err = excerpt_pass(&excerpt, fact);
	if (!err)
		err = walk(segments, pass_on, &excerpt);
	if (!err)
		err = excerpt.err;
	if (!err)
		err = excerpt_end(&excerpt);
	if (!err && fflush(out))
		err = -errno;
	if (written)
		*written = (struct segments_written){
			.start_ns = excerpt.start_ns,
			.steps = excerpt.steps,
			.records = excerpt.records,
			.crowded = segments->totals.crowded_ns > excerpt.from_ns,
		};
	excerpt_clear(&excerpt);
	return err;
}

struct segments_sink {
	struct sink sink;
	struct segments *segments;
};

static int write_records(struct sink *sink, const void *data, size_t size)
{
	const struct segments_sink *self = (const struct segments_sink *)sink;

	/* What finds no memory is counted; a sink that fails would get nothing more. */
	(void)segments__push(self->segments, data, size, clock_ns(CLOCK_MONOTONIC));
	return 0;
}

static void free_sink(struct sink *sink)
{
	free(sink);
}

struct sink *sink_segments__new(struct segments *segments)
{
	struct segments_sink *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "flight recorder", .write_records = write_records, .free = free_sink};
	self->segments = segments;
	return &self->sink;
}
