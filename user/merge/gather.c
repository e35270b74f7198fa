/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "merge/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"

/* Pids of processes whose own pid another file has. */
#define NEW_PIDS 2000000000

#define PROFILER_STEP "ProfilerStep#"

/* Threads have no larger numbers; an async function's steps have a lane beyond that. */
#define TID_MAX 4194304

/* In Kineto's format, the calls of a thread are in the lane of its number and that. */
#define CALL_LANES 100000000

struct gathering {
	struct gather_file *file;
	char *error;
};

struct gather_process *gather_find(struct gather_file *file, int64_t pid)
{
	if (file->last < file->processes.count && file->processes.items[file->last].pid == pid)
		return &file->processes.items[file->last];
	for (size_t i = 0; i < file->processes.count; i++) {
		if (file->processes.items[i].pid != pid)
			continue;
		file->last = i;
		return &file->processes.items[i];
	}
	return NULL;
}

static int need_process(struct gathering *gathering, int64_t pid, struct gather_process **process)
{
	struct gather_file *file = gathering->file;
	struct gather_process new = {.pid = pid};

	*process = gather_find(file, pid);
	if (*process)
		return 0;
	if (file->processes.count >= GATHER_PROCESSES_MAX) {
		snprintf(gathering->error, SOURCE_ERROR, "more than %d processes",
			 GATHER_PROCESSES_MAX);
		return -EBADMSG;
	}
	new.name = strdup("");
	if (!new.name || vec_push(&file->processes, new)) {
		free(new.name);
		return -ENOMEM;
	}
	file->last = file->processes.count - 1;
	*process = &file->processes.items[file->last];
	return 0;
}

static struct json_object *arg_of(const struct source_event *event, const char *key)
{
	struct json_object *args, *value;

	if (!json_object_object_get_ex(event->whole, "args", &args) ||
	    !json_object_is_type(args, json_type_object) ||
	    !json_object_object_get_ex(args, key, &value))
		return NULL;
	return value;
}

/* The number in "ProfilerStep#12" or args.step; 0: none. */
static uint32_t step_number(const struct source_event *event)
{
	struct json_object *value = arg_of(event, "step");

	if (!strncmp(event->name, PROFILER_STEP, strlen(PROFILER_STEP)))
		return (uint32_t)strtoul(event->name + strlen(PROFILER_STEP), NULL, 10);
	return value && json_object_is_type(value, json_type_int)
		       ? (uint32_t)json_object_get_int64(value)
		       : 0;
}

static const char *text_arg(const struct source_event *event, const char *key)
{
	struct json_object *value = arg_of(event, key);
	const char *text = value ? json_object_get_string(value) : NULL;

	return text ? text : "";
}

/* FNV-1a */
#define HASH_BEGIN 2166136261u
static uint32_t hash_text(uint32_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

/*
 * The process group of a collective, as PyTorch's profiler writes it; 0: not known. Its ranks say
 * who takes part; groups with other ranks may have the same name. Of a large group the profiler
 * leaves out some of the ranks ("..."), and of the group of all, old ones do all of them ("[]").
 */
static uint32_t group_of(const struct source_event *event)
{
	const char *ranks = text_arg(event, "Process Group Ranks");
	const char *name = text_arg(event, "Process Group Name");
	bool is_complete = strpbrk(ranks, "0123456789") && !strstr(ranks, "...");
	uint32_t hash = HASH_BEGIN;

	if (!*ranks && !*name)
		return 0;
	hash = hash_text(hash, ranks);
	if (!is_complete)
		hash = hash_text(hash, name);
	return hash ? hash : 1;
}

static int take_name(struct gather_process *process, const struct source_event *event)
{
	struct json_object *value = arg_of(event, "name");
	char *name;

	if (strcmp(event->name, "process_name") != 0 || !value ||
	    !json_object_is_type(value, json_type_string))
		return 0;
	name = strdup(json_object_get_string(value));
	if (!name)
		return -ENOMEM;
	free(process->name);
	process->name = name;
	return 0;
}

/* The window ended in the step, or an exception left it: it then ends where the next one begins. */
static bool is_cut(const struct source_event *event)
{
	static const char *const ends[] = {"truncated", "unwound", "exited"};
	const char *end = text_arg(event, "end");

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (!strcmp(end, ends[i]))
			return true;
	}
	return false;
}

static int take_span(struct gather_file *file, span_vec *spans, const struct source_event *event,
		     uint32_t name, uint32_t number)
{
	struct collective span = {.begin_ns = event->ts_ns,
				  .end_ns = event->ts_ns + event->dur_ns,
				  .name = name,
				  .number = number,
				  .is_cut = is_cut(event)};

	if (file->spans >= GATHER_SPANS_MAX) {
		file->left_out++;
		return 0;
	}
	file->spans++;
	return vec_push(spans, span);
}

/* A step of an async function may run on several threads ("polls"), and an interval is on none. */
static int take_step_tid(struct gather_process *process, const struct source_event *event)
{
	size_t at = vec_lower_bound(&process->step_tids, *item, event->tid);

	if (at < process->step_tids.count && process->step_tids.items[at] == event->tid)
		return 0;
	if (event->tid <= 0 || event->tid > TID_MAX ||
	    process->step_tids.count == GATHER_TIDS_MAX) {
		process->has_unknown_tids = true;
		return 0;
	}
	return vec_insert(&process->step_tids, at, event->tid);
}

bool gather_is_of_steps(const struct gather_process *process, const struct source_event *event)
{
	int64_t tid = event->tid > CALL_LANES ? event->tid - CALL_LANES : event->tid;
	size_t at = vec_lower_bound(&process->step_tids, *item, tid);

	if (strcmp(event->cat, "syscall") != 0 || process->has_unknown_tids ||
	    !process->step_tids.count)
		return true;
	return at < process->step_tids.count && process->step_tids.items[at] == tid;
}

static bool is_step(const struct source_event *event)
{
	return !strcmp(event->cat, "step") ||
	       (!strcmp(event->cat, "user_annotation") &&
		!strncmp(event->name, PROFILER_STEP, strlen(PROFILER_STEP)));
}

/* PyTorch's profiler has devices as processes, beside that of the engine. */
static bool is_on_cpu(const struct source_event *event)
{
	static const char *const cats[] = {"cpu_op", "cuda_runtime", "cuda_driver", "syscall"};

	for (size_t i = 0; i < sizeof(cats) / sizeof(cats[0]); i++) {
		if (!strcmp(event->cat, cats[i]))
			return true;
	}
	return is_step(event);
}

static int take_step(struct gather_file *file, struct gather_process *process,
		     const struct source_event *event)
{
	/* With kineto, the function is in the arguments: it may be a collective. */
	struct json_object *step = arg_of(event, "ferrum.step");
	const char *function = step ? json_object_get_string(step) : event->name;
	uint32_t kind;
	int err = take_step_tid(process, event);

	if (err)
		return err;
	/* Intervals begin when their window does, which is no work that ranks do together. */
	if (!strcmp(text_arg(event, "step_source"), "interval"))
		return 0;
	if (collective_is("step", function, &kind))
		return take_span(file, &process->collectives, event, kind, group_of(event));
	/* A name of PyTorch's has a number, which is the same in all ranks. */
	return take_span(file, &process->steps, event, hash_text(HASH_BEGIN, function),
			 step_number(event));
}

static void widen(struct trace_span *span, const struct source_event *event)
{
	int64_t end_ns = event->ts_ns + (event->phase == 'X' ? event->dur_ns : 0);

	if (event->ts_ns < span->first_ns)
		span->first_ns = event->ts_ns;
	if (end_ns > span->last_ns)
		span->last_ns = end_ns;
}

static int take_event(void *ctx, const struct source_event *event)
{
	struct gathering *gathering = ctx;
	struct gather_file *file = gathering->file;
	struct gather_process *process;
	uint32_t kind;
	int err = need_process(gathering, event->pid, &process);

	if (err)
		return err;
	if (event->phase == 'M')
		return take_name(process, event);
	if (event->has_time)
		widen(&file->span, event);
	if (event->phase != 'X')
		return 0;
	process->is_host = process->is_host || is_on_cpu(event);
	if (is_step(event))
		return take_step(file, process, event);
	if (collective_is(event->cat, event->name, &kind))
		return take_span(file, &process->collectives, event, kind, group_of(event));
	return 0;
}

static int compare_ends(const void *left, const void *right)
{
	const struct collective *a = left, *b = right;

	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static void sort_spans(span_vec *spans)
{
	if (spans->count)
		qsort(spans->items, spans->count, sizeof(*spans->items), compare_ends);
}

int gather_read(struct gather_file *file, const char *path, char error[SOURCE_ERROR])
{
	struct gathering gathering = {file, error};
	struct source_taker taker = {take_event, &gathering};
	int err;

	*file = (struct gather_file){.path = path, .span = {INT64_MAX, INT64_MIN}};
	err = source_read(path, &taker, &file->facts, error);
	if (file->span.first_ns == INT64_MAX)
		file->span = (struct trace_span){0, 0};
	vec_for_each (process, &file->processes) {
		sort_spans(&process->collectives);
		sort_spans(&process->steps);
	}
	return err;
}

void gather_clear(struct gather_file *file)
{
	vec_for_each (process, &file->processes) {
		free(process->name);
		vec_free(&process->collectives);
		vec_free(&process->steps);
		vec_free(&process->step_tids);
	}
	vec_free(&file->processes);
}

struct gather_process *gather_most_collectives(struct gather_file *file)
{
	struct gather_process *most = NULL;

	vec_for_each (process, &file->processes) {
		if (process->collectives.count > (most ? most->collectives.count : 0))
			most = process;
	}
	return most;
}

/* The only process with steps, or that is a host; NULL: there is none, or several. */
static struct gather_process *find_only(struct gather_file *file, bool has_steps)
{
	struct gather_process *found = NULL;

	vec_for_each (process, &file->processes) {
		if (has_steps ? !process->steps.count : !process->is_host)
			continue;
		if (found)
			return NULL;
		found = process;
	}
	return found;
}

struct gather_process *gather_host(struct gather_file *file)
{
	struct gather_process *host = find_only(file, true);

	return host ? host : find_only(file, false);
}

static void convert(const struct clock_line *line, span_vec *spans)
{
	vec_for_each (span, spans) {
		span->begin_ns = clock_line_apply(line, span->begin_ns);
		span->end_ns = clock_line_apply(line, span->end_ns);
	}
}

void gather_convert(struct gather_file *file)
{
	vec_for_each (process, &file->processes) {
		convert(&file->alignment.line, &process->collectives);
		convert(&file->alignment.line, &process->steps);
	}
	file->span.first_ns = clock_line_apply(&file->alignment.line, file->span.first_ns);
	file->span.last_ns = clock_line_apply(&file->alignment.line, file->span.last_ns);
}

void gather_number(struct gather_file *files, size_t count)
{
	int64_t next = NEW_PIDS;

	for (size_t i = 0; i < count; i++) {
		vec_for_each (process, &files[i].processes) {
			bool is_taken = process->pid >= NEW_PIDS - 1 || process->pid < 0;

			for (size_t j = 0; j < i && !is_taken; j++)
				is_taken = gather_find(&files[j], process->pid) != NULL;
			process->new_pid = is_taken ? next++ : process->pid;
		}
	}
}
