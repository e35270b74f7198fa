/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/assemble.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/log.h"
#include "model/event.h"
#include "model/futures.h"
#include "model/peer_table.h"
#include "model/look_table.h"
#include "model/pending.h"
#include "model/spins.h"
#include "model/stalls.h"
#include "model/stack_table.h"
#include "model/stop_table.h"
#include "model/woken_table.h"

/* Other threads of one step, of which it is known who took their CPU. */
#define TAKENS_MAX 8

struct assembler {
	struct assembler_output output;
	struct window *window;
	struct pending *pending;
	struct futures *futures;
	bool opened;
	bool ended;
	uint64_t end_ns;    /* from FBT_EVENT_WINDOW_END */
	uint64_t latest_ns; /* latest time in any record */
	uint64_t kind_steps[FBT_KIND_COUNT];
	struct stop_table stops;
	struct peer_table peers;
	struct stack_table stacks;
	struct look_table looks;
	struct fbt_stalls stalls;     /* those of the next step */
	struct fbt_gap gap;	      /* the one before the next step */
	struct fbt_taken taken;	      /* that of the next step */
	taken_vec takens;	      /* and those of other threads */
	struct fbt_samples samples;   /* the same */
	struct fbt_fault_sites sites; /* the same */
	struct woken_table wokens;
};

/*
 * Below FBT_DETAIL_ALL the kernel sends only calls in steps. An outside call then means that the
 * record of its step was lost, so it is dropped.
 */
static int pass_outside_call(void *ctx, const struct fbt_call *call)
{
	struct assembler *assembler = ctx;

	if (assembler->window->record.detail != FBT_DETAIL_ALL || !assembler->output.on_call)
		return 0;
	return assembler->output.on_call(assembler->output.ctx, assembler->window, call);
}

static int finish_step(void *ctx, struct step *step);

struct assembler *assembler__new(const struct assembler_output *output)
{
	struct assembler *assembler = calloc(1, sizeof(*assembler));

	if (!assembler)
		return NULL;
	assembler->output = *output;
	assembler->window = window__new();
	assembler->stacks.window = assembler->window;
	assembler->looks.window = assembler->window;
	assembler->pending = pending__new(pass_outside_call, assembler);
	assembler->futures = futures__new(finish_step, assembler);
	if (!assembler->window || !assembler->pending || !assembler->futures) {
		assembler__free(assembler);
		return NULL;
	}
	assembler->window->is_endless = output->is_endless;
	return assembler;
}

void assembler__free(struct assembler *assembler)
{
	if (!assembler)
		return;
	pending__free(assembler->pending);
	futures__free(assembler->futures);
	stack_table_clear(&assembler->stacks);
	look_table_clear(&assembler->looks);
	woken_table_clear(&assembler->wokens);
	vec_free(&assembler->takens);
	window__free(assembler->window);
	free(assembler);
}

static void note_time(struct assembler *assembler, uint64_t time_ns)
{
	assembler->latest_ns = max_u64(assembler->latest_ns, time_ns);
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
	int err, result;

	note_time(assembler, record->start_ns);
	err = futures__end_process(assembler->futures, record->tgid, record->start_ns);
	if (window__has_ended(assembler->window, record->tgid))
		keep_first(&err, pending__release(assembler->pending, record->tgid));
	result = window__add_process(assembler->window, record, decode_string(&record->header, 0),
				     decode_string(&record->header, 1),
				     decode_string(&record->header, 2));
	return err ? err : result;
}

/* Counts a name that found no room: the window continues. */
static int count_no_room(struct assembler *assembler, int err)
{
	if (err != -ENOSPC)
		return err;
	assembler->window->unkept_records++;
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

	if (!window__traces_calls(assembler->window))
		return 0;
	return process ? row_table_set(&process->table, row) : 0;
}

static int add_thread_use(struct assembler *assembler, const struct fbt_thread_use *use)
{
	struct process *process = window__touch_process(assembler->window, use->tgid);

	return process ? thread_table_add(&process->threads, use) : 0;
}

static void set_cpus(struct assembler *assembler, const struct fbt_cpus *cpus)
{
	struct process *process = window__touch_process(assembler->window, cpus->tgid);

	if (process)
		process->cpus = *cpus;
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
 * An unwound step is complete; it was only closed late. The calls of an interval are not compared
 * with its sums, because its edges are not read at the same instant for all threads.
 */
static bool is_complete(const struct window *window, const struct step *step)
{
	const struct fbt_step *record = &step->record;

	if (record->end == FBT_END_TRUNCATED || record->end == FBT_END_EXITED)
		return false;
	if (record->lost_calls || step->calls_truncated ||
	    record->header.flags & FBT_STEP_MAYBE_PART)
		return false;
	if (window->record.detail == FBT_DETAIL_STEPS || !step_calls_known(step) ||
	    record->kind == 0)
		return true;
	return step_recorded_calls(step) >= step_calls(step);
}

/* Sets to 0 what was not measured, whatever the record says, so that no sum contains it. */
static void forget_calls(struct step *step)
{
	struct fbt_step *record = &step->record;

	record->header.flags |= FBT_STEP_CALLS_UNKNOWN | FBT_STEP_OTHER_UNKNOWN;
	record->gap_syscall_ns = 0;
	record->other_syscall_ns = 0;
	record->lost_calls = 0;
	memset(record->call_delay_ns, 0, sizeof(record->call_delay_ns));
	memset(record->sums, 0, sizeof(record->sums));
	vec_free(&step->calls);
	step->calls_truncated = false;
}

static void count_incomplete(struct window *window, const struct step *step)
{
	const struct fbt_step *record = &step->record;

	window->incomplete_steps++;
	if (record->lost_calls || record->end == FBT_END_TRUNCATED || record->end == FBT_END_EXITED)
		return;
	if (step->calls_truncated)
		window->crowded_steps++;
	else if (record->header.flags & FBT_STEP_MAYBE_PART)
		window->part_steps++;
}

/* Completes a step. All that belongs to it has come; for a future, all its polls. */
static int finish_step(void *ctx, struct step *step)
{
	struct assembler *assembler = ctx;
	struct window *window = assembler->window;

	step->number = ++window->steps;
	step->kind_number = ++assembler->kind_steps[step->record.kind];
	step->complete = is_complete(window, step);
	/* A process that had no whole interval has had no step. */
	if (step->record.kind || step->record.end != FBT_END_TRUNCATED)
		window__note_step(window, step->record.tgid);
	spins_find(window, step);
	if (!step->complete)
		count_incomplete(window, step);
	return assembler->output.on_step(assembler->output.ctx, window, step);
}

/* An escalation of the step names these files in the report. */
static void pin_files(struct window *window, const struct fbt_fault_sites *sites)
{
	if (sites->header.type != FBT_EVENT_FAULT_SITES)
		return;
	for (uint32_t i = 0; i < sites->count; i++)
		window__pin_file(window, sites->sites[i].file);
}

/* A future has many polls: what is known of one of them says little of the step. */
static bool is_of(const struct fbt_step *record, uint32_t tgid, uint32_t tid, uint64_t start_ns)
{
	return tgid == record->tgid && tid == record->tid && start_ns == record->start_ns &&
	       !(record->header.flags & FBT_STEP_POLL);
}

/* Those of other threads, which belong to this step or to none. */
static void join_takens(struct assembler *assembler, struct step *step)
{
	const struct fbt_step *record = &step->record;

	vec_for_each (taken, &assembler->takens) {
		if (is_of(record, taken->tgid, record->tid, taken->start_ns))
			(void)vec_push(&step->takens, *taken);
	}
	assembler->takens.count = 0;
}

static int push_taken(struct assembler *assembler, const struct fbt_taken *taken)
{
	if (!(taken->header.flags & FBT_TAKEN_OUTSIDE)) {
		assembler->taken = *taken;
		return 0;
	}
	/* Their step was lost. */
	if (assembler->takens.count && assembler->takens.items[0].start_ns != taken->start_ns)
		assembler->takens.count = 0;
	if (assembler->takens.count == TAKENS_MAX)
		return 0;
	return vec_push(&assembler->takens, *taken);
}

/*
 * What was looked at on demand: who had the CPUs that the step waited for, and samples. The latest
 * records belong to this step or to none.
 */
static void join_looked_at(struct assembler *assembler, struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct fbt_taken *taken = &assembler->taken;
	struct fbt_samples *samples = &assembler->samples;
	struct fbt_fault_sites *sites = &assembler->sites;

	if (is_of(record, taken->tgid, taken->tid, taken->start_ns))
		step->taken = *taken;
	if (is_of(record, samples->tgid, samples->tid, samples->start_ns))
		step->samples = *samples;
	if (is_of(record, sites->tgid, sites->tid, sites->start_ns))
		step->fault_sites = *sites;
	taken->header.type = samples->header.type = sites->header.type = 0;
	taken->tid = samples->tid = sites->tid = 0;
	join_takens(assembler, step);
}

/* Steps that end later may have waited for it. */
static void keep_peer_step(struct assembler *assembler, struct step *step)
{
	const struct process *process = window__process(assembler->window, step->record.tgid);

	if (!peer_table_wants(&assembler->peers, step))
		return;
	spins_find(assembler->window, step);
	peer_table_add_step(&assembler->peers, step, process && process->comm ? process->comm : "");
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
	window__use_file(window, record->faults.file);

	err = pending__take(assembler->pending, &step);
	step_join_gap(&step, &assembler->gap);
	join_looked_at(assembler, &step);
	pin_files(window, &step.fault_sites);
	stop_table_join(&assembler->stops, &step);
	stack_table_join(&assembler->stacks, &step);
	peer_table_join(&assembler->peers, &step);
	stop_table_join_senders(&assembler->stops, &step);
	look_table_join(&assembler->looks, &step);
	woken_table_join(&assembler->wokens, &step);
	if (!window__traces_calls(window) || !step_calls_known(&step))
		forget_calls(&step);
	stalls_join(window, &assembler->stalls, &step);
	keep_peer_step(assembler, &step);
	if (record->kind && record->header.flags & FBT_STEP_POLL)
		result = futures__take(assembler->futures, &step, &window->late_polls[record->kind],
				       window->cut_futures);
	else
		result = finish_step(assembler, &step);
	step_clear(&step);
	return err ? err : result;
}

static int push_call(struct assembler *assembler, const struct fbt_call *call)
{
	note_time(assembler, call->start_ns + call->duration_ns);
	window__use_file(assembler->window, call->file);
	return pending__push(assembler->pending, call);
}

static void end_window(struct assembler *assembler, const struct fbt_window_end *record)
{
	assembler->ended = true;
	assembler->end_ns = max_u64(record->end_ns, assembler->window->record.start_ns);
}

/* A record that finds no room is counted: the window continues. */
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
		assembler->window->unkept_records++;
	if (err && err != -ENOSPC)
		return err;
	return result == -ENOSPC ? 0 : result;
}

static bool is_gpu(const struct fbt_header *event)
{
	return event->type >= FBT_EVENT_GPU_STATE && event->type <= FBT_EVENT_GPU_FLUSH;
}

/* Takes a record about the whole window, or about one process or kind in it. */
static void push_total(struct assembler *assembler, const struct fbt_header *event)
{
	struct window *window = assembler->window;

	switch (event->type) {
	case FBT_EVENT_LOST:
		window->lost = *(const struct fbt_lost *)event;
		break;
	case FBT_EVENT_UNSEEN:
		window->unseen_calls = ((const struct fbt_unseen *)event)->calls;
		break;
	case FBT_EVENT_SAMPLING:
		set_sampling(assembler, (const struct fbt_sampling *)event);
		break;
	case FBT_EVENT_ENDS:
		window->ends[((const struct fbt_ends *)event)->kind] =
			*(const struct fbt_ends *)event;
		break;
	case FBT_EVENT_PROBES:
		window->probes[((const struct fbt_probes *)event)->kind] =
			*(const struct fbt_probes *)event;
		break;
	case FBT_EVENT_EXPLAIN:
		window->explained[((const struct fbt_explained *)event)->kind] =
			*(const struct fbt_explained *)event;
		break;
	case FBT_EVENT_EXPLAIN_LOST:
		window->explain_lost = *(const struct fbt_explain_lost *)event;
		break;
	case FBT_EVENT_COST:
		window->cost = *(const struct fbt_cost *)event;
		break;
	case FBT_EVENT_CLOCK:
		window->clock = *(const struct fbt_clock *)event;
		break;
	case FBT_EVENT_TARGET_EXIT:
		end_target(assembler, (const struct fbt_target_exit *)event);
		break;
	case FBT_EVENT_WINDOW_END:
		end_window(assembler, (const struct fbt_window_end *)event);
		break;
	case FBT_EVENT_OPTIONS: /* for those who make the stages that judge */
		break;
	default:
		assembler__count_skipped(assembler);
	}
}

static int add_hang(struct assembler *assembler, const struct fbt_hang *hang)
{
	struct fbt_stop_sender sender = {.time_ns = 0};

	if (hang->state == 'T')
		sender = stop_table_sender(&assembler->stops, hang->tgid, hang->time_ns);
	window__add_hang(assembler->window, hang, &sender);
	if (!assembler->output.on_hang)
		return 0;
	return assembler->output.on_hang(assembler->output.ctx, assembler->window, hang);
}

/* A record that adds to what is known of the window. */
static int add_fact(struct assembler *assembler, const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_TARGET:
		return add_target(assembler, (const struct fbt_target *)event);
	case FBT_EVENT_THREAD:
		return count_no_room(assembler,
				     window__add_thread(assembler->window,
							(const struct fbt_thread_name *)event));
	case FBT_EVENT_KIND:
		return add_kind(assembler, (const struct fbt_kind *)event);
	case FBT_EVENT_FILE:
		return window__add_file(assembler->window, (const struct fbt_file *)event,
					decode_string(event, 0));
	case FBT_EVENT_TAILS:
		return window__set_tails(assembler->window, (const struct fbt_tails *)event,
					 (const char *const[WAYS_NAMES]){decode_string(event, 0),
									 decode_string(event, 1)});
	case FBT_EVENT_PYTHON:
		return window__set_python(assembler->window, (const struct fbt_python *)event,
					  decode_string(event, 0));
	case FBT_EVENT_TABLE:
		return set_table_row(assembler, (const struct fbt_table *)event);
	case FBT_EVENT_THREAD_USE:
		return add_thread_use(assembler, (const struct fbt_thread_use *)event);
	case FBT_EVENT_CPUS:
		set_cpus(assembler, (const struct fbt_cpus *)event);
		return 0;
	default:
		push_total(assembler, event);
		return 0;
	}
}

int assembler__push(struct assembler *assembler, const struct fbt_header *event)
{
	if (!assembler->opened && event->type != FBT_EVENT_WINDOW) {
		assembler__count_skipped(assembler);
		return 0;
	}
	if (is_gpu(event))
		return add_gpu(assembler, event);
	if (stack_table_takes(event->type))
		return count_no_room(assembler, stack_table_add(&assembler->stacks, event));
	if (look_table_takes(event->type))
		return look_table_add(&assembler->looks, event);
	switch (event->type) {
	case FBT_EVENT_WINDOW:
		return open_window(assembler, (const struct fbt_window *)event);
	case FBT_EVENT_STEP:
		return push_step(assembler, (const struct fbt_step *)event);
	case FBT_EVENT_CALL:
		return push_call(assembler, (const struct fbt_call *)event);
	case FBT_EVENT_WAKE:
		return pending__push_wake(assembler->pending, (const struct fbt_wake *)event);
	case FBT_EVENT_STALLS:
		assembler->stalls = *(const struct fbt_stalls *)event;
		return 0;
	case FBT_EVENT_GAP:
		assembler->gap = *(const struct fbt_gap *)event;
		return 0;
	case FBT_EVENT_WOKEN:
		return woken_table_add(&assembler->wokens, (const struct fbt_woken *)event);
	case FBT_EVENT_SAMPLES:
		assembler->samples = *(const struct fbt_samples *)event;
		return 0;
	case FBT_EVENT_FAULT_SITES:
		assembler->sites = *(const struct fbt_fault_sites *)event;
		return 0;
	case FBT_EVENT_TAKEN:
		return push_taken(assembler, (const struct fbt_taken *)event);
	case FBT_EVENT_STOP:
		stop_table_add(&assembler->stops, (const struct fbt_stop *)event);
		return 0;
	case FBT_EVENT_STOP_SENDER:
		stop_table_add_sender(&assembler->stops, (const struct fbt_stop_sender *)event);
		return 0;
	case FBT_EVENT_PEER:
		peer_table_add(&assembler->peers, (const struct fbt_peer *)event);
		return 0;
	case FBT_EVENT_PEER_LINK:
		peer_table_add_link(&assembler->peers, (const struct fbt_peer_link *)event);
		return 0;
	case FBT_EVENT_HANG:
		return add_hang(assembler, (const struct fbt_hang *)event);
	case FBT_EVENT_MANUAL:
		if (assembler->output.on_manual)
			assembler->output.on_manual(assembler->output.ctx);
		return 0;
	default:
		return add_fact(assembler, event);
	}
}

/* The last polls of a process may come after its end. */
static int end_futures(struct assembler *assembler)
{
	const struct window *window = assembler->window;
	int err = 0;

	for (size_t i = 0; i < window->processes.count; i++) {
		const struct process *process = window->processes.items[i];

		if (process->exit_ns)
			keep_first(&err,
				   futures__end_process(assembler->futures, process->record.tgid,
							process->exit_ns));
	}
	keep_first(&err, futures__flush(assembler->futures, window->end_ns));
	return err;
}

int assembler__flush(struct assembler *assembler)
{
	struct window *window = assembler->window;
	int err, result = 0;

	window->cut_off = !assembler->ended;
	window->end_ns = assembler->ended ? assembler->end_ns : assembler->latest_ns;
	err = end_futures(assembler);
	keep_first(&err, pending__flush(assembler->pending));
	if (assembler->output.on_end)
		result = assembler->output.on_end(assembler->output.ctx, window);
	return err ? err : result;
}

struct window assembler__window_so_far(const struct assembler *assembler)
{
	struct window window = *assembler->window;

	window.cut_off = true;
	window.end_ns = assembler->latest_ns;
	return window;
}

const struct window *assembler__window(const struct assembler *assembler)
{
	return assembler->window;
}
