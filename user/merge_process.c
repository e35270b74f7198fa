/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "merge_process.h"

#include <stdlib.h>
#include <string.h>

/* A process whose records come late has its steps wait for up to so many flushes. */
#define PATIENCE_MAX 8
/* Losses that are told apart; of more, the oldest become one. */
#define LOSSES_MAX 64
/* Once too much is kept, so much is left: not every record is to ask for room. */
#define ROOMY_RECORDS (MERGE_RECORDS_MAX / 8 * 7)

struct merge_process *merge_process__new(uint32_t tgid, bool strict, uint64_t timeout_ns)
{
	struct merge_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->tgid = tgid;
	process->timeout_ns = timeout_ns;
	process->patience = 1;
	process->counts = &process->spare_counts;
	TAILQ_INIT(&process->waiting);
	process->claim.join = gpu_join__new();
	process->claim.owner = gpu_owner__new(strict);
	if (process->claim.join && process->claim.owner)
		return process;
	merge_process__free(process);
	return NULL;
}

void merge_process__free(struct merge_process *process)
{
	if (!process)
		return;
	gpu_join__free(process->claim.join);
	gpu_owner__free(process->claim.owner);
	gpu_claim_clear(&process->claim);
	vec_free(&process->losses);
	vec_free(&process->left.works);
	vec_free(&process->left.apis);
	vec_free(&process->left.syncs);
	vec_free(&process->left.overheads);
	free(process);
}

void merge_process__look_up(struct merge_process *process, const struct window *window)
{
	struct gpu_process *known;

	if (process->claim.process)
		return;
	known = gpu_table_find(&window->gpus, process->tgid);
	if (!known)
		return;
	process->claim.process = known;
	known->counts = process->spare_counts;
	process->counts = &known->counts;
}

bool merge_process__covers(const struct merge_process *process, const struct step *step)
{
	return process->armed && step->record.end_ns > process->armed_ns &&
	       (process->live || step->record.start_ns < process->ended_ns);
}

static void keep_first(int *err, int result)
{
	if (!*err)
		*err = result;
}

static int set_state(struct merge_process *process, const struct fbt_gpu_state *state)
{
	bool armed = state->status == FBT_GPU_ARMED;

	if (armed == process->live)
		return 0;
	process->live = armed;
	if (!armed) {
		process->ended_ns = state->time_ns;
		return merge_process__seal_all(process, GPU_SEAL_ENDED);
	}
	process->armed = true;
	process->armed_ns = state->time_ns;
	process->last = false;
	process->flush = process->shared = (struct fbt_gpu_flush){0};
	return 0;
}

static int note_loss(struct merge_process *process, uint64_t from_ns, uint64_t until_ns)
{
	struct merge_loss *losses = process->losses.items;

	if (process->losses.count < LOSSES_MAX)
		return vec_push(&process->losses, ((struct merge_loss){from_ns, until_ns}));
	losses[0].until_ns = losses[1].until_ns;
	memmove(&losses[1], &losses[2], (LOSSES_MAX - 2) * sizeof(*losses));
	losses[LOSSES_MAX - 1] = (struct merge_loss){from_ns, until_ns};
	return 0;
}

static uint64_t growth(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static uint64_t without_room(const struct fbt_gpu_flush *flush)
{
	uint64_t sum;

	return __builtin_add_overflow(flush->ring_lost, flush->no_buffer, &sum) ? UINT64_MAX : sum;
}

/* That a step was sealed too early is learnt from what comes of it later. */
static int resolve(struct merge_process *process)
{
	const struct join_call *late;
	int err = gpu_join__resolve(process->claim.join, process->flush.clock_error_ns,
				    process->counts, &late);

	if (late && gpu_owner__is_late(process->claim.owner, late->api.tid, late->api.start_ns))
		process->late = true;
	if (process->late && process->patience < PATIENCE_MAX)
		process->patience *= 2;
	process->late = false;
	return err;
}

static int take_flush(struct merge_process *process, const struct fbt_gpu_flush *flush)
{
	struct fbt_gpu_flush before = process->flush;
	struct held_step *held;
	int err = 0;

	process->flush = *flush;
	if (flush->time_ns < before.time_ns)
		process->flush.time_ns = before.time_ns;
	/* A flush cannot be said before what it says. */
	if (process->flush.sent_ns < process->flush.time_ns)
		process->flush.sent_ns = process->flush.time_ns;
	process->last |= flush->last;
	process->claim.join->known_until_ns = process->flush.time_ns;
	process->claim.join->turn++;
	if (flush->cupti_dropped > before.cupti_dropped ||
	    without_room(flush) > without_room(&before))
		err = note_loss(process, before.time_ns, process->flush.sent_ns);
	keep_first(&err, resolve(process));
	TAILQ_FOREACH(held, &process->waiting, in_process)
	held->flushes += process->flush.time_ns >= held->step.record.end_ns;
	keep_first(&err, merge_process__seal_ready(process));
	keep_first(&err, merge_process__drop(process, false));
	return err;
}

static int add_record(struct merge_process *process, const struct fbt_header *event)
{
	const struct fbt_gpu_api *api = (const struct fbt_gpu_api *)event;
	int err = 0;

	if (gpu_join__count(process->claim.join) >= MERGE_RECORDS_MAX)
		err = merge_process__make_room(process);
	if (event->type == FBT_EVENT_GPU_API && process->patience < PATIENCE_MAX &&
	    gpu_owner__is_late(process->claim.owner, api->tid, api->start_ns))
		process->late = true;
	keep_first(&err, gpu_join__add(process->claim.join, event, process->counts));
	return err;
}

int merge_process__add(struct merge_process *process, const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_GPU_STATE:
		return set_state(process, (const struct fbt_gpu_state *)event);
	case FBT_EVENT_GPU_NAME:
		gpu_claim_rename(&process->claim, ((const struct fbt_gpu_name *)event)->id);
		return 0;
	case FBT_EVENT_GPU_DEVICE:
		return 0;
	case FBT_EVENT_GPU_FLUSH:
		return take_flush(process, (const struct fbt_gpu_flush *)event);
	default:
		return add_record(process, event);
	}
}

/* Nothing that the step may have had is missing. */
static bool is_complete(const struct merge_process *process, const struct step *step,
			const struct step_gpu *gpu)
{
	uint64_t start_ns = step->record.start_ns;

	if (gpu->sealed != GPU_SEAL_WATERMARK || gpu->missing || gpu->unmeasured ||
	    process->claim.is_damaged)
		return false;
	if (start_ns < process->armed_ns || start_ns < process->claim.join->gone_ns)
		return false;
	vec_for_each (loss, &process->losses) {
		if (loss->until_ns > start_ns)
			return false;
	}
	return true;
}

static void tell_losses(struct merge_process *process, struct step_gpu *gpu)
{
	const struct fbt_gpu_flush *flush = &process->flush, *shared = &process->shared;

	gpu->cupti_dropped = growth(flush->cupti_dropped, shared->cupti_dropped);
	gpu->ring_lost = growth(without_room(flush), without_room(shared));
	gpu->shim_ns = growth(flush->shim_ns, shared->shim_ns);
	gpu->clock_error_ns = flush->clock_error_ns;
	process->shared = *flush;
}

int merge_process__seal(struct merge_process *process, struct held_step *held, enum gpu_seal seal)
{
	struct step_gpu *gpu = calloc(1, sizeof(*gpu));
	int err = gpu ? gpu_claim_take(&process->claim, &held->step, gpu) : -ENOMEM;

	TAILQ_REMOVE(&process->waiting, held, in_process);
	held->sealed = true;
	if (err) {
		step_gpu_free(gpu);
		return err;
	}
	/* Of the others it was known that more may come. */
	if (seal == GPU_SEAL_WATERMARK)
		gpu_owner__seal(process->claim.owner);
	gpu->sealed = seal;
	gpu->complete = is_complete(process, &held->step, gpu);
	/* What is missing can only make it busier. */
	if (!gpu->complete && gpu->bound != GPU_BOUND_GPU)
		gpu->bound = GPU_BOUND_UNKNOWN;
	tell_losses(process, gpu);
	process->counts->steps++;
	process->counts->timeouts += seal != GPU_SEAL_WATERMARK;
	held->step.gpu = gpu;
	return 0;
}

/* Since the end of the step, as of the latest flush: what it passes may lie far behind. */
static uint64_t passed_ns(const struct merge_process *process, const struct held_step *held)
{
	return growth(process->flush.sent_ns, held->step.record.end_ns);
}

/* GPU_SEAL_COUNT: not yet. */
static enum gpu_seal judge(const struct merge_process *process, const struct held_step *held,
			   const struct gpu_awaited *awaited)
{
	bool is_late = passed_ns(process, held) >= process->timeout_ns;
	bool is_over = process->last || is_late;

	if (!awaited->launches && (is_over || held->flushes >= process->patience)) {
		if (!awaited->perhaps || is_over || held->flushes >= 2)
			return GPU_SEAL_WATERMARK;
	}
	if (is_late)
		return GPU_SEAL_TIMEOUT;
	return process->last ? GPU_SEAL_ENDED : GPU_SEAL_COUNT;
}

static int seal_if_ready(struct merge_process *process, struct held_step *held)
{
	struct gpu_awaited awaited;
	enum gpu_seal seal;
	int err;

	if (process->flush.time_ns < held->step.record.end_ns) {
		if (process->last)
			return merge_process__seal(process, held, GPU_SEAL_ENDED);
		if (passed_ns(process, held) >= process->timeout_ns)
			return merge_process__seal(process, held, GPU_SEAL_TIMEOUT);
		return 0;
	}
	err = gpu_claim_await(&process->claim, &held->step, &awaited);
	if (err)
		return err;
	seal = judge(process, held, &awaited);
	return seal == GPU_SEAL_COUNT ? 0 : merge_process__seal(process, held, seal);
}

int merge_process__seal_ready(struct merge_process *process)
{
	struct held_step *held = TAILQ_FIRST(&process->waiting), *next;
	int err = 0;

	for (; held; held = next) {
		next = TAILQ_NEXT(held, in_process);
		keep_first(&err, seal_if_ready(process, held));
	}
	return err;
}

int merge_process__seal_all(struct merge_process *process, enum gpu_seal seal)
{
	struct held_step *held;
	int err = resolve(process);

	while ((held = TAILQ_FIRST(&process->waiting))) {
		bool covered = process->flush.time_ns >= held->step.record.end_ns;
		struct gpu_awaited awaited = {0};

		keep_first(&err, gpu_claim_await(&process->claim, &held->step, &awaited));
		keep_first(&err, merge_process__seal(
					 process, held,
					 covered && !awaited.launches ? GPU_SEAL_WATERMARK : seal));
	}
	return err;
}

int merge_process__add_step(struct merge_process *process, struct held_step *held)
{
	int err = gpu_owner__add(process->claim.owner, &held->step);

	if (err) {
		held->sealed = true;
		return err;
	}
	held->process = process;
	held->flushes = process->flush.time_ns >= held->step.record.end_ns;
	TAILQ_INSERT_TAIL(&process->waiting, held, in_process);
	if (!process->live)
		return merge_process__seal_all(process, GPU_SEAL_ENDED);
	if (!held->flushes && !process->last)
		return 0;
	err = resolve(process);
	keep_first(&err, seal_if_ready(process, held));
	return err;
}

/* Of the steps that wait, and of a time. */
static uint64_t earliest_start(const struct merge_process *process, uint64_t earliest_ns)
{
	struct held_step *held;

	TAILQ_FOREACH(held, &process->waiting, in_process)
	{
		if (held->step.record.start_ns < earliest_ns)
			earliest_ns = held->step.record.start_ns;
	}
	return earliest_ns;
}

/* What ended by then no step that waits, or is yet to come, can have. */
static uint64_t horizon(const struct merge_process *process)
{
	return earliest_start(process, gpu_owner__next_start(process->claim.owner));
}

static int drop_until(struct merge_process *process, uint64_t until_ns)
{
	size_t gone = 0;

	gpu_owner__forget(process->claim.owner, until_ns);
	while (gone < process->losses.count && process->losses.items[gone].until_ns <= until_ns)
		gone++;
	if (gone) {
		process->losses.count -= gone;
		memmove(process->losses.items, &process->losses.items[gone],
			process->losses.count * sizeof(*process->losses.items));
	}
	return gpu_join__drop_until(process->claim.join, until_ns,
				    growth(process->flush.time_ns, process->timeout_ns),
				    process->counts, &process->left);
}

/* A flush later than it could: records that come late still find their calls. */
int merge_process__drop(struct merge_process *process, bool all)
{
	int err;

	if (all)
		return gpu_join__drop_to(process->claim.join, 0, UINT64_MAX, process->counts,
					 &process->left);
	err = drop_until(process, process->drop_ns);
	process->drop_ns = horizon(process);
	return err;
}

/* First goes what is kept for a step that may be under way: a thread whose steps are rare. */
int merge_process__make_room(struct merge_process *process)
{
	struct gpu_join *join = process->claim.join;
	int err = resolve(process);

	keep_first(&err, drop_until(process, horizon(process)));
	keep_first(&err, gpu_join__drop_to(join, ROOMY_RECORDS, earliest_start(process, UINT64_MAX),
					   process->counts, &process->left));
	while (gpu_join__count(join) > ROOMY_RECORDS && !TAILQ_EMPTY(&process->waiting)) {
		keep_first(&err, merge_process__seal(process, TAILQ_FIRST(&process->waiting),
						     GPU_SEAL_ROOM));
		keep_first(&err, drop_until(process, horizon(process)));
	}
	keep_first(&err, gpu_join__drop_to(join, ROOMY_RECORDS, UINT64_MAX, process->counts,
					   &process->left));
	return err;
}
