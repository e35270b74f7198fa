/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "merge.h"

#include <stdlib.h>

#include "merge_process.h"
#include "tid_map.h"

/* Vectors of what was passed on stay for the next, up to so many records. */
#define SPARE_RECORDS 4096

struct merger {
	struct merge_options options;
	struct merge_output output;
	struct tid_map *by_tgid;
	VEC(struct merge_process *) processes;
	struct held_queue held; /* in the order they came */
	size_t steps;		/* held */
	size_t calls;		/* of them */
	size_t records;		/* of those that are sealed */
};

struct merger *merger__new(const struct merge_options *options, const struct merge_output *output)
{
	struct merger *merger = calloc(1, sizeof(*merger));

	if (!merger)
		return NULL;
	merger->options = *options;
	merger->output = *output;
	if (!merger->options.timeout_ns)
		merger->options.timeout_ns = MERGE_TIMEOUT_NS;
	STAILQ_INIT(&merger->held);
	merger->by_tgid = tid_map__new();
	if (!merger->by_tgid) {
		free(merger);
		return NULL;
	}
	return merger;
}

static void held_step_free(struct held_step *held)
{
	step_gpu_free(held->step.gpu);
	vec_free(&held->step.calls);
	free(held);
}

void merger__free(struct merger *merger)
{
	struct held_step *held;

	if (!merger)
		return;
	while ((held = STAILQ_FIRST(&merger->held))) {
		STAILQ_REMOVE_HEAD(&merger->held, in_all);
		held_step_free(held);
	}
	vec_for_each (process, &merger->processes)
		merge_process__free(*process);
	vec_free(&merger->processes);
	tid_map__free(merger->by_tgid);
	free(merger);
}

static void keep_first(int *err, int result)
{
	if (!*err)
		*err = result;
}

static size_t count_records(const struct step_gpu *gpu)
{
	return gpu ? gpu->works.count + gpu->apis.count + gpu->syncs.count + gpu->overheads.count
		   : 0;
}

static int pass_batch(const struct merger *merger, const struct window *window,
		      const struct gpu_batch *batch)
{
	if (!merger->output.on_gpu || (!batch->works->count && !batch->apis->count &&
				       !batch->syncs->count && !batch->overheads->count))
		return 0;
	return merger->output.on_gpu(merger->output.ctx, window, batch);
}

static int pass_step(const struct merger *merger, const struct window *window, struct step *step)
{
	struct step_gpu *gpu = step->gpu;
	int err = merger->output.on_step(merger->output.ctx, window, step);

	if (gpu)
		keep_first(&err, pass_batch(merger, window,
					    &(struct gpu_batch){.tgid = step->record.tgid,
								.step = step->number,
								.works = &gpu->works,
								.apis = &gpu->apis,
								.syncs = &gpu->syncs,
								.overheads = &gpu->overheads}));
	return err;
}

static void empty_left(struct gpu_left *left)
{
	left->works.count = left->apis.count = 0;
	left->syncs.count = left->overheads.count = 0;
	if (left->works.capacity > SPARE_RECORDS)
		vec_free(&left->works);
	if (left->apis.capacity > SPARE_RECORDS)
		vec_free(&left->apis);
	if (left->syncs.capacity > SPARE_RECORDS)
		vec_free(&left->syncs);
	if (left->overheads.capacity > SPARE_RECORDS)
		vec_free(&left->overheads);
}

static int pass_left(const struct merger *merger, const struct window *window,
		     struct merge_process *process)
{
	struct gpu_left *left = &process->left;
	int err = pass_batch(merger, window,
			     &(struct gpu_batch){.tgid = process->tgid,
						 .works = &left->works,
						 .apis = &left->apis,
						 .syncs = &left->syncs,
						 .overheads = &left->overheads});

	empty_left(left);
	return err;
}

static int pass_first(struct merger *merger, const struct window *window)
{
	struct held_step *held = STAILQ_FIRST(&merger->held);
	int err;

	STAILQ_REMOVE_HEAD(&merger->held, in_all);
	merger->steps--;
	merger->calls -= held->step.calls.count;
	err = pass_step(merger, window, &held->step);
	held_step_free(held);
	return err;
}

static int pass_sealed(struct merger *merger, const struct window *window)
{
	const struct held_step *held;
	int err = 0;

	while ((held = STAILQ_FIRST(&merger->held)) && held->sealed)
		keep_first(&err, pass_first(merger, window));
	return err;
}

/* Records that sealed steps hold while they wait for steps before them. */
static size_t sealed_records(const struct merger *merger)
{
	const struct held_step *held;
	size_t count = 0;

	STAILQ_FOREACH(held, &merger->held, in_all)
	count += count_records(held->step.gpu);
	return count;
}

static bool has_room(const struct merger *merger)
{
	return merger->steps <= MERGE_STEPS_MAX && merger->calls <= MERGE_CALLS_MAX;
}

static int seal_first(struct merger *merger, const struct window *window)
{
	struct held_step *held = STAILQ_FIRST(&merger->held);
	int err = 0;

	if (!held->sealed)
		err = merge_process__seal(held->process, held, GPU_SEAL_ROOM);
	keep_first(&err, pass_first(merger, window));
	return err;
}

static int make_room(struct merger *merger, const struct window *window)
{
	size_t records = sealed_records(merger);
	int err = 0;

	while (!STAILQ_EMPTY(&merger->held) && (!has_room(merger) || records > MERGE_RECORDS_MAX)) {
		size_t own = count_records(STAILQ_FIRST(&merger->held)->step.gpu);

		records -= own;
		keep_first(&err, seal_first(merger, window));
	}
	keep_first(&err, pass_sealed(merger, window));
	return err;
}

/* What was done to a process may have sealed steps and left records over. */
static int pass_on(struct merger *merger, const struct window *window,
		   struct merge_process *process)
{
	int err = pass_sealed(merger, window);

	keep_first(&err, pass_left(merger, window, process));
	return err;
}

/* Steps keep their order without memory too. */
static int pass_unheld(struct merger *merger, const struct window *window, struct step *step)
{
	while (!STAILQ_EMPTY(&merger->held))
		seal_first(merger, window);
	pass_step(merger, window, step);
	return -ENOMEM;
}

static int hold_step(struct merger *merger, const struct window *window, struct step *step,
		     struct merge_process *process)
{
	struct held_step *held = calloc(1, sizeof(*held));
	int err = 0;

	if (!held)
		return pass_unheld(merger, window, step);
	held->step = *step;
	step->calls = (call_vec){0};
	STAILQ_INSERT_TAIL(&merger->held, held, in_all);
	merger->steps++;
	merger->calls += held->step.calls.count;
	held->sealed = !process;
	if (process)
		err = merge_process__add_step(process, held);
	keep_first(&err, pass_sealed(merger, window));
	if (!has_room(merger))
		keep_first(&err, make_room(merger, window));
	return err;
}

int merger__push_step(struct merger *merger, struct window *window, struct step *step)
{
	struct merge_process *process = NULL;

	if (merger->processes.count)
		process = tid_map__get(merger->by_tgid, step->record.tgid);
	if (process && !merge_process__covers(process, step))
		process = NULL;
	if (!process && STAILQ_EMPTY(&merger->held))
		return pass_step(merger, window, step);
	return hold_step(merger, window, step, process);
}

static int drop_all(struct merger *merger, const struct window *window,
		    struct merge_process *process)
{
	int err = merge_process__drop(process, true);

	keep_first(&err, pass_left(merger, window, process));
	return err;
}

/* Records of those that ended stay for steps that come late; not for long if processes are many. */
static int drop_ended(struct merger *merger, const struct window *window)
{
	int err = 0;

	vec_for_each (process, &merger->processes) {
		if (!(*process)->live && TAILQ_EMPTY(&(*process)->waiting))
			keep_first(&err, drop_all(merger, window, *process));
	}
	return err;
}

static struct merge_process *add_process(struct merger *merger, uint32_t tgid)
{
	struct merge_process *process =
		merge_process__new(tgid, merger->options.strict, merger->options.timeout_ns);

	if (!process)
		return NULL;
	if (vec_push(&merger->processes, process)) {
		merge_process__free(process);
		return NULL;
	}
	if (tid_map__set(merger->by_tgid, tgid, process)) {
		merger->processes.count--;
		merge_process__free(process);
		return NULL;
	}
	return process;
}

static bool begins_process(const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_GPU_STATE:
		return ((const struct fbt_gpu_state *)event)->status == FBT_GPU_ARMED;
	case FBT_EVENT_GPU_WORK:
	case FBT_EVENT_GPU_API:
	case FBT_EVENT_GPU_SYNC:
	case FBT_EVENT_GPU_OVERHEAD:
		return true;
	default:
		return false;
	}
}

int merger__push_gpu(struct merger *merger, struct window *window, const struct fbt_header *event)
{
	/* All records of fbt_gpu.h begin so. */
	uint32_t tgid = ((const struct fbt_gpu_state *)event)->tgid;
	struct merge_process *process = tid_map__get(merger->by_tgid, tgid);
	int err = 0;

	if (!process && !begins_process(event))
		return 0;
	if (!process && merger->processes.count >= GPU_PROCESSES_MAX)
		return -ENOSPC;
	if (!process) {
		err = drop_ended(merger, window);
		process = add_process(merger, tgid);
	}
	if (!process)
		return -ENOMEM;
	merge_process__look_up(process, window);
	keep_first(&err, merge_process__add(process, event));
	keep_first(&err, pass_on(merger, window, process));
	if (event->type == FBT_EVENT_GPU_FLUSH)
		keep_first(&err, make_room(merger, window));
	return err;
}

int merger__flush(struct merger *merger, struct window *window)
{
	int err = 0;

	vec_for_each (process, &merger->processes)
		keep_first(&err, merge_process__seal_all(*process, GPU_SEAL_WINDOW_END));
	keep_first(&err, pass_sealed(merger, window));
	vec_for_each (process, &merger->processes)
		keep_first(&err, drop_all(merger, window, *process));
	return err;
}
