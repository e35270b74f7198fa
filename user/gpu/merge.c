/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/merge.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/arith.h"
#include "base/id_map.h"
#include "base/log.h"
#include "gpu/claim.h"
#include "gpu/hidden.h"
#include "gpu/join.h"

/* Vectors with room for up to this many records are kept for the next batch. */
#define SPARE_RECORDS 4096
/* Most flushes for which steps of a process wait if its records come late. */
#define PATIENCE_MAX 8
/* Most losses that are kept apart; beyond that, the oldest ones are merged. */
#define LOSSES_MAX 64
/*
 * How many records are kept after room was made, so that not every record has to make room again.
 */
#define ROOMY_RECORDS (MERGE_RECORDS_MAX / 8 * 7)

/* A step that waits for its records, or for a step before it. */
struct held_step {
	struct step step;
	struct merge_process *process; /* NULL: it waits for others only */
	bool sealed;
	uint32_t flushes; /* that came after its end */
	STAILQ_ENTRY(held_step) in_all;
	TAILQ_ENTRY(held_step) in_process; /* until it is sealed */
};

STAILQ_HEAD(held_queue, held_step);
TAILQ_HEAD(held_list, held_step);

/* A process with GPU records. */
struct merge_process {
	uint32_t tgid;
	uint64_t timeout_ns;
	struct attribution *attribution;
	struct gpu_join *join;		 /* of attribution */
	bool armed;			 /* records flow, or flowed */
	bool live;			 /* they still do */
	bool paused;			 /* they do not because the shim is silent */
	uint64_t armed_ns;		 /* they began … */
	uint64_t ended_ns;		 /* … and ended, if they do not flow */
	struct fbt_gpu_flush flush;	 /* the latest; zero before */
	struct fbt_gpu_flush shared;	 /* what of its totals steps were told already */
	bool last;			 /* no flush comes any more */
	bool late;			 /* something came that a sealed step should have had */
	uint32_t patience;		 /* flushes that have to come for a step */
	uint64_t drop_ns;		 /* what ended by then may leave at the next flush */
	uint64_t squeezed_ns;		 /* steps that began by then may have given up records */
	VEC(struct gpu_interval) losses; /* times of which records were lost */
	struct held_list waiting;	 /* steps that are not sealed */
	struct gpu_counts *counts;	 /* in the window … */
	struct gpu_counts spare_counts;	 /* … or here, of a process that it does not know yet */
	struct gpu_records left;	 /* to be passed on as of no step */
	struct hidden_work hidden;	 /* since the records began */
};

struct merger {
	struct merge_options options;
	struct merge_output output;
	struct tid_map *by_tgid;
	VEC(struct merge_process *) processes;
	struct held_queue held; /* in the order they came */
	size_t steps;		/* held */
	size_t calls;		/* of them */
};

static void process_free(struct merge_process *process)
{
	if (!process)
		return;
	attribution__free(process->attribution);
	vec_free(&process->losses);
	gpu_records_free(&process->left);
	free(process);
}

static struct merge_process *process_new(uint32_t tgid, const struct merge_options *options,
					 bool is_strict)
{
	struct merge_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->tgid = tgid;
	process->timeout_ns = options->timeout_ns;
	process->patience = 1;
	process->counts = &process->spare_counts;
	TAILQ_INIT(&process->waiting);
	process->attribution = attribution__new(is_strict);
	if (!process->attribution) {
		process_free(process);
		return NULL;
	}
	process->join = attribution__join(process->attribution);
	return process;
}

/* Finds what the window knows of the process: its names, and where its counts are kept. */
static void look_up(struct merge_process *process, const struct window *window)
{
	struct gpu_process *known;

	if (process->counts != &process->spare_counts)
		return;
	known = gpu_table_find(&window->gpus, process->tgid);
	if (!known)
		return;
	attribution__set_process(process->attribution, known);
	known->counts = process->spare_counts;
	process->counts = &known->counts;
}

/* The step is to have GPU figures. */
static bool covers(const struct merge_process *process, const struct step *step)
{
	return process->armed && step->record.end_ns > process->armed_ns &&
	       (process->live || step->record.start_ns < process->ended_ns);
}

static int note_loss(struct merge_process *process, struct gpu_interval loss)
{
	struct gpu_interval *losses = process->losses.items;

	if (process->losses.count < LOSSES_MAX)
		return vec_push(&process->losses, loss);
	losses[0].end_ns = losses[1].end_ns;
	memmove(&losses[1], &losses[2], (LOSSES_MAX - 2) * sizeof(*losses));
	losses[LOSSES_MAX - 1] = loss;
	return 0;
}

static uint64_t without_room(const struct fbt_gpu_flush *flush)
{
	return add_saturating(flush->ring_lost, flush->no_buffer);
}

/* Records of a step that come after it was sealed show that it was sealed too early. */
static int resolve(struct merge_process *process)
{
	const struct join_record *late;
	int err = gpu_join__resolve(process->join, process->flush.clock_error_ns, process->counts,
				    &late);

	hidden_work__judge(&process->hidden, process->join);
	attribution__set_hidden(process->attribution, hidden_work__until_ns(&process->hidden));
	if (late && attribution__is_late(process->attribution, late->api.tid, late->api.start_ns))
		process->late = true;
	if (process->late && process->patience < PATIENCE_MAX)
		process->patience *= 2;
	process->late = false;
	return err;
}

/* Whether no record that the step may have had is missing. */
static bool is_complete(const struct merge_process *process, const struct step *step,
			const struct step_gpu *gpu)
{
	uint64_t start_ns = step->record.start_ns;

	if (gpu->sealed != GPU_SEAL_WATERMARK || gpu->missing || gpu->unmeasured)
		return false;
	if (start_ns < process->armed_ns || gpu_join__lost_since(process->join, start_ns))
		return false;
	vec_for_each (loss, &process->losses) {
		if (loss->end_ns > start_ns)
			return false;
	}
	return true;
}

static void tell_losses(struct merge_process *process, struct step_gpu *gpu)
{
	const struct fbt_gpu_flush *flush = &process->flush, *shared = &process->shared;

	gpu->cupti_dropped = sub_saturating(flush->cupti_dropped, shared->cupti_dropped);
	gpu->ring_lost = sub_saturating(without_room(flush), without_room(shared));
	gpu->shim_ns = sub_saturating(flush->shim_ns, shared->shim_ns);
	gpu->clock_error_ns = flush->clock_error_ns;
	process->shared = *flush;
}

/* Gives a step its figures. -ENOMEM: it has none. */
static int seal(struct merge_process *process, struct held_step *held, enum gpu_seal reason)
{
	struct step_gpu *gpu = calloc(1, sizeof(*gpu));
	bool is_damaged = false;
	int err = -ENOMEM;

	if (reason == GPU_SEAL_WATERMARK && held->step.record.start_ns < process->squeezed_ns &&
	    gpu_join__lost_since(process->join, held->step.record.start_ns))
		reason = GPU_SEAL_ROOM;
	if (gpu)
		err = attribution__take(process->attribution, &held->step, gpu, &is_damaged);
	TAILQ_REMOVE(&process->waiting, held, in_process);
	held->sealed = true;
	if (err) {
		step_gpu_free(gpu);
		return err;
	}
	/* If a step is sealed for another reason, it is known that more records may come. */
	if (reason == GPU_SEAL_WATERMARK)
		attribution__seal(process->attribution);
	gpu->sealed = reason;
	gpu->complete = !is_damaged && is_complete(process, &held->step, gpu);
	/* What is missing can only make the GPU busier. */
	if (!gpu->complete && gpu->bound != GPU_BOUND_GPU)
		gpu->bound = GPU_BOUND_UNKNOWN;
	tell_losses(process, gpu);
	process->counts->steps++;
	process->counts->timeouts += reason != GPU_SEAL_WATERMARK;
	held->step.gpu = gpu;
	return 0;
}

static bool is_flushed(const struct merge_process *process, const struct held_step *held)
{
	return process->flush.time_ns >= held->step.record.end_ns;
}

/*
 * Whether a step is to be sealed, and why; GPU_SEAL_COUNT: not yet. The timeout runs from the end
 * of the step to when the latest flush was sent: what that flush covers may be much older.
 */
static enum gpu_seal find_seal(const struct merge_process *process, const struct held_step *held,
			       const struct gpu_awaited *awaited)
{
	bool is_late = sub_saturating(process->flush.sent_ns, held->step.record.end_ns) >=
		       process->timeout_ns;
	bool is_over = process->last || is_late;

	if (!is_flushed(process, held)) {
		if (process->last)
			return GPU_SEAL_ENDED;
		return is_late ? GPU_SEAL_TIMEOUT : GPU_SEAL_COUNT;
	}
	if (!awaited->launches && (is_over || held->flushes >= process->patience) &&
	    (!awaited->perhaps || is_over || held->flushes >= 2))
		return GPU_SEAL_WATERMARK;
	if (is_late)
		return GPU_SEAL_TIMEOUT;
	return process->last ? GPU_SEAL_ENDED : GPU_SEAL_COUNT;
}

static int seal_if_ready(struct merge_process *process, struct held_step *held)
{
	struct gpu_awaited awaited = {0};
	enum gpu_seal reason;
	int err = 0;

	if (is_flushed(process, held))
		err = attribution__await(process->attribution, &held->step, &awaited);
	if (err)
		return err;
	reason = find_seal(process, held, &awaited);
	return reason == GPU_SEAL_COUNT ? 0 : seal(process, held, reason);
}

static int seal_ready(struct merge_process *process)
{
	struct held_step *held = TAILQ_FIRST(&process->waiting), *next;
	int err = 0;

	for (; held; held = next) {
		next = TAILQ_NEXT(held, in_process);
		keep_first(&err, seal_if_ready(process, held));
	}
	return err;
}

/* Seals all steps of a process: no more records will come, for this reason. */
static int seal_all(struct merge_process *process, enum gpu_seal reason)
{
	struct held_step *held;
	int err = resolve(process);

	while ((held = TAILQ_FIRST(&process->waiting))) {
		struct gpu_awaited awaited = {0};
		bool has_all;

		keep_first(&err, attribution__await(process->attribution, &held->step, &awaited));
		has_all = is_flushed(process, held) && !awaited.launches;
		keep_first(&err, seal(process, held, has_all ? GPU_SEAL_WATERMARK : reason));
	}
	return err;
}

/* The step waits afterwards, or is sealed: without figures if -ENOMEM. */
static int add_step(struct merge_process *process, struct held_step *held)
{
	int err = attribution__add_step(process->attribution, &held->step);

	if (err) {
		held->sealed = true;
		return err;
	}
	held->process = process;
	held->flushes = is_flushed(process, held);
	TAILQ_INSERT_TAIL(&process->waiting, held, in_process);
	if (!process->live)
		return seal_all(process, GPU_SEAL_ENDED);
	if (!held->flushes && !process->last)
		return 0;
	err = resolve(process);
	keep_first(&err, seal_if_ready(process, held));
	return err;
}

/* The earliest of the steps that wait, and of a time. */
static uint64_t earliest_start(const struct merge_process *process, uint64_t earliest_ns)
{
	struct held_step *held;

	TAILQ_FOREACH(held, &process->waiting, in_process)
	earliest_ns = min_u64(earliest_ns, held->step.record.start_ns);
	return earliest_ns;
}

/*
 * The time before which ended records can belong to no step, neither one that waits nor one that is
 * still to come.
 */
static uint64_t horizon(const struct merge_process *process)
{
	return earliest_start(process, attribution__next_start(process->attribution));
}

static int drop_until(struct merge_process *process, uint64_t until_ns)
{
	size_t gone = 0;

	attribution__forget(process->attribution, until_ns);
	while (gone < process->losses.count && process->losses.items[gone].end_ns <= until_ns)
		gone++;
	if (gone) {
		process->losses.count -= gone;
		memmove(process->losses.items, &process->losses.items[gone],
			process->losses.count * sizeof(*process->losses.items));
	}
	return gpu_join__drop_until(process->join, until_ns,
				    sub_saturating(process->flush.time_ns, process->timeout_ns),
				    process->counts, &process->left);
}

static int drop_to(struct merge_process *process, size_t count, uint64_t until_ns)
{
	return gpu_join__drop_to(process->join, count, until_ns, process->counts, &process->left);
}

/* Moves records into left until there is room for more; seals steps for it. */
static int make_records_room(struct merge_process *process)
{
	int err = resolve(process);

	keep_first(&err, drop_until(process, horizon(process)));
	if (gpu_join__count(process->join) > ROOMY_RECORDS)
		process->squeezed_ns = process->flush.sent_ns;
	/* First drop what is kept for threads whose steps are rare. */
	keep_first(&err, drop_to(process, ROOMY_RECORDS, earliest_start(process, UINT64_MAX)));
	while (gpu_join__count(process->join) > ROOMY_RECORDS && !TAILQ_EMPTY(&process->waiting)) {
		keep_first(&err, seal(process, TAILQ_FIRST(&process->waiting), GPU_SEAL_ROOM));
		keep_first(&err, drop_until(process, horizon(process)));
	}
	keep_first(&err, drop_to(process, ROOMY_RECORDS, UINT64_MAX));
	return err;
}

static int set_state(struct merge_process *process, const struct fbt_gpu_state *state)
{
	bool armed = state->status == FBT_GPU_ARMED;

	if (!armed)
		process->paused =
			state->status == FBT_GPU_STALLED && (process->live || process->paused);
	if (armed == process->live)
		return 0;
	process->live = armed;
	if (!armed) {
		process->ended_ns = state->time_ns;
		return seal_all(process, GPU_SEAL_ENDED);
	}
	process->armed = true;
	process->armed_ns = state->time_ns;
	process->last = false;
	/* A shim that goes on was not armed anew, and its totals go on too. */
	if (process->paused)
		return 0;
	hidden_work__begin(&process->hidden, state->time_ns);
	process->flush = process->shared = (struct fbt_gpu_flush){0};
	return 0;
}

static int take_flush(struct merge_process *process, const struct fbt_gpu_flush *flush)
{
	struct fbt_gpu_flush before = process->flush, *now = &process->flush;
	struct held_step *held;
	int err = 0;

	*now = *flush;
	now->time_ns = max_u64(now->time_ns, before.time_ns);
	/* A flush cannot be sent before what it covers. */
	now->sent_ns = max_u64(now->sent_ns, now->time_ns);
	process->last |= flush->last;
	gpu_join__flush(process->join, now->time_ns);
	if (flush->cupti_dropped > before.cupti_dropped || flush->unknown > before.unknown ||
	    without_room(flush) > without_room(&before))
		err = note_loss(process, (struct gpu_interval){before.time_ns, now->sent_ns});
	keep_first(&err, resolve(process));
	TAILQ_FOREACH(held, &process->waiting, in_process)
	held->flushes += is_flushed(process, held);
	keep_first(&err, seal_ready(process));
	/* A flush later than it could be: records that come late still find their calls. */
	keep_first(&err, drop_until(process, process->drop_ns));
	process->drop_ns = horizon(process);
	return err;
}

static int add_record(struct merge_process *process, const struct fbt_header *event)
{
	const struct fbt_gpu_api *api = (const struct fbt_gpu_api *)event;
	int err = 0;

	if (gpu_join__count(process->join) >= MERGE_RECORDS_MAX)
		err = make_records_room(process);
	if (event->type == FBT_EVENT_GPU_API && process->patience < PATIENCE_MAX &&
	    attribution__is_late(process->attribution, api->tid, api->start_ns))
		process->late = true;
	if (event->type == FBT_EVENT_GPU_WORK)
		hidden_work__note(&process->hidden, (const struct fbt_gpu_work *)event);
	keep_first(&err, gpu_join__add(process->join, event, process->counts));
	return err;
}

/* A record of any type. -ENOMEM: it is lost, and steps of that time are not complete. */
static int take_event(struct merge_process *process, const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_GPU_STATE:
		return set_state(process, (const struct fbt_gpu_state *)event);
	case FBT_EVENT_GPU_NAME:
		attribution__rename(process->attribution, ((const struct fbt_gpu_name *)event)->id);
		return 0;
	case FBT_EVENT_GPU_DEVICE:
		return 0;
	case FBT_EVENT_GPU_FLUSH:
		return take_flush(process, (const struct fbt_gpu_flush *)event);
	default:
		return add_record(process, event);
	}
}

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
	step_clear(&held->step);
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
		process_free(*process);
	vec_free(&merger->processes);
	tid_map__free(merger->by_tgid);
	free(merger);
}

static int pass_batch(const struct merger *merger, const struct window *window,
		      const struct gpu_batch *batch)
{
	if (!merger->output.on_gpu || !gpu_records_count(batch->records))
		return 0;
	return merger->output.on_gpu(merger->output.ctx, window, batch);
}

static int pass_step(const struct merger *merger, const struct window *window, struct step *step)
{
	struct gpu_batch batch = {.tgid = step->record.tgid, .step = step->number};
	struct step_gpu *gpu = step->gpu;
	int err = merger->output.on_step(merger->output.ctx, window, step);

	if (!gpu)
		return err;
	batch.records = &gpu->records;
	keep_first(&err, pass_batch(merger, window, &batch));
	return err;
}

#define EMPTY(vec)                                                                                 \
	do {                                                                                       \
		(vec)->count = 0;                                                                  \
		if ((vec)->capacity > SPARE_RECORDS)                                               \
			vec_free(vec);                                                             \
	} while (0)

static int pass_left(const struct merger *merger, const struct window *window,
		     struct merge_process *process)
{
	struct gpu_records *left = &process->left;
	struct gpu_batch batch = {.tgid = process->tgid, .records = left};
	int err = pass_batch(merger, window, &batch);

	EMPTY(&left->works);
	EMPTY(&left->apis);
	EMPTY(&left->syncs);
	EMPTY(&left->overheads);
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

static size_t count_records(const struct held_step *held)
{
	return held->step.gpu ? gpu_records_count(&held->step.gpu->records) : 0;
}

/* Records that sealed steps hold while they wait for steps before them. */
static size_t sealed_records(const struct merger *merger)
{
	const struct held_step *held;
	size_t count = 0;

	STAILQ_FOREACH(held, &merger->held, in_all)
	count += count_records(held);
	return count;
}

static bool has_room(const struct merger *merger)
{
	return merger->steps <= MERGE_STEPS_MAX && merger->calls <= MERGE_CALLS_MAX;
}

static int seal_first(struct merger *merger, const struct window *window, enum gpu_seal reason)
{
	struct held_step *held = STAILQ_FIRST(&merger->held);
	int err = 0;

	if (!held->sealed)
		err = seal(held->process, held, reason);
	keep_first(&err, pass_first(merger, window));
	return err;
}

static int make_room(struct merger *merger, const struct window *window)
{
	size_t records = sealed_records(merger);
	int err = 0;

	while (!STAILQ_EMPTY(&merger->held) && (!has_room(merger) || records > MERGE_RECORDS_MAX)) {
		records -= count_records(STAILQ_FIRST(&merger->held));
		keep_first(&err, seal_first(merger, window, GPU_SEAL_ROOM));
	}
	keep_first(&err, pass_sealed(merger, window));
	return err;
}

/*
 * Passes the steps on that ended so long before a time that their flushes would have come. The
 * timeout of a step runs by the flushes of its own process, which may send none.
 */
static int pass_overdue(struct merger *merger, const struct window *window, uint64_t now_ns)
{
	const struct held_step *held;
	int err = 0;

	while ((held = STAILQ_FIRST(&merger->held)) &&
	       sub_saturating(now_ns, held->step.record.end_ns) >
		       add_saturating(merger->options.timeout_ns, MERGE_SILENCE_NS))
		keep_first(&err, seal_first(merger, window, GPU_SEAL_TIMEOUT));
	keep_first(&err, pass_sealed(merger, window));
	return err;
}

/* Steps keep their order without memory too. */
static int pass_unheld(struct merger *merger, const struct window *window, struct step *step)
{
	while (!STAILQ_EMPTY(&merger->held))
		seal_first(merger, window, GPU_SEAL_ROOM);
	pass_step(merger, window, step);
	return -ENOMEM;
}

static int hold_step(struct merger *merger, const struct window *window, struct step *step,
		     struct merge_process *process)
{
	struct held_step *held = calloc(1, sizeof(*held));
	uint64_t end_ns = step->record.end_ns;
	int err = 0;

	if (!held)
		return pass_unheld(merger, window, step);
	held->step = *step;
	step_hand_over(step);
	STAILQ_INSERT_TAIL(&merger->held, held, in_all);
	merger->steps++;
	merger->calls += held->step.calls.count;
	held->sealed = !process;
	if (process)
		err = add_step(process, held);
	keep_first(&err, pass_overdue(merger, window, end_ns));
	if (!has_room(merger))
		keep_first(&err, make_room(merger, window));
	return err;
}

int merger__push_step(struct merger *merger, struct window *window, struct step *step)
{
	struct merge_process *process = NULL;

	if (merger->processes.count)
		process = tid_map__get(merger->by_tgid, step->record.tgid);
	if (process && !covers(process, step))
		process = NULL;
	if (!process && STAILQ_EMPTY(&merger->held))
		return pass_step(merger, window, step);
	return hold_step(merger, window, step, process);
}

static int drop_all(struct merger *merger, const struct window *window,
		    struct merge_process *process)
{
	int err = drop_to(process, 0, UINT64_MAX);

	keep_first(&err, pass_left(merger, window, process));
	return err;
}

/* Records of processes that ended stay for steps that come late, until another process comes. */
static int drop_ended(struct merger *merger, const struct window *window)
{
	int err = 0;

	vec_for_each (process, &merger->processes) {
		if (!(*process)->live && TAILQ_EMPTY(&(*process)->waiting))
			keep_first(&err, drop_all(merger, window, *process));
	}
	return err;
}

static struct merge_process *add_process(struct merger *merger, struct window *window,
					 uint32_t tgid)
{
	struct merge_process *process;

	if (merger->options.strict)
		window->record.header.flags |= FBT_WINDOW_GPU_STRICT;
	process = process_new(tgid, &merger->options, window__is_gpu_strict(window));
	if (!process || tid_map__set(merger->by_tgid, tgid, process)) {
		process_free(process);
		return NULL;
	}
	if (vec_push(&merger->processes, process)) {
		tid_map__remove(merger->by_tgid, tgid);
		process_free(process);
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
	/* All records of fbt_gpu.h begin like this one. */
	uint32_t tgid = ((const struct fbt_gpu_state *)event)->tgid;
	struct merge_process *process = tid_map__get(merger->by_tgid, tgid);
	int err = 0;

	if (!process && !begins_process(event))
		return 0;
	if (!process && merger->processes.count >= GPU_PROCESSES_MAX)
		return -ENOSPC;
	if (!process) {
		err = drop_ended(merger, window);
		process = add_process(merger, window, tgid);
	}
	if (!process)
		return -ENOMEM;
	look_up(process, window);
	keep_first(&err, take_event(process, event));
	keep_first(&err, pass_sealed(merger, window));
	keep_first(&err, pass_left(merger, window, process));
	if (event->type == FBT_EVENT_GPU_FLUSH)
		keep_first(&err, make_room(merger, window));
	return err;
}

int merger__flush(struct merger *merger, struct window *window)
{
	int err = 0;

	vec_for_each (process, &merger->processes)
		keep_first(&err, seal_all(*process, GPU_SEAL_WINDOW_END));
	keep_first(&err, pass_sealed(merger, window));
	vec_for_each (process, &merger->processes)
		keep_first(&err, drop_all(merger, window, *process));
	return err;
}
