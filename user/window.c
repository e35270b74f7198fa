/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "left_out.h"

/* Names of threads that are kept; 24 bytes each. Above it those of exited processes are forgotten.
 */
#define THREADS_MAX 65536
/* To look for those takes a look at all: once for so many threads that found no room. */
#define THREADS_TURN 4096

struct window *window__new(void)
{
	struct window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	window->kinds[0].record.source = FBT_SOURCE_INTERVAL;
	window->kinds[0].name = strdup("interval");
	window->tag = strdup("");
	window->tool_version = strdup("");
	window->kernel_release = strdup("");
	window->host = strdup("");
	window->left_out = left_out__new();
	if (!window->kinds[0].name || !window->tag || !window->tool_version ||
	    !window->kernel_release || !window->host || !window->left_out) {
		window__free(window);
		return NULL;
	}
	return window;
}

static void kind_clear(struct kind *kind)
{
	free(kind->name);
	free(kind->path);
	for (int i = 0; i < FBT_ARG_COUNT; i++)
		free(kind->arg_names[i]);
	memset(kind, 0, sizeof(*kind));
}

static void process_free(struct process *process)
{
	if (!process)
		return;
	free(process->comm);
	free(process->exe);
	free(process->cmdline);
	row_table_clear(&process->table);
	free(process);
}

void window__free(struct window *window)
{
	if (!window)
		return;
	for (int i = 0; i < FBT_KIND_COUNT; i++)
		kind_clear(&window->kinds[i]);
	vec_for_each (process, &window->processes)
		process_free(*process);
	vec_free(&window->processes);
	vec_free(&window->threads);
	file_table_clear(&window->files);
	gpu_table_clear(&window->gpus);
	left_out__free(window->left_out);
	free(window->tag);
	free(window->tool_version);
	free(window->kernel_release);
	free(window->host);
	free(window);
}

/* Replaces *string by a copy; on -ENOMEM the old one stays. */
static int replace_string(char **string, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*string);
	*string = copy;
	return 0;
}

int window__open(struct window *window, const struct fbt_window *record,
		 const char *const strings[WINDOW_STRINGS])
{
	char **fields[WINDOW_STRINGS] = {&window->tag, &window->tool_version,
					 &window->kernel_release, &window->host};
	int err;

	for (int i = 0; i < WINDOW_STRINGS; i++) {
		err = replace_string(fields[i], strings[i]);
		if (err)
			return err;
	}
	window->record = *record;
	if (record->interval_ns)
		window->kind_known[0] = true;
	return 0;
}

int window__add_kind(struct window *window, const struct fbt_kind *record, const char *name,
		     const char *path, const char *const *arg_names)
{
	struct kind kind = {.record = *record};

	if (record->kind == 0) {
		window->kind_known[0] = true;
		return 0;
	}
	kind.name = strdup(name);
	kind.path = strdup(path);
	if (!kind.name || !kind.path)
		goto out_of_memory;
	for (uint32_t i = 0; i < record->arg_count; i++) {
		kind.arg_names[i] = strdup(arg_names[i]);
		if (!kind.arg_names[i])
			goto out_of_memory;
	}
	kind_clear(&window->kinds[record->kind]);
	window->kinds[record->kind] = kind;
	window->kind_known[record->kind] = true;
	return 0;

out_of_memory:
	kind_clear(&kind);
	return -ENOMEM;
}

/* Processes are sorted by tgid, those of one tgid by age: where the next one of it belongs. */
static size_t process_position(const struct window *window, uint32_t tgid)
{
	size_t low = 0, high = window->processes.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (window->processes.items[middle]->record.tgid <= tgid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct process *find_process(const struct window *window, uint32_t tgid)
{
	size_t position = process_position(window, tgid);
	struct process *process;

	/* Its number was another one's before: that one is not it. */
	if (!position || left_out__has(window->left_out, tgid))
		return NULL;
	process = window->processes.items[position - 1];
	return process->record.tgid == tgid ? process : NULL;
}

static struct process *insert_process(struct window *window, uint32_t tgid)
{
	struct process *process = NULL;
	size_t position = process_position(window, tgid);

	if (window->processes.count >= WINDOW_PROCESSES_MAX)
		return NULL;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->record.tgid = tgid;
	process->comm = strdup("");
	process->exe = strdup("");
	process->cmdline = strdup("");
	if (!process->comm || !process->exe || !process->cmdline ||
	    vec_push(&window->processes, process)) {
		process_free(process);
		return NULL;
	}
	memmove(&window->processes.items[position + 1], &window->processes.items[position],
		(window->processes.count - 1 - position) * sizeof(struct process *));
	window->processes.items[position] = process;
	return process;
}

static void leave_out(struct window *window, uint32_t tgid, uint64_t start_ns)
{
	if (left_out__add(window->left_out, tgid, start_ns))
		window->processes_left_out++;
}

struct process *window__touch_process(struct window *window, uint32_t tgid)
{
	struct process *process = find_process(window, tgid);

	if (!process && !left_out__has(window->left_out, tgid))
		process = insert_process(window, tgid);
	if (!process)
		leave_out(window, tgid, 0);
	return process;
}

static bool is_full(const struct window *window, uint32_t tgid)
{
	return window->processes.count >= WINDOW_PROCESSES_MAX ||
	       left_out__has(window->left_out, tgid);
}

int window__add_process(struct window *window, const struct fbt_target *record, const char *comm,
			const char *exe, const char *cmdline)
{
	struct process *process = find_process(window, record->tgid);
	struct fbt_target first;
	int err;

	/* The number was given to another process: what is known of the old one stays its own. */
	if (process && process->exit_ns && record->start_ns >= process->exit_ns)
		process = NULL;
	if (!process && is_full(window, record->tgid)) {
		leave_out(window, record->tgid, record->start_ns);
		return 0;
	}
	if (!process)
		process = insert_process(window, record->tgid);
	if (!process)
		return -ENOMEM;

	err = replace_string(&process->comm, comm);
	if (!err)
		err = replace_string(&process->exe, exe);
	if (!err)
		err = replace_string(&process->cmdline, cmdline);
	if (err)
		return err;
	first = process->record;
	process->record = *record;
	/* After execve it is announced without a parent: it is traced since the first time. */
	if (!record->parent_tgid && first.start_ns) {
		process->record.parent_tgid = first.parent_tgid;
		process->record.start_ns = first.start_ns;
	}
	return 0;
}

void window__end_process(struct window *window, uint32_t tgid, uint64_t end_ns)
{
	struct process *process = window__touch_process(window, tgid);

	if (process)
		process->exit_ns = end_ns;
	else
		left_out__end(window->left_out, tgid, end_ns);
}

bool window__has_ended(const struct window *window, uint32_t tgid)
{
	const struct process *process = find_process(window, tgid);

	return process ? process->exit_ns != 0 : left_out__has_ended(window->left_out, tgid);
}

/* Threads are sorted by tid: where it is, or belongs. */
static size_t thread_position(const struct window *window, uint32_t tid)
{
	size_t low = 0, high = window->threads.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (window->threads.items[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void forget_exited_threads(struct window *window)
{
	size_t kept = 0;

	vec_for_each (thread, &window->threads) {
		if (!window__has_ended(window, thread->tgid))
			window->threads.items[kept++] = *thread;
	}
	window->threads.count = kept;
}

int window__add_thread(struct window *window, const struct fbt_thread_name *record)
{
	struct thread thread = {.tgid = record->tgid, .tid = record->tid};
	size_t position = thread_position(window, record->tid);
	int err;

	memcpy(thread.comm, record->comm, sizeof(thread.comm) - 1);
	if (position < window->threads.count &&
	    window->threads.items[position].tid == record->tid) {
		window->threads.items[position] = thread;
		return 0;
	}
	if (window->threads.count >= THREADS_MAX &&
	    window->nameless_threads++ % THREADS_TURN == 0) {
		forget_exited_threads(window);
		position = thread_position(window, record->tid);
	}
	if (window->threads.count >= THREADS_MAX)
		return -ENOSPC;
	err = vec_push(&window->threads, thread);
	if (err)
		return err;
	memmove(&window->threads.items[position + 1], &window->threads.items[position],
		(window->threads.count - 1 - position) * sizeof(thread));
	window->threads.items[position] = thread;
	return 0;
}

int window__add_file(struct window *window, const struct fbt_file *record, const char *path)
{
	return file_table_add(&window->files, record, path);
}

const struct file *window__file(const struct window *window, uint32_t id)
{
	return file_table_find(&window->files, id);
}

const struct process *window__process(const struct window *window, uint32_t tgid)
{
	return find_process(window, tgid);
}

const char *window__thread_name(const struct window *window, uint32_t tid)
{
	size_t position = thread_position(window, tid);

	if (position == window->threads.count || window->threads.items[position].tid != tid)
		return NULL;
	return window->threads.items[position].comm;
}

const char *window__kind_name(const struct window *window, uint32_t kind)
{
	if (kind >= FBT_KIND_COUNT || !window->kinds[kind].name)
		return "step";
	return window->kinds[kind].name;
}

const char *window__step_source(const struct window *window, uint32_t kind)
{
	if (kind >= FBT_KIND_COUNT)
		return "function";
	switch ((enum fbt_step_source)window->kinds[kind].record.source) {
	case FBT_SOURCE_USDT:
		return "usdt";
	case FBT_SOURCE_INTERVAL:
		return "interval";
	case FBT_SOURCE_FUNCTION:
		break;
	}
	return "function";
}

uint64_t window__lost_total(const struct window *window)
{
	uint64_t total = 0;

	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		if (__builtin_add_overflow(total, window->lost.count[i], &total))
			return UINT64_MAX;
	}
	return total;
}

const char *lost_cause_name(enum fbt_lost_cause cause)
{
	switch (cause) {
	case FBT_LOST_CALLS:
		return "calls";
	case FBT_LOST_STEPS:
		return "steps";
	case FBT_LOST_THREADS:
		return "threads";
	case FBT_LOST_BEGINS:
		return "begins";
	case FBT_LOST_NAMES:
		return "processes";
	case FBT_LOST_FILES:
		return "files";
	case FBT_LOST_COUNT:
		break;
	}
	return "unknown";
}
