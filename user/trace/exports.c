/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/exports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "model/event.h"
#include "model/metadata.h"
#include "output/file.h"
#include "trace/outputs.h"

/* Descriptors that an export may need: files, their directories, a connection to a collector. */
#define FDS_EACH  8
#define TAG_SIZE  64
#define TAG_TRIES 100
/* As many as a window keeps. */
#define CODES_MAX 65536

struct export_entry {
	uint32_t tgid;
	uint64_t unix_ms; /* the time in its tag */
	struct metadata metadata;
	struct outputs *outputs; /* NULL: they could not be opened */
	struct record_output records;
};

struct exports {
	struct exports_shared *shared;
	uint64_t unix_ms; /* of the next export */
	char tag[TAG_SIZE];
	bool each;
	size_t max; /* of processes with an export of their own */
	VEC(struct export_entry *) list;
	struct export_entry *rest; /* for processes beyond max; also in list; NULL: none */
	struct export_entry *last; /* the one that the last record went to */
	/* What an export that is opened later must be told first. */
	struct fbt_window window;
	struct fbt_lost lost;
	struct fbt_manual manual;
	VEC(struct fbt_kind *) kinds;
	VEC(struct fbt_header *) totals; /* the last one of each type and step kind */
	VEC(struct fbt_header *)
	codes; /* each is sent once, for all processes that have its file */
	int first_err;
};

static void make_tag(char tag[TAG_SIZE], uint32_t tgid, uint64_t unix_ms)
{
	snprintf(tag, TAG_SIZE, "pid%u_%llu", tgid, (unsigned long long)unix_ms);
}

static int make_metadata(const struct exports_shared *shared, struct export_entry *entry)
{
	struct metadata_run run = {.options = &shared->options->metadata,
				   .environment = environ,
				   .command = shared->options->command,
				   .host = shared->host};

	return metadata_for_target(&entry->metadata, &run, entry->tgid);
}

static void free_export(struct export_entry *entry, void (*free_outputs)(struct outputs *outputs))
{
	free_outputs(entry->outputs);
	metadata_clear(&entry->metadata);
	free(entry);
}

/*
 * Another tracer of the same process that waits for the same flag may have opened a window in the
 * same millisecond. This one then takes the next millisecond.
 */
static int open_outputs(struct exports *exports, struct export_entry *entry)
{
	struct exports_shared *shared = exports->shared;
	char tag[TAG_SIZE];
	int err = -EEXIST;

	for (int i = 0; i < TAG_TRIES && err == -EEXIST; i++, exports->unix_ms += err == -EEXIST) {
		make_tag(tag, entry->tgid, exports->unix_ms);
		err = outputs__open(&entry->outputs, shared->options, &entry->metadata, tag,
				    &shared->health, shared->metrics);
	}
	if (err == -EEXIST)
		log_err("%s: files with this tag and the next %d exist; use another --dir", tag,
			TAG_TRIES - 1);
	entry->unix_ms = exports->unix_ms;
	return err;
}

/* Each window has one process, so only here it is known that there are several. */
static void name_processes(const struct exports *exports)
{
	if (exports->list.count < 2)
		return;
	vec_for_each (entry, &exports->list) {
		if ((*entry)->outputs)
			outputs__name_process((*entry)->outputs);
	}
}

/*
 * Adds an export. If its outputs cannot be opened, it is listed too, but takes no records. 0, or
 * -errno, logged.
 */
static int add_export(struct exports *exports, uint32_t tgid, struct export_entry **result)
{
	struct export_entry *entry = calloc(1, sizeof(*entry));
	int err;

	*result = NULL;
	if (!entry || vec_push(&exports->list, entry)) {
		free(entry);
		log_err("process %u: no memory for its export", tgid);
		return -ENOMEM;
	}
	*result = entry;
	entry->tgid = tgid;
	err = make_metadata(exports->shared, entry);
	if (!err)
		err = open_outputs(exports, entry);
	if (!err && exports->shared->on_escalation)
		err = outputs__watch(entry->outputs, exports->shared->on_escalation,
				     exports->shared->ctx);
	if (!err && exports->shared->add_sinks)
		err = exports->shared->add_sinks(exports->shared->sinks_ctx, entry->outputs);
	if (err) {
		outputs__discard(entry->outputs);
		entry->outputs = NULL;
		return err;
	}
	entry->records = outputs__records(entry->outputs);
	name_processes(exports);
	return 0;
}

static struct exports *new_exports(struct exports_shared *shared, uint32_t tgid)
{
	struct exports *exports = calloc(1, sizeof(*exports));

	if (!exports)
		return NULL;
	exports->shared = shared;
	exports->unix_ms = clock_ns(CLOCK_REALTIME) / NS_PER_MS;
	make_tag(exports->tag, tgid, exports->unix_ms);
	return exports;
}

int exports__open_one(struct exports **result, struct exports_shared *shared, uint32_t tgid)
{
	struct exports *exports = new_exports(shared, tgid);
	struct export_entry *entry;
	int err = exports ? add_export(exports, tgid, &entry) : -ENOMEM;

	if (err) {
		exports__discard(exports);
		exports = NULL;
	} else {
		make_tag(exports->tag, tgid, entry->unix_ms);
	}
	*result = exports;
	return err;
}

/* How many processes can have files of their own: half of the descriptors are left for tracing. */
static size_t count_room(void)
{
	struct rlimit limit;
	size_t room;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return EXPORTS_MAX;
	room = (size_t)limit.rlim_cur / 2 / FDS_EACH;
	return room < EXPORTS_MAX ? room : EXPORTS_MAX;
}

/* Else the process would be probed for a window of which nothing can be written. */
static int check_room(const struct options *options)
{
	const char *dir = options->windows.dir;
	struct disk_room room;
	int fd;

	if (options->output || (options->trace && options->profile))
		return 0;
	/* That it cannot be opened is told of each file. */
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	room = disk_room_of(fd, options->windows.keep_free);
	close(fd);
	if (!disk_room_is_low(&room))
		return 0;
	disk_room_tell(&room, dir, ": no window begins");
	return -ENOSPC;
}

int exports__open_each(struct exports **result, struct exports_shared *shared)
{
	struct exports *exports;
	int err = check_room(shared->options);

	*result = NULL;
	if (err)
		return err;
	exports = new_exports(shared, 0);
	*result = exports;
	if (!exports)
		return -ENOMEM;
	exports->each = true;
	exports->max = count_room();
	return 0;
}

static struct export_entry *find_export(struct exports *exports, uint32_t tgid)
{
	if (exports->last && exports->last->tgid == tgid)
		return exports->last;
	vec_for_each (entry, &exports->list) {
		if ((*entry)->tgid == tgid) {
			exports->last = *entry;
			return *entry;
		}
	}
	return exports->rest;
}

static void push(const struct export_entry *entry, const void *data, size_t size)
{
	if (entry && entry->outputs)
		entry->records.emit(entry->records.ctx, data, size);
}

/* Sends the window's records that come before those of a process. */
static void begin_window(const struct exports *exports, const struct export_entry *entry)
{
	struct fbt_window window = exports->window;
	char tag[TAG_SIZE];

	if (!entry->outputs)
		return;
	make_tag(tag, entry->tgid, entry->unix_ms);
	if (record_send_window(&entry->records, &window, tag))
		log_err("process %u: no memory for its export", entry->tgid);
	vec_for_each (kind, &exports->kinds)
		push(entry, *kind, (*kind)->header.size);
	vec_for_each (total, &exports->totals)
		push(entry, *total, (*total)->size);
	vec_for_each (code, &exports->codes)
		push(entry, *code, (*code)->size);
	if (exports->lost.header.size)
		push(entry, &exports->lost, sizeof(exports->lost));
}

static struct export_entry *open_next(struct exports *exports, uint32_t tgid)
{
	bool has_room = exports->list.count < exports->max;
	struct export_entry *entry;
	int err;

	if (!has_room && exports->rest)
		return exports->rest;
	err = add_export(exports, has_room ? tgid : 0, &entry);
	if (err)
		keep_first(&exports->first_err, err);
	if (!entry)
		return NULL;
	if (!has_room) {
		exports->rest = entry;
		log_warn("process %u and all later ones share one set of files: at most %zu "
			 "processes have their own%s",
			 tgid, exports->max,
			 exports->max < EXPORTS_MAX ? "; raise ulimit -n for more" : "");
	}
	begin_window(exports, entry);
	return entry;
}

static void take_target(struct exports *exports, const struct fbt_target *target)
{
	struct export_entry *entry = find_export(exports, target->tgid);
	bool is_new = !entry || entry->tgid != target->tgid;

	if (is_new)
		entry = open_next(exports, target->tgid);
	push(entry, target, target->header.size);
	/* --escalate-now: the request came when this process was already traced. */
	if (is_new && exports->manual.header.size && exports->manual.time_ns >= target->start_ns)
		push(entry, &exports->manual, sizeof(exports->manual));
}

static void take_kind(struct exports *exports, const struct fbt_kind *kind)
{
	struct fbt_kind *copy = malloc(kind->header.size);

	if (copy)
		memcpy(copy, kind, kind->header.size);
	if (!copy || vec_push(&exports->kinds, copy)) {
		free(copy);
		keep_first(&exports->first_err, -ENOMEM);
		log_warn("step kind %u: no memory to name it in later exports", kind->kind);
	}
}

static struct fbt_header *copy_event(struct exports *exports, const struct fbt_header *event)
{
	struct fbt_header *copy = malloc(event->size);

	if (copy)
		memcpy(copy, event, event->size);
	else
		keep_first(&exports->first_err, -ENOMEM);
	return copy;
}

/* The step kind of a total; 0: it is of all. They have it in the same place. */
static uint32_t kind_of(const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_SAMPLING:
	case FBT_EVENT_ENDS:
	case FBT_EVENT_TAILS:
		return ((const struct fbt_ends *)event)->kind;
	default:
		return 0;
	}
}

/* Of no process: an export that is opened later gets the last one of each. */
static void take_total(struct exports *exports, const struct fbt_header *event)
{
	struct fbt_header *copy = copy_event(exports, event);

	vec_for_each (total, &exports->totals) {
		if (!copy || (*total)->type != event->type || kind_of(*total) != kind_of(event))
			continue;
		free(*total);
		*total = copy;
		return;
	}
	if (copy && vec_push(&exports->totals, copy)) {
		free(copy);
		keep_first(&exports->first_err, -ENOMEM);
	}
}

static void take_code(struct exports *exports, const struct fbt_header *event)
{
	struct fbt_header *copy =
		exports->codes.count < CODES_MAX ? copy_event(exports, event) : NULL;

	if (copy && vec_push(&exports->codes, copy)) {
		free(copy);
		keep_first(&exports->first_err, -ENOMEM);
	}
}

static void push_all(const struct exports *exports, const void *data, size_t size)
{
	vec_for_each (entry, &exports->list)
		push(*entry, data, size);
}

/* These sums are those of all processes together: they are no figures of one of several. */
static void push_sums(const struct exports *exports, const struct fbt_header *event)
{
	struct fbt_cost cost;

	if (exports->list.count <= 1) {
		push_all(exports, event, event->size);
	} else if (event->type == FBT_EVENT_COST) {
		cost = *(const struct fbt_cost *)event;
		cost.collections = 0;
		push_all(exports, &cost, sizeof(cost));
	}
}

static void route(void *ctx, const void *data, size_t size)
{
	struct exports *exports = ctx;
	const struct fbt_header *event = data;

	switch (event->type) {
	case FBT_EVENT_WINDOW:
		exports->window = *(const struct fbt_window *)event;
		break;
	case FBT_EVENT_OPTIONS:
		take_total(exports, event);
		push_all(exports, data, size);
		break;
	case FBT_EVENT_TARGET:
		take_target(exports, (const struct fbt_target *)event);
		break;
	case FBT_EVENT_KIND:
		take_kind(exports, (const struct fbt_kind *)event);
		push_all(exports, data, size);
		break;
	case FBT_EVENT_LOST:
		exports->lost = *(const struct fbt_lost *)event;
		push_all(exports, data, size);
		break;
	case FBT_EVENT_MANUAL:
		exports->manual = *(const struct fbt_manual *)event;
		push_all(exports, data, size);
		break;
	case FBT_EVENT_SAMPLING:
	case FBT_EVENT_ENDS:
	case FBT_EVENT_TAILS:
	case FBT_EVENT_STACKS:
	case FBT_EVENT_LOOKS:
	case FBT_EVENT_CLOCK:
		take_total(exports, event);
		push_all(exports, data, size);
		break;
	case FBT_EVENT_CODE:
		take_code(exports, event);
		push_all(exports, data, size);
		break;
	case FBT_EVENT_COST:
	case FBT_EVENT_PROBES:
		push_sums(exports, event);
		break;
	case FBT_EVENT_UNSEEN:
	case FBT_EVENT_EXPLAIN:
	case FBT_EVENT_EXPLAIN_LOST:
	case FBT_EVENT_WINDOW_END:
		push_all(exports, data, size);
		break;
	default:
		push(find_export(exports, decode_tgid(event)), data, size);
	}
}

struct record_output exports__records(struct exports *exports)
{
	if (!exports->each)
		return exports->list.items[0]->records;
	return (struct record_output){.emit = route, .ctx = exports};
}

const char *exports__tag(const struct exports *exports)
{
	return exports->tag;
}

uint64_t exports__unix_ms(const struct exports *exports)
{
	return exports->unix_ms;
}

int exports__add_sink(struct exports *exports, struct sink *sink)
{
	return outputs__add_sink(exports->list.items[0]->outputs, sink);
}

const struct window *exports__window(const struct exports *exports)
{
	return outputs__window(exports->list.items[0]->outputs);
}

const struct metadata *exports__metadata(const struct exports *exports)
{
	return &exports->list.items[0]->metadata;
}

uint32_t exports__tgid(const struct exports *exports)
{
	return exports->list.items[0]->tgid;
}

void exports__poll(struct exports *exports)
{
	vec_for_each (entry, &exports->list) {
		if ((*entry)->outputs)
			outputs__poll((*entry)->outputs);
	}
}

void exports__show_status(struct exports *exports, uint64_t now_ns)
{
	if (exports->list.count && exports->list.items[0]->outputs)
		outputs__show_status(exports->list.items[0]->outputs, now_ns);
}

void exports__take_torch(void *ctx, const struct torch_export *export)
{
	struct exports *exports = ctx;

	vec_for_each (entry, &exports->list) {
		if ((*entry)->tgid == export->tgid && (*entry)->outputs) {
			outputs__take_torch((*entry)->outputs, export->execution_fd,
					    export->kineto_fd);
			return;
		}
	}
	log_warn("process %u: no room for the traces of PyTorch's profiler: it has no files of its "
		 "own",
		 export->tgid);
	close(export->execution_fd);
	close(export->kineto_fd);
}

int exports__finish(struct exports *exports)
{
	vec_for_each (entry, &exports->list) {
		if ((*entry)->outputs)
			keep_first(&exports->first_err, outputs__finish((*entry)->outputs));
	}
	vec_for_each (entry, &exports->list) {
		if ((*entry)->outputs)
			outputs__wait((*entry)->outputs);
	}
	return exports->first_err;
}

static void free_with(struct exports *exports, void (*free_outputs)(struct outputs *outputs))
{
	if (!exports)
		return;
	vec_for_each (entry, &exports->list)
		free_export(*entry, free_outputs);
	vec_for_each (kind, &exports->kinds)
		free(*kind);
	vec_free(&exports->list);
	vec_free(&exports->kinds);
	vec_for_each (total, &exports->totals)
		free(*total);
	vec_free(&exports->totals);
	vec_for_each (code, &exports->codes)
		free(*code);
	vec_free(&exports->codes);
	free(exports);
}

void exports__free(struct exports *exports)
{
	free_with(exports, outputs__free);
}

void exports__discard(struct exports *exports)
{
	free_with(exports, outputs__discard);
}
