/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "assemble.h"

#include <errno.h>
#include <stdlib.h>

#include "decode.h"
#include "pending.h"

struct assembler {
	struct assembler_output output;
	struct window *window;
	struct pending *pending;
	bool opened;
	bool ended;
	uint64_t end_ns;    /* as FBT_EVENT_WINDOW_END says */
	uint64_t latest_ns; /* latest time in any record */
	uint64_t kind_steps[FBT_KIND_COUNT];
};

/* Below FBT_DETAIL_ALL the kernel sends calls of steps only: one without lost its step's record. */
static int pass_outside_call(void *ctx, const struct fbt_call *call)
{
	struct assembler *assembler = ctx;

	if (assembler->window->record.detail != FBT_DETAIL_ALL || !assembler->output.on_call)
		return 0;
	return assembler->output.on_call(assembler->output.ctx, assembler->window, call);
}

struct assembler *assembler__new(const struct assembler_output *output)
{
	struct assembler *assembler = calloc(1, sizeof(*assembler));

	if (!assembler)
		return NULL;
	assembler->output = *output;
	assembler->window = window__new();
	assembler->pending = pending__new(pass_outside_call, assembler);
	if (!assembler->window || !assembler->pending) {
		assembler__free(assembler);
		return NULL;
	}
	return assembler;
}

void assembler__free(struct assembler *assembler)
{
	if (!assembler)
		return;
	pending__free(assembler->pending);
	window__free(assembler->window);
	free(assembler);
}

static void note_time(struct assembler *assembler, uint64_t time_ns)
{
	if (time_ns > assembler->latest_ns)
		assembler->latest_ns = time_ns;
}

void assembler__count_skipped(struct assembler *assembler)
{
	assembler->window->skipped_records++;
}

static int open_window(struct assembler *assembler, const struct fbt_window *record)
{
	const char *strings[WINDOW_STRINGS];
	int err;

	if (assembler->opened) {
		assembler__count_skipped(assembler);
		return 0;
	}
	for (int i = 0; i < WINDOW_STRINGS; i++)
		strings[i] = decode_string(&record->header, i);
	err = window__open(assembler->window, record, strings);
	if (err)
		return err;
	assembler->opened = true;
	note_time(assembler, record->start_ns);
	return 0;
}

static int add_target(struct assembler *assembler, const struct fbt_target *record)
{
	int err = 0;
	int result;

	note_time(assembler, record->start_ns);
	if (window__has_ended(assembler->window, record->tgid))
		err = pending__release(assembler->pending, record->tgid);
	result = window__add_process(assembler->window, record, decode_string(&record->header, 0),
				     decode_string(&record->header, 1),
				     decode_string(&record->header, 2));
	return err ? err : result;
}

/* A name that finds no room is no reason to end the window. */
static int add_thread(struct assembler *assembler, const struct fbt_thread_name *record)
{
	int err = window__add_thread(assembler->window, record);

	if (err != -ENOSPC)
		return err;
	assembler__count_skipped(assembler);
	return 0;
}

/* A name that finds no room is no reason to end the window. */
static int add_file(struct assembler *assembler, const struct fbt_file *record)
{
	int err = window__add_file(assembler->window, record, decode_string(&record->header, 0));

	if (err != -ENOSPC)
		return err;
	assembler__count_skipped(assembler);
	return 0;
}

static int add_kind(struct assembler *assembler, const struct fbt_kind *record)
{
	const char *arg_names[FBT_ARG_COUNT];

	for (uint32_t i = 0; i < record->arg_count; i++)
		arg_names[i] = decode_string(&record->header, 2 + i);
	return window__add_kind(assembler->window, record, decode_string(&record->header, 0),
				decode_string(&record->header, 1), arg_names);
}

static int set_table_row(struct assembler *assembler, const struct fbt_table *row)
{
	struct process *process = window__touch_process(assembler->window, row->tgid);

	return process ? row_table_set(&process->table, row) : 0;
}

static void set_sampling(struct assembler *assembler, const struct fbt_sampling *record)
{
	note_time(assembler, record->time_ns);
	assembler->window->sampling[record->kind] = *record;
}

static void end_target(struct assembler *assembler, const struct fbt_target_exit *record)
{
	note_time(assembler, record->end_ns);
	window__end_process(assembler->window, record->tgid, record->end_ns);
	pending__mark_exited(assembler->pending, record->tgid);
}

/*
 * An unwound step is whole, only closed late. The count of calls is no test for an interval: its
 * edges are not read at one instant for all threads.
 */
static bool is_complete(const struct window *window, const struct step *step)
{
	const struct fbt_step *record = &step->record;

	if (record->end != FBT_END_RETURN && record->end != FBT_END_UNWOUND)
		return false;
	if (record->lost_calls || step->calls_truncated)
		return false;
	if (window->record.detail == FBT_DETAIL_STEPS || record->kind == 0)
		return true;
	return step->calls.count >= step_calls(step);
}

static int push_step(struct assembler *assembler, const struct fbt_step *record)
{
	struct window *window = assembler->window;
	struct step step = {.record = *record};
	int err, result;

	note_time(assembler, record->end_ns);
	if (record->kind == 0)
		window->kind_known[0] = true;
	window__touch_process(window, record->tgid);

	err = pending__take(assembler->pending, &step);
	step.number = ++window->steps;
	step.kind_number = ++assembler->kind_steps[record->kind];
	step.complete = is_complete(window, &step);
	if (!step.complete)
		window->incomplete_steps++;
	result = assembler->output.on_step(assembler->output.ctx, window, &step);
	vec_free(&step.calls);
	return err ? err : result;
}

static int push_call(struct assembler *assembler, const struct fbt_call *call)
{
	note_time(assembler, call->start_ns + call->duration_ns);
	return pending__push(assembler->pending, call);
}

static void end_window(struct assembler *assembler, const struct fbt_window_end *record)
{
	assembler->ended = true;
	assembler->end_ns = record->end_ns;
	if (assembler->end_ns < assembler->window->record.start_ns)
		assembler->end_ns = assembler->window->record.start_ns;
}

/* What finds no room is no reason to end the window. */
static int add_gpu(struct assembler *assembler, const struct fbt_header *event)
{
	struct gpu_table *gpus = &assembler->window->gpus;
	const char *first = decode_string(event, 0);
	int err = 0, result = 0;

	switch (event->type) {
	case FBT_EVENT_GPU_STATE:
		err = gpu_table_set_state(gpus, (const struct fbt_gpu_state *)event, first,
					  decode_string(event, 1));
		break;
	case FBT_EVENT_GPU_NAME:
		err = gpu_table_add_name(gpus, (const struct fbt_gpu_name *)event, first);
		break;
	case FBT_EVENT_GPU_DEVICE:
		err = gpu_table_add_device(gpus, (const struct fbt_gpu_device *)event, first);
		break;
	case FBT_EVENT_GPU_FLUSH:
		err = gpu_table_set_flush(gpus, (const struct fbt_gpu_flush *)event);
		break;
	}
	if (assembler->output.on_gpu)
		result = assembler->output.on_gpu(assembler->output.ctx, assembler->window, event);
	if (err == -ENOSPC || result == -ENOSPC)
		assembler__count_skipped(assembler);
	if (err && err != -ENOSPC)
		return err;
	return result == -ENOSPC ? 0 : result;
}

static bool is_gpu(const struct fbt_header *event)
{
	return event->type >= FBT_EVENT_GPU_STATE && event->type <= FBT_EVENT_GPU_FLUSH;
}

int assembler__push(struct assembler *assembler, const struct fbt_header *event)
{
	if (!assembler->opened && event->type != FBT_EVENT_WINDOW) {
		assembler__count_skipped(assembler);
		return 0;
	}
	if (is_gpu(event))
		return add_gpu(assembler, event);
	switch (event->type) {
	case FBT_EVENT_WINDOW:
		return open_window(assembler, (const struct fbt_window *)event);
	case FBT_EVENT_TARGET:
		return add_target(assembler, (const struct fbt_target *)event);
	case FBT_EVENT_THREAD:
		return add_thread(assembler, (const struct fbt_thread_name *)event);
	case FBT_EVENT_KIND:
		return add_kind(assembler, (const struct fbt_kind *)event);
	case FBT_EVENT_STEP:
		return push_step(assembler, (const struct fbt_step *)event);
	case FBT_EVENT_CALL:
		return push_call(assembler, (const struct fbt_call *)event);
	case FBT_EVENT_FILE:
		return add_file(assembler, (const struct fbt_file *)event);
	case FBT_EVENT_MANUAL:
		if (assembler->output.on_manual)
			assembler->output.on_manual(assembler->output.ctx);
		return 0;
	case FBT_EVENT_TABLE:
		return set_table_row(assembler, (const struct fbt_table *)event);
	case FBT_EVENT_LOST:
		assembler->window->lost = *(const struct fbt_lost *)event;
		return 0;
	case FBT_EVENT_SAMPLING:
		set_sampling(assembler, (const struct fbt_sampling *)event);
		return 0;
	case FBT_EVENT_COST:
		assembler->window->cost = *(const struct fbt_cost *)event;
		return 0;
	case FBT_EVENT_TARGET_EXIT:
		end_target(assembler, (const struct fbt_target_exit *)event);
		return 0;
	case FBT_EVENT_WINDOW_END:
		end_window(assembler, (const struct fbt_window_end *)event);
		return 0;
	default:
		assembler__count_skipped(assembler);
		return 0;
	}
}

int assembler__flush(struct assembler *assembler)
{
	struct window *window = assembler->window;
	int err = pending__flush(assembler->pending), result = 0;

	window->cut_off = !assembler->ended;
	window->end_ns = assembler->ended ? assembler->end_ns : assembler->latest_ns;
	if (assembler->output.on_end)
		result = assembler->output.on_end(assembler->output.ctx, window);
	return err ? err : result;
}

const struct window *assembler__window(const struct assembler *assembler)
{
	return assembler->window;
}
