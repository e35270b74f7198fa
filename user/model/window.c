/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/window.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/vec.h"
#include "model/overflow.h"

/* Most thread names kept, of 24 bytes each. If full, the names of ended processes are dropped. */
#define THREADS_MAX 65536
/* Dropping names walks all of them, so it is done only once per this many threads without room. */
#define THREADS_TURN 4096

/* So long after a process has exited, records of its steps may be on their way. */
#define STEPS_COME_NS UINT64_C(1000000000)

/* Of a file that is never dropped: the highest number of files. */
#define FILE_PINNED UINT64_MAX

static struct file *find_file(const struct file_table *table, uint32_t id)
{
	size_t position = vec_lower_bound(&table->files, item->record.id, id);

	if (position == table->files.count || table->files.items[position].record.id != id)
		return NULL;
	return &table->files.items[position];
}

/* Drops files that were not used since that many were added, except for the last ones by id. */
static void drop_files(struct file_table *table, uint64_t since, size_t last)
{
	size_t kept = 0, all = table->files.count;

	for (size_t i = 0; i < all; i++) {
		struct file *file = &table->files.items[i];

		if (file->added >= since || i + last >= all)
			table->files.items[kept++] = *file;
		else
			free(file->path);
	}
	table->files.count = kept;
}

static void make_room(struct file_table *table)
{
	const size_t half = FILE_TABLE_MAX / 2;

	drop_files(table, sub_saturating(table->added, half), 0);
	/* All are in use. */
	if (table->files.count > half + half / 2)
		drop_files(table, FILE_PINNED, half);
}

int file_table_add(struct file_table *table, const struct fbt_file *record, const char *path)
{
	struct file file = {.record = *record, .path = strdup(path), .added = ++table->added};
	struct file *known;
	int err;

	if (!file.path)
		return -ENOMEM;
	known = find_file(table, record->id);
	if (known) {
		if (known->added == FILE_PINNED)
			file.added = FILE_PINNED;
		free(known->path);
		*known = file;
		return 0;
	}
	if (table->files.count >= FILE_TABLE_MAX)
		make_room(table);
	err = vec_insert(&table->files, vec_lower_bound(&table->files, item->record.id, record->id),
			 file);
	if (err)
		free(file.path);
	return err;
}

const struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	return find_file(table, id);
}

void file_table_use(struct file_table *table, uint32_t id)
{
	struct file *file;

	/* Nothing is dropped soon: most windows are spared the search. */
	if (!id || table->files.count < FILE_TABLE_MAX / 2)
		return;
	file = find_file(table, id);
	if (file && file->added != FILE_PINNED)
		file->added = table->added;
}

void file_table_pin(struct file_table *table, uint32_t id)
{
	struct file *file = id ? find_file(table, id) : NULL;

	if (!file || file->added == FILE_PINNED)
		return;
	if (table->pinned == FILES_PINNED_MAX) {
		file->added = table->added;
		return;
	}
	file->added = FILE_PINNED;
	table->pinned++;
}

void file_table_clear(struct file_table *table)
{
	vec_for_each (file, &table->files)
		free(file->path);
	vec_free(&table->files);
	table->pinned = 0;
}

int row_table_set(struct row_table *table, const struct fbt_table *row)
{
	size_t position = vec_lower_bound(&table->rows, item->nr, row->nr);

	if (position < table->rows.count && table->rows.items[position].nr == row->nr) {
		table->rows.items[position] = *row;
		return 0;
	}
	return vec_insert(&table->rows, position, *row);
}

void row_table_clear(struct row_table *table)
{
	vec_free(&table->rows);
}

int thread_use_compare(const void *left, const void *right)
{
	const struct fbt_thread_use *a = left, *b = right;
	uint64_t a_ns = add_saturating(a->cpu_ns, a->delay_ns);
	uint64_t b_ns = add_saturating(b->cpu_ns, b->delay_ns);

	if (a_ns != b_ns)
		return a_ns < b_ns ? 1 : -1;
	if (a->calls != b->calls)
		return a->calls < b->calls ? 1 : -1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

void thread_table_leave_out(struct thread_table *table, const struct fbt_thread_use *use)
{
	struct fbt_thread_use *rest = &table->rest;

	if (!table->overflow_count++)
		rest->header.flags = FBT_USE_CPU_KNOWN;
	if (!(use->header.flags & FBT_USE_CPU_KNOWN))
		rest->header.flags = 0;
	rest->calls = add_saturating(rest->calls, use->calls);
	rest->call_ns = add_saturating(rest->call_ns, use->call_ns);
	rest->cpu_ns = add_saturating(rest->cpu_ns, use->cpu_ns);
	rest->delay_ns = add_saturating(rest->delay_ns, use->delay_ns);
	rest->traced_ns = add_saturating(rest->traced_ns, use->traced_ns);
	if (!(use->header.flags & FBT_USE_STEPS))
		return;
	table->rest_steps_cpu_ns = add_saturating(table->rest_steps_cpu_ns, use->cpu_ns);
	table->rest_steps_delay_ns = add_saturating(table->rest_steps_delay_ns, use->delay_ns);
}

int thread_table_add(struct thread_table *table, const struct fbt_thread_use *use)
{
	struct fbt_thread_use *least;

	if (table->threads.count < THREAD_TABLE_MAX)
		return vec_push(&table->threads, *use);
	least = table->threads.items;
	vec_for_each (kept, &table->threads) {
		if (thread_use_compare(kept, least) > 0)
			least = kept;
	}
	if (thread_use_compare(use, least) > 0) {
		thread_table_leave_out(table, use);
	} else {
		thread_table_leave_out(table, least);
		*least = *use;
	}
	return 0;
}

void thread_table_clear(struct thread_table *table)
{
	vec_free(&table->threads);
}

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
	window->overflow = overflow__new();
	if (!window->kinds[0].name || !window->tag || !window->tool_version ||
	    !window->kernel_release || !window->host || !window->overflow) {
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
	for (int i = 0; i < WAYS_NAMES; i++)
		free(kind->tail_names[i]);
	memset(kind, 0, sizeof(*kind));
}

static void process_free(struct process *process)
{
	if (!process)
		return;
	free(process->comm);
	free(process->exe);
	free(process->cmdline);
	free(process->interpreter);
	row_table_clear(&process->table);
	thread_table_clear(&process->threads);
	free(process);
}

static void clear_code(struct code *code)
{
	free(code->function);
	free(code->path);
	free(code->build_id);
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
	vec_for_each (code, &window->codes)
		clear_code(code);
	vec_free(&window->codes);
	vec_for_each (look, &window->hang_looks)
		vec_free(&look->threads);
	vec_free(&window->hang_looks);
	gpu_table_clear(&window->gpus);
	overflow__free(window->overflow);
	free(window->tag);
	free(window->tool_version);
	free(window->kernel_release);
	free(window->host);
	free(window);
}

/* Replaces *string by a copy of value. On -ENOMEM *string is unchanged. */
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

int window__set_tails(struct window *window, const struct fbt_tails *record,
		      const char *const names[WAYS_NAMES])
{
	struct kind *kind = &window->kinds[record->kind];

	for (int i = 0; i < WAYS_NAMES; i++) {
		char *name = strdup(names[i]);

		if (!name)
			return -ENOMEM;
		free(kind->tail_names[i]);
		kind->tail_names[i] = name;
	}
	kind->tails = *record;
	return 0;
}

struct ways_out window__ways_out(const struct window *window, uint32_t kind)
{
	const struct kind *known = &window->kinds[kind];
	struct ways_out ways = {
		.returns = known->tails.returns,
		.tail_calls = known->tails.tail_calls,
		.pointers = known->tails.pointers,
		.targets = known->tails.targets,
	};

	for (int i = 0; i < WAYS_NAMES; i++) {
		if (known->tail_names[i] && *known->tail_names[i])
			ways.names[i] = known->tail_names[i];
	}
	return ways;
}

/*
 * Index after the youngest process with that tgid. Processes are sorted by tgid; those with equal
 * tgids by age, the oldest first.
 */
static size_t process_position(const struct window *window, uint32_t tgid)
{
	return vec_lower_bound(&window->processes, (*item)->record.tgid, (uint64_t)tgid + 1);
}

static struct process *find_process(const struct window *window, uint32_t tgid)
{
	size_t position = process_position(window, tgid);
	struct process *process;

	/* If the overflow has it, an older process with that PID is another process. */
	if (!position || overflow__has(window->overflow, tgid))
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
	    vec_insert(&window->processes, position, process)) {
		process_free(process);
		return NULL;
	}
	return process;
}

static void count_unkept(struct window *window, uint32_t tgid, uint64_t start_ns)
{
	if (overflow__add(window->overflow, tgid, start_ns))
		window->overflow_processes++;
}

struct process *window__touch_process(struct window *window, uint32_t tgid)
{
	struct process *process = find_process(window, tgid);

	if (!process && !overflow__has(window->overflow, tgid))
		process = insert_process(window, tgid);
	if (!process)
		count_unkept(window, tgid, 0);
	return process;
}

/* Whether a process can go: it has exited, and no step of it is still to come. */
static bool is_idle(const struct window *window, const struct process *process, uint64_t now_ns)
{
	return process->exit_ns && (!process->has_steps || window->is_endless) &&
	       now_ns >= process->exit_ns && now_ns - process->exit_ns >= STEPS_COME_NS;
}

/*
 * Helpers that a service starts again and again would otherwise take all room. They are counted as
 * not kept, and known as such, so that a later record does not bring them back without a name.
 */
static void forget_exited_processes(struct window *window, uint64_t now_ns)
{
	size_t kept = 0, count = window->processes.count;

	for (size_t i = 0; i < count; i++) {
		struct process *process = window->processes.items[i];
		uint32_t tgid = process->record.tgid;
		bool is_reused =
			i + 1 < count && window->processes.items[i + 1]->record.tgid == tgid;

		if (!is_idle(window, process, now_ns)) {
			window->processes.items[kept++] = process;
			continue;
		}
		window->overflow_processes++;
		if (!is_reused) {
			(void)overflow__add(window->overflow, tgid, process->record.start_ns);
			overflow__end(window->overflow, tgid, process->exit_ns);
		}
		process_free(process);
	}
	window->processes.count = kept;
}

/* Whether there is room for a process that begins. */
static bool make_process_room(struct window *window, uint32_t tgid, uint64_t start_ns)
{
	/* Its number may be one of a process that was not kept, and has ended. */
	if (!overflow__is_over(window->overflow, tgid, start_ns))
		return false;
	if (window->processes.count >= WINDOW_PROCESSES_MAX)
		forget_exited_processes(window, start_ns);
	if (window->processes.count >= WINDOW_PROCESSES_MAX)
		return false;
	overflow__remove(window->overflow, tgid);
	return true;
}

int window__add_process(struct window *window, const struct fbt_target *record, const char *comm,
			const char *exe, const char *cmdline)
{
	struct process *process = find_process(window, record->tgid);
	struct fbt_target first;
	int err;

	/* The PID was reused: the record is about a new process. */
	if (process && process->exit_ns && record->start_ns >= process->exit_ns)
		process = NULL;
	if (!process && !make_process_room(window, record->tgid, record->start_ns)) {
		count_unkept(window, record->tgid, record->start_ns);
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
	/* The record of an execve has no parent and a later time: keep those known before. */
	if (!record->parent_tgid && first.start_ns) {
		process->record.parent_tgid = first.parent_tgid;
		process->record.start_ns = first.start_ns;
	}
	return 0;
}

void window__note_step(struct window *window, uint32_t tgid)
{
	struct process *process = find_process(window, tgid);

	if (process)
		process->has_steps = true;
}

int window__set_python(struct window *window, const struct fbt_python *record, const char *path)
{
	struct process *process = window__touch_process(window, record->tgid);
	char *copy = strdup(path);

	if (!process || !copy) {
		free(copy);
		return copy ? 0 : -ENOMEM;
	}
	free(process->interpreter);
	process->interpreter = copy;
	process->python = *record;
	return 0;
}

void window__end_process(struct window *window, uint32_t tgid, uint64_t end_ns)
{
	struct process *process = window__touch_process(window, tgid);

	if (process)
		process->exit_ns = end_ns;
	else
		overflow__end(window->overflow, tgid, end_ns);
}

bool window__has_ended(const struct window *window, uint32_t tgid)
{
	const struct process *process = find_process(window, tgid);

	return process ? process->exit_ns != 0 : overflow__has_ended(window->overflow, tgid);
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
	size_t position = vec_lower_bound(&window->threads, item->tid, record->tid);

	memcpy(thread.comm, record->comm, sizeof(thread.comm) - 1);
	if (position < window->threads.count &&
	    window->threads.items[position].tid == record->tid) {
		window->threads.items[position] = thread;
		return 0;
	}
	if (window->threads.count >= THREADS_MAX &&
	    window->nameless_threads++ % THREADS_TURN == 0) {
		forget_exited_threads(window);
		position = vec_lower_bound(&window->threads, item->tid, record->tid);
	}
	if (window->threads.count >= THREADS_MAX)
		return -ENOSPC;
	return vec_insert(&window->threads, position, thread);
}

int window__add_file(struct window *window, const struct fbt_file *record, const char *path)
{
	return file_table_add(&window->files, record, path);
}

void window__use_file(struct window *window, uint32_t id)
{
	file_table_use(&window->files, id);
}

void window__pin_file(struct window *window, uint32_t id)
{
	file_table_pin(&window->files, id);
}

void window__add_hang(struct window *window, const struct fbt_hang *hang,
		      const struct fbt_stop_sender *sender)
{
	uint64_t place =
		window->hang_count < WINDOW_HANGS_MAX ? window->hang_count : WINDOW_HANGS_MAX;

	window__note_step(window, hang->tgid);
	window->hangs[place] = *hang;
	window->hang_senders[place] = *sender;
	if (place < WINDOW_HANGS_MAX)
		window__pin_file(window, hang->call.file);
	window->hang_count++;
}

const struct fbt_stop_sender *window__hang_sender(const struct window *window,
						  const struct fbt_hang *hang)
{
	for (uint64_t i = 0; i < window->hang_count && i <= WINDOW_HANGS_MAX; i++) {
		const struct fbt_hang *one = &window->hangs[i];

		if (one->tgid == hang->tgid && one->tid == hang->tid &&
		    one->time_ns == hang->time_ns &&
		    window->hang_senders[i].header.type == FBT_EVENT_STOP_SENDER)
			return &window->hang_senders[i];
	}
	return NULL;
}

int window__add_hang_look(struct window *window, struct hang_look *look)
{
	struct hang_look *last;

	if (window->hang_looks.count <= WINDOW_HANGS_MAX)
		return vec_push(&window->hang_looks, *look);
	last = &window->hang_looks.items[WINDOW_HANGS_MAX];
	vec_free(&last->threads);
	*last = *look;
	return 0;
}

const struct hang_look *window__hang_look(const struct window *window, const struct fbt_hang *hang)
{
	vec_for_each (look, &window->hang_looks)
		if (look->record.tgid == hang->tgid && look->record.tid == hang->tid &&
		    look->record.start_ns == hang->step_start_ns)
			return look;
	return NULL;
}

const struct file *window__file(const struct window *window, uint32_t id)
{
	return file_table_find(&window->files, id);
}

const struct code *window__code(const struct window *window, uint32_t id)
{
	size_t position = vec_lower_bound(&window->codes, item->record.id, id);

	if (position == window->codes.count || window->codes.items[position].record.id != id)
		return NULL;
	return &window->codes.items[position];
}

/* The first one of an id stays. */
int window__add_code(struct window *window, const struct fbt_code *record,
		     const char *const strings[CODE_STRINGS])
{
	struct code code = {*record, strdup(strings[0]), strdup(strings[1]), strdup(strings[2])};
	size_t position = vec_lower_bound(&window->codes, item->record.id, record->id);
	int err = 0;

	if (!code.function || !code.path || !code.build_id)
		err = -ENOMEM;
	else if (window__code(window, record->id))
		err = -EEXIST;
	else if (window->codes.count >= CODE_TABLE_MAX)
		err = -ENOSPC;
	else
		err = vec_insert(&window->codes, position, code);
	if (err)
		clear_code(&code);
	return err == -EEXIST ? 0 : err;
}

void window__note_codes(struct window *window, const uint32_t *codes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		window->unkept_records += !codes[i];
}

const struct process *window__process(const struct window *window, uint32_t tgid)
{
	return find_process(window, tgid);
}

const char *window__process_title(const struct window *window, uint32_t tgid,
				  char title[PROCESS_TITLE_MAX])
{
	const struct process *process = window__process(window, tgid);
	const char *name = process && *process->comm ? process->comm : "?";
	size_t length = strlen(name);

	/* The name of a thread is the first 15 bytes of the title. */
	if (process && !strncmp(process->cmdline, name, length)) {
		name = process->cmdline;
		length = strcspn(name, " ");
	}
	snprintf(title, PROCESS_TITLE_MAX, "%.*s", (int)length, name);
	return title;
}

const char *window__thread_name(const struct window *window, uint32_t tid)
{
	size_t position = vec_lower_bound(&window->threads, item->tid, tid);

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

uint64_t window__unix_ns(const struct window *window, uint64_t time_ns)
{
	bool was_set = window->clock.header.type;
	uint64_t since_ns = was_set ? window->clock.time_ns : window->record.start_ns;
	uint64_t unix_ns = was_set ? window->clock.realtime_ns : window->record.realtime_ns;

	if (!unix_ns)
		return 0;
	if (time_ns >= since_ns)
		return add_saturating(unix_ns, time_ns - since_ns);
	return sub_saturating(unix_ns, since_ns - time_ns);
}

bool window__is_gpu_strict(const struct window *window)
{
	return window->record.header.flags & FBT_WINDOW_GPU_STRICT;
}

bool window__traces_calls(const struct window *window)
{
	return window->record.detail != FBT_DETAIL_PROBES;
}

bool window__may_lose(const struct window *window, enum fbt_lost_cause cause)
{
	return window__traces_calls(window) || (cause != FBT_LOST_CALLS && cause != FBT_LOST_FILES);
}

uint64_t window__lost_total(const struct window *window)
{
	uint64_t total = 0;

	for (int i = 0; i < FBT_LOST_COUNT; i++)
		total = add_saturating(total, window->lost.count[i]);
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

uint64_t window__cut_steps(const struct window *window, uint32_t kind)
{
	return add_saturating(window->sampling[kind].cut_steps, window->cut_futures[kind]);
}

double window__sampled_percent(const struct window *window, uint32_t kind)
{
	const struct fbt_sampling *sampling = &window->sampling[kind];
	double watched_ns = (double)sampling->watched_ns, off_ns = (double)sampling->off_ns;

	return sampling->kind ? watched_ns * 100 / (watched_ns + off_ns + 1) : 0;
}

uint64_t window__sampled_calls_per_s(const struct window *window, uint32_t kind)
{
	const struct fbt_sampling *sampling = &window->sampling[kind];

	if (!sampling->watched_ns)
		return 0;
	return to_u64_saturating((long double)sampling->calls * 1e9l /
				 (long double)sampling->watched_ns);
}
