/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "json.h"
#include "jsonl_escalation.h"
#include "jsonl_gpu.h"
#include "jsonl_window.h"
#include "patient.h"
#include "sink_jsonl.h"
#include "syscalls.h"

#define NS_PER_US 1000
#define KEY_SIZE  64

struct jsonl_sink {
	struct sink sink;
	int fd;
	bool may_wait; /* fd is no file but a pipe or the like */
	const struct metadata *metadata;
	bool graph;	  /* the event is of a step that launched a CUDA graph */
	struct json json; /* writes to line; rewound for each event */
	char *line;
	size_t size;
};

static struct jsonl_sink *to_jsonl(struct sink *sink)
{
	return (struct jsonl_sink *)sink;
}

/*
 * Takes the first written bytes of a line away again: readers stop at half a line. Not if someone
 * else has appended since.
 */
static void drop_partial_line(int fd, size_t written)
{
	struct stat stat;
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (!written || end < (off_t)written || fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return;
	if (stat.st_size == end && ftruncate(fd, end - (off_t)written) == 0)
		lseek(fd, end - (off_t)written, SEEK_SET);
}

static int write_line(int fd, const char *line, size_t size)
{
	size_t written = 0;

	while (written < size) {
		ssize_t count = write(fd, line + written, size - written);
		int err = count < 0 ? -errno : -EIO;

		if (err == -EINTR)
			continue;
		if (count <= 0) {
			drop_partial_line(fd, written);
			return err;
		}
		written += (size_t)count;
	}
	return 0;
}

/* Half a line that a pipe took cannot be taken away. */
static int put_line(const struct jsonl_sink *jsonl)
{
	uint64_t wait_ns = patient_in_window() ? PATIENT_WINDOW_NS : PATIENT_FOR_EVER;
	size_t written;

	if (!jsonl->may_wait)
		return write_line(jsonl->fd, jsonl->line, jsonl->size);
	return patient_write(jsonl->fd, jsonl->line, jsonl->size, wait_ns, &written);
}

/* The order of members is part of the seed's schema. */
static int put_event(struct jsonl_sink *jsonl, const char *event, const struct json_fields *shape,
		     const struct json_fields *stage_us)
{
	const struct metadata *metadata = jsonl->metadata;
	struct json *json = &jsonl->json;

	rewind(json->out);
	json_object_begin(json, NULL);
	json_string(json, "event", event);
	json_string(json, "commit_sha", metadata->commit_sha);
	json_string(json, "env_hash", metadata->env_hash);
	json_string(json, "model", metadata->model);
	json_uint(json, "concurrency", metadata->concurrency);
	json_fields_write(json, "shape", shape);
	json_fields_write(json, "stage_us", stage_us);
	json_bool(json, "graph_enabled", jsonl->graph);
	json_raw(json, "runtime_flags", metadata->runtime_flags);
	json_string(json, "source", "ferrum-bpftrace");
	json_object_end(json);
	putc_unlocked('\n', json->out);
	if (fflush(json->out) || ferror(json->out))
		return -ENOMEM;
	return put_line(jsonl);
}

static uint64_t find_max_call_ns(const struct step *step)
{
	uint64_t max_ns = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (step->record.sums[i].max_ns > max_ns)
			max_ns = step->record.sums[i].max_ns;
	}
	return max_ns;
}

/* keys and text must outlive shape. */
static void add_kind(struct json_fields *shape, char keys[][KEY_SIZE], char text[24],
		     const struct window *window, const struct fbt_step *record)
{
	const struct kind *kind;

	json_fields_string(shape, "kind", window__kind_name(window, record->kind));
	json_fields_string(shape, "step_source", window__step_source(window, record->kind));
	if (record->kind >= FBT_KIND_COUNT)
		return;
	kind = &window->kinds[record->kind];
	if (kind->record.address) {
		snprintf(text, 24, "0x%llx", (unsigned long long)kind->record.address);
		json_fields_string(shape, "step_address", text);
	}
	for (uint32_t i = 0; i < FBT_ARG_COUNT; i++) {
		if (!kind->arg_names[i])
			continue;
		snprintf(keys[i], KEY_SIZE, "arg.%s", kind->arg_names[i]);
		if (record->arg_mask & (1u << i))
			json_fields_int(shape, keys[i], record->args[i]);
		else
			json_fields_string(shape, keys[i], NULL);
	}
}

static void add_step_times(struct json_fields *stage_us, const struct window *window,
			   const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct breakdown breakdown;

	step_breakdown(step, &breakdown);
	json_fields_uint(stage_us, "total", breakdown.total_us);
	json_fields_uint(stage_us, "syscall", breakdown_syscall_us(&breakdown));
	json_fields_uint(stage_us, "compute", breakdown_compute_us(&breakdown));
	if (!strcmp(window__step_source(window, record->kind), "interval"))
		json_fields_uint(stage_us, "wall", step_wall_ns(step) / NS_PER_US);
	if (!(record->header.flags & FBT_STEP_NO_GAP)) {
		json_fields_uint(stage_us, "gap", record->gap_ns / NS_PER_US);
		json_fields_uint(stage_us, "gap_syscall", record->gap_syscall_ns / NS_PER_US);
	}
	if (!(record->header.flags & FBT_STEP_OTHER_UNKNOWN))
		json_fields_uint(stage_us, "other_threads_syscall",
				 record->other_syscall_ns / NS_PER_US);
	if (!(record->header.flags & FBT_STEP_SCHED_UNKNOWN))
		json_fields_uint(stage_us, "run_delay", record->run_delay_ns / NS_PER_US);
}

static int put_step_prof(struct jsonl_sink *jsonl, const struct window *window,
			 const struct step *step)
{
	const struct fbt_step *record = &step->record;
	uint64_t window_ns = window->record.start_ns;
	uint64_t since_ns = record->start_ns > window_ns ? record->start_ns - window_ns : 0;
	struct json_fields shape = {.count = 0};
	struct json_fields stage_us = {.count = 0};
	char keys[FBT_ARG_COUNT][KEY_SIZE];
	char text[24];

	json_fields_uint(&shape, "step", step->number);
	json_fields_uint(&shape, "kind_number", step->kind_number);
	json_fields_uint(&shape, "tid", record->tid);
	json_fields_uint(&shape, "pid", record->tgid);
	json_fields_uint(&shape, "calls", step_calls(step));
	json_fields_uint(&shape, "errors", step_errors(step));
	json_fields_uint(&shape, "lost_calls", record->lost_calls);
	json_fields_bool(&shape, "complete", step->complete);
	json_fields_string(&shape, "end", step_end_name((enum fbt_step_end)record->end));
	json_fields_uint(&shape, "max_call_us", find_max_call_ns(step) / NS_PER_US);
	json_fields_uint(&shape, "start_us", since_ns / NS_PER_US);
	if (record->threads)
		json_fields_uint(&shape, "threads", record->threads);
	if (step->calls_truncated)
		json_fields_bool(&shape, "calls_truncated", true);
	if (record->header.flags & FBT_STEP_SAMPLED)
		json_fields_bool(&shape, "sampled", true);
	if (!(record->header.flags & FBT_STEP_SCHED_UNKNOWN)) {
		json_fields_uint(&shape, "minor_faults", record->minor_faults);
		json_fields_uint(&shape, "major_faults", record->major_faults);
	}
	add_kind(&shape, keys, text, window, record);
	add_step_times(&stage_us, window, step);
	if (step->gpu)
		jsonl_gpu_add_to_step(&shape, &stage_us, step);
	return put_event(jsonl, "step_prof", &shape, &stage_us);
}

static int put_syscall_prof(struct jsonl_sink *jsonl, const struct step *step)
{
	struct json_fields shape = {.count = 0};
	struct json_fields stage_us = {.count = 0};
	char keys[FBT_CATEGORY_COUNT][3][24];
	struct breakdown breakdown;

	step_breakdown(step, &breakdown);
	json_fields_uint(&shape, "step", step->number);
	json_fields_string(&shape, "dominant", breakdown_dominant(&breakdown));
	json_fields_double(&shape, "overhead_percent", breakdown_overhead_tenths(&breakdown));
	json_fields_uint(&shape, "calls", step_calls(step));
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		const struct fbt_sum *sum = &step->record.sums[i];
		const char *name = category_name((enum fbt_category)i);

		snprintf(keys[i][0], sizeof(keys[i][0]), "%s_calls", name);
		snprintf(keys[i][1], sizeof(keys[i][1]), "%s_errors", name);
		snprintf(keys[i][2], sizeof(keys[i][2]), "%s_max_us", name);
		json_fields_uint(&shape, keys[i][0], sum->calls);
		json_fields_uint(&shape, keys[i][1], sum->errors);
		json_fields_uint(&shape, keys[i][2], sum->max_ns / NS_PER_US);
		json_fields_uint(&stage_us, name, breakdown.category_us[i]);
	}
	json_fields_uint(&stage_us, "compute", breakdown_compute_us(&breakdown));
	json_fields_uint(&stage_us, "total", breakdown.total_us);
	return put_event(jsonl, "syscall_prof", &shape, &stage_us);
}

static int put_gpu_prof(struct jsonl_sink *jsonl, const struct window *window,
			const struct step *step)
{
	struct jsonl_gpu event;
	int err = 0;

	for (size_t i = 0; !err && step->gpu && i < jsonl_gpu_lines(step->gpu); i++) {
		jsonl_gpu_fill(&event, window, step, i);
		err = put_event(jsonl, "gpu_prof", &event.shape, &event.stage_us);
	}
	return err;
}

static int put_escalation_prof(struct jsonl_sink *jsonl, const struct window *window,
			       const struct step *step, const struct escalation *escalation)
{
	struct jsonl_escalation event;

	jsonl_escalation_fill(&event, window, step, escalation);
	return put_event(jsonl, "escalation_prof", &event.common.fields, &event.stage_us);
}

static int put_window_prof(struct jsonl_sink *jsonl, const struct window *window,
			   const struct classify_counts *counts)
{
	struct jsonl_window event;
	int err = jsonl_window_fill(&event, window, counts);

	if (err)
		return err;
	err = put_event(jsonl, "window_prof", &event.shape, &event.stage_us);
	jsonl_window_clear(&event);
	return err;
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct jsonl_sink *jsonl = to_jsonl(sink);
	int err;

	jsonl->graph = jsonl_gpu_has_graph(step);
	err = put_step_prof(jsonl, window, step);
	if (!err)
		err = put_syscall_prof(jsonl, step);
	return err ? err : put_gpu_prof(jsonl, window, step);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	if (!escalation_is_shown(escalation))
		return 0;
	to_jsonl(sink)->graph = jsonl_gpu_has_graph(step);
	return put_escalation_prof(to_jsonl(sink), window, step, escalation);
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	to_jsonl(sink)->graph = false;
	return put_window_prof(to_jsonl(sink), window, classifier__counts(classifier));
}

static void free_jsonl(struct sink *sink)
{
	struct jsonl_sink *jsonl = to_jsonl(sink);

	if (!sink)
		return;
	fclose(jsonl->json.out);
	free(jsonl->line);
	free(jsonl);
}

struct sink *sink_jsonl__new(int fd, const struct metadata *metadata)
{
	struct jsonl_sink *jsonl = calloc(1, sizeof(*jsonl));

	if (!jsonl)
		return NULL;
	jsonl->json.out = open_memstream(&jsonl->line, &jsonl->size);
	if (!jsonl->json.out) {
		free(jsonl);
		return NULL;
	}
	jsonl->sink = (struct sink){
		.name = "profile",
		.write_step = write_step,
		.write_escalation = write_escalation,
		.finish = finish,
		.free = free_jsonl,
	};
	jsonl->fd = fd;
	jsonl->may_wait = patient_may_wait(fd);
	jsonl->metadata = metadata;
	return &jsonl->sink;
}
