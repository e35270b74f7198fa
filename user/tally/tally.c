/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/syscalls.h"
#include "output/slice.h"
#include "tally/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "judge/look.h"

static void add_stack(struct cause_tally *to, const struct window *window,
		      const struct fbt_stack *stack)
{
	char text[FRAMES_SIZE];

	if (!stack->count)
		return;
	frames_describe(stack, window, text, sizeof(text));
	for (int i = 0; i < CAUSE_STACKS; i++) {
		struct cause_stack *known = &to->stacks[i];

		if (known->steps && strcmp(known->text, text) != 0)
			continue;
		if (!known->steps++)
			frames_list_unnamed(stack, window, known->unnamed, sizeof(known->unnamed));
		memcpy(known->text, text, sizeof(text));
		return;
	}
}

const struct cause_stack *cause_tally_stack(const struct cause_tally *cause)
{
	const struct cause_stack *most = &cause->stacks[0];

	for (int i = 1; i < CAUSE_STACKS; i++)
		if (cause->stacks[i].steps > most->steps)
			most = &cause->stacks[i];
	return most->steps ? most : NULL;
}

static void add_to_cause(struct cause_tally *to, const struct window *window,
			 const struct step *step, const struct escalation *escalation)
{
	const struct cause *cause = &escalation->cause;
	struct fbt_stack holder = {.count = 0};
	uint64_t extra_ns = cause_cost_ns(cause);

	to->steps++;
	to->usual_known += cause->usual_known;
	to->is_usual += cause->is_usual;
	add_stack(to, window, &cause->stack);
	explained_tally_add(&to->explained, window, cause);
	to->extra_ns = add_saturating(to->extra_ns, extra_ns);
	to->estimated |= cause->estimated && cause->usual_known;
	if (to->worst_step && extra_ns <= to->worst_extra_ns)
		return;
	to->worst_step = step->number;
	to->worst_extra_ns = extra_ns;
	to->worst_total_ns = step_total_ns(step);
	cause_describe(cause, window, to->worst_evidence, sizeof(to->worst_evidence));
	frames_describe(&cause->waker_stack, window, to->worst_waker, sizeof(to->worst_waker));
	to->worst_after_ns = cause_ended_after_ns(cause);
	if (cause->holder_count)
		look_stack(&cause->holders[0], &holder);
	frames_describe(&holder, window, to->worst_holder, sizeof(to->worst_holder));
	look_describe_others(cause->others, cause->other_count, window, to->worst_others);
	to->worst_is_named = cause_names_culprit(cause);
	to->worst_calls_known = cause->calls_known;
	to->worst_is_known = cause->holder_count || cause->waker.tid || cause->woken.header.type ||
			     cause->peer.record.header.type;
}

static int add_entry(struct escalation_tally *tally, const struct window *window,
		     const struct step *step, const struct escalation *escalation)
{
	const struct fbt_step *record = &step->record;
	struct escalation_entry entry = {
		.number = escalation->number,
		.step = step->number,
		.start_ns = sub_saturating(record->start_ns, window->record.start_ns),
		.total_ns = step_total_ns(step),
		.budget_ns = escalation->budget_ns,
		.usual_ns = escalation->usual_ns,
		.cause_ns = escalation->cause.time_ns,
		.cause_usual_ns = escalation->cause.usual_ns,
		.kind = record->kind,
		.tgid = record->tgid,
		.tid = record->tid,
		.fired = escalation->fired,
		.reason = escalation->result.reason,
		.cause = escalation->cause.kind,
		.not_shown = escalation_not_shown_text(escalation),
		.judged = escalation->judged,
		.cause_usual_known = escalation->cause.usual_known,
		.complete = step->complete,
	};
	int err = 0;

	if (cause_has_stop(&escalation->cause)) {
		entry.stop = escalation->cause.stop;
		entry.stop_sender = escalation->cause.stop_sender;
	}
	if (escalation->cause.peer.record.header.type == FBT_EVENT_PEER) {
		entry.peer = escalation->cause.peer;
		entry.peer_ns = escalation->cause.peer_ns;
	}
	if (!escalation->cause.waker.tid)
		entry.faults = escalation->cause.fault_sites;
	if (tally->entries.count < ESCALATIONS_LISTED)
		err = vec_push(&tally->entries, entry);
	else
		tally->entries.items[tally->listed % ESCALATIONS_LISTED] = entry;
	if (!err)
		tally->listed++;
	return err;
}

int escalation_tally_add(struct escalation_tally *tally, const struct window *window,
			 const struct step *step, const struct escalation *escalation)
{
	if ((uint32_t)escalation->cause.kind < CAUSE_COUNT)
		add_to_cause(&tally->causes[escalation->cause.kind], window, step, escalation);
	return add_entry(tally, window, step, escalation);
}

void escalation_tally_clear(struct escalation_tally *tally)
{
	vec_free(&tally->entries);
	*tally = (struct escalation_tally){0};
}

static bool is_dearer(const struct cause_tally *left, const struct cause_tally *right)
{
	if (left->extra_ns != right->extra_ns)
		return left->extra_ns > right->extra_ns;
	return left->steps > right->steps;
}

int escalation_tally_sort(const struct escalation_tally *tally, enum cause_kind order[CAUSE_COUNT])
{
	const struct cause_tally *causes = tally->causes;
	int count = 0;

	for (int i = 0; i < CAUSE_COUNT; i++) {
		int place = count;

		if (!causes[i].steps)
			continue;
		while (place && is_dearer(&causes[i], &causes[order[place - 1]])) {
			order[place] = order[place - 1];
			place--;
		}
		order[place] = (enum cause_kind)i;
		count++;
	}
	return count;
}

const struct escalation_entry *escalation_tally_entry(const struct escalation_tally *tally,
						      size_t index)
{
	size_t count = tally->entries.count;

	if (index >= count)
		return NULL;
	if (count == ESCALATIONS_LISTED)
		index = (index + tally->listed) % ESCALATIONS_LISTED;
	return &tally->entries.items[index];
}

static void add(uint64_t *to, uint64_t what)
{
	*to = add_saturating(*to, what);
}

static uint64_t *figure_at(struct gpu_figures *figures, const struct json_member *member)
{
	return (uint64_t *)(void *)((char *)figures + member->offset);
}

static void free_gpu_kind(struct gpu_tally_kind *kind)
{
	if (!kind)
		return;
	stats__free(kind->busy);
	stats__free(kind->idle);
	stats__free(kind->launch_latency);
	stats__free(kind->launch_api);
	stats__free(kind->work);
	free(kind);
}

static struct gpu_tally_kind *new_gpu_kind(void)
{
	struct gpu_tally_kind *kind = calloc(1, sizeof(*kind));

	if (!kind)
		return NULL;
	kind->busy = stats__new();
	kind->idle = stats__new();
	kind->launch_latency = stats__new();
	kind->launch_api = stats__new();
	kind->work = stats__new();
	if (kind->busy && kind->idle && kind->launch_latency && kind->launch_api && kind->work)
		return kind;
	free_gpu_kind(kind);
	return NULL;
}

static void add_figures(struct gpu_tally_kind *kind, const struct gpu_figures *figures)
{
	for (int i = 0; i < GPU_TIMES; i++)
		add(figure_at(&kind->sum, &gpu_times[i]), json_member_get(&gpu_times[i], figures));
	for (int i = 0; i < GPU_WORK_COUNTS; i++)
		add(figure_at(&kind->sum, &gpu_work_counts[i]),
		    json_member_get(&gpu_work_counts[i], figures));
	for (int i = 0; i < GPU_WAIT_CALLS_MAX; i++) {
		const struct gpu_wait_call *call = &figures->wait_calls[i];

		if (call->nr < FBT_NR_COUNT)
			add(&kind->wait_ns[call->nr][call->blocked], call->ns);
	}
	stats__add(kind->busy, figures->busy_ns);
	stats__add(kind->idle, figures->idle_ns);
	if (!figures->launches)
		return;
	stats__add(kind->launch_latency, figures->launch_latency_ns);
	stats__add(kind->launch_api, figures->launch_api_ns);
	stats__add(kind->work, figures->work_ns);
}

static void add_thread(struct gpu_tally_kind *kind, const struct step_gpu *gpu)
{
	add(&kind->sync_ns, gpu->sync_ns);
	add(&kind->sync_useful_ns, gpu->sync_useful_ns);
	add(&kind->sync_tail_ns, gpu->sync_tail_ns);
	if (!gpu->calls_known)
		return;
	kind->calls_known_steps++;
	add(&kind->gpu_only_ns, gpu->gpu_only_ns);
	add(&kind->gpu_host_ns, gpu->gpu_host_ns);
	add(&kind->sync_spin_ns, gpu->sync_spin_ns);
	add(&kind->exposed_syscall_ns, gpu->exposed_syscall_ns);
	add(&kind->overlapped_syscall_ns, gpu->overlapped_syscall_ns);
	add(&kind->cuda_internal_ns, gpu->cuda_internal_ns);
}

static void add_quality(struct gpu_tally_kind *kind, const struct step_gpu *gpu)
{
	if (gpu->sealed < GPU_SEAL_COUNT)
		kind->sealed[gpu->sealed]++;
	add(&kind->joined, gpu->joined);
	add(&kind->by_time, gpu->by_time);
	add(&kind->unmeasured, gpu->unmeasured);
	add(&kind->missing, gpu->missing);
	add(&kind->violations, gpu->violations);
	add(&kind->cupti_overhead_ns, gpu->cupti_overhead_ns);
}

static uint64_t run_delay_of(const struct step *step)
{
	if (step->record.header.flags & FBT_STEP_SCHED_UNKNOWN)
		return UINT64_MAX;
	return step->record.run_delay_ns;
}

static void keep_slowest_on_gpu(struct gpu_tally_kind *kind, const struct step *step)
{
	struct gpu_tally_step entry = {
		.number = step->number,
		.total_ns = step_wall_ns(step),
		.run_delay_ns = run_delay_of(step),
		.figures = step->gpu->all,
		.bound = step->gpu->bound,
		.complete = step->gpu->complete,
	};
	int place = GPU_TALLY_SLOWEST;

	while (place && (!kind->slowest[place - 1].number ||
			 kind->slowest[place - 1].total_ns < entry.total_ns))
		place--;
	if (place == GPU_TALLY_SLOWEST)
		return;
	memmove(&kind->slowest[place + 1], &kind->slowest[place],
		(size_t)(GPU_TALLY_SLOWEST - 1 - place) * sizeof(entry));
	kind->slowest[place] = entry;
}

int gpu_tally_add(struct gpu_tally *tally, const struct step *step)
{
	struct gpu_tally_kind *kind;
	uint32_t index = step->record.kind;

	if (!step->gpu || index >= FBT_KIND_COUNT)
		return 0;
	if (!tally->kinds[index])
		tally->kinds[index] = new_gpu_kind();
	kind = tally->kinds[index];
	if (!kind)
		return -ENOMEM;
	kind->steps++;
	add_quality(kind, step->gpu);
	keep_slowest_on_gpu(kind, step);
	if (!step->gpu->complete)
		return 0;
	kind->complete++;
	add(&kind->total_ns, step_wall_ns(step));
	add(&kind->run_delay_ns, run_delay_of(step));
	if (step->gpu->bound < GPU_BOUND_COUNT)
		kind->bound[step->gpu->bound]++;
	add_figures(kind, &step->gpu->all);
	add_thread(kind, step->gpu);
	return 0;
}

void gpu_tally_clear(struct gpu_tally *tally)
{
	for (int i = 0; i < FBT_KIND_COUNT; i++)
		free_gpu_kind(tally->kinds[i]);
	*tally = (struct gpu_tally){0};
}

/* The calls with the longest mean wait. */
static void find_wait_calls(const struct gpu_tally_kind *kind, struct gpu_figures *mean)
{
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		for (int blocked = 0; blocked < 2; blocked++) {
			uint64_t ns = kind->wait_ns[nr][blocked] / kind->complete;
			int place = GPU_WAIT_CALLS_MAX;

			while (place && mean->wait_calls[place - 1].ns < ns)
				place--;
			if (place == GPU_WAIT_CALLS_MAX)
				continue;
			memmove(&mean->wait_calls[place + 1], &mean->wait_calls[place],
				(size_t)(GPU_WAIT_CALLS_MAX - 1 - place) *
					sizeof(mean->wait_calls[0]));
			mean->wait_calls[place] = (struct gpu_wait_call){nr, blocked, ns};
		}
	}
}

void gpu_tally_mean(const struct gpu_tally_kind *kind, struct gpu_figures *mean)
{
	*mean = (struct gpu_figures){0};
	if (!kind->complete)
		return;
	for (int i = 0; i < GPU_TIMES; i++)
		*figure_at(mean, &gpu_times[i]) =
			json_member_get(&gpu_times[i], &kind->sum) / kind->complete;
	find_wait_calls(kind, mean);
}

enum gpu_bound gpu_tally_bound(const struct gpu_tally_kind *kind)
{
	enum gpu_bound best = GPU_BOUND_UNKNOWN;

	for (int i = GPU_BOUND_UNKNOWN + 1; i < GPU_BOUND_COUNT; i++) {
		if (kind->bound[i] > (best ? kind->bound[best] : 0))
			best = (enum gpu_bound)i;
	}
	return best;
}

static void free_kind(struct tally_kind *kind)
{
	if (!kind)
		return;
	stats__free(kind->duration);
	stats__free(kind->gap);
	tail__free(kind->tail);
	vec_for_each (class, &kind->classes)
		tail__free(class->tail);
	vec_free(&kind->classes);
	shortage_tally_clear(&kind->shortage);
	free(kind);
}

static struct tally_kind *new_kind(void)
{
	struct tally_kind *kind = calloc(1, sizeof(*kind));

	if (!kind)
		return NULL;
	kind->duration = stats__new();
	kind->gap = stats__new();
	kind->tail = tail__new();
	if (kind->duration && kind->gap && kind->tail)
		return kind;
	free_kind(kind);
	return NULL;
}

static bool is_same_class(const struct step_class *left, const struct step_class *right)
{
	return left->by_argument == right->by_argument && left->bits == right->bits;
}

/* NULL: there is no room for another class, or no memory. */
static struct tally_class *find_class(struct tally_kind *kind, const struct step_class *class)
{
	struct tally_class fresh = {.class = *class};

	vec_for_each (known, &kind->classes) {
		if (is_same_class(&known->class, class))
			return known;
	}
	if (kind->classes.count == TALLY_CLASSES)
		return NULL;
	fresh.tail = tail__new();
	if (!fresh.tail || vec_push(&kind->classes, fresh)) {
		tail__free(fresh.tail);
		return NULL;
	}
	return &kind->classes.items[kind->classes.count - 1];
}

static int add_to_tails(struct tally_kind *kind, const struct step *step,
			const struct step_parts *parts)
{
	struct tally_class *class;
	int err;

	err = tail__add(kind->tail, parts, step_total_ns(step));
	if (err || !step->class.is_known)
		return err;
	class = find_class(kind, &step->class);
	if (!class)
		return 0;
	class->steps++;
	class->total_ns = add_saturating(class->total_ns, step_total_ns(step));
	return tail__add(class->tail, parts, step_total_ns(step));
}

static uint64_t take_all(uint64_t *ns)
{
	uint64_t taken = *ns;

	*ns = 0;
	return taken;
}

/* What followed its true end is in its parts too. */
static void leave_unmeasured(struct step_parts *parts)
{
	parts->known = false;
	for (int i = STEP_OWN + 1; i < STEP_PARTS; i++)
		parts->ns[STEP_OWN] = add_saturating(parts->ns[STEP_OWN], take_all(&parts->ns[i]));
}

static int add_parts(struct tally_kind *kind, const struct step *step)
{
	struct step_parts parts;
	int err;

	for (int i = 0; i < FBT_MAPPING_COUNT; i++)
		kind->faults_timed += step->record.faults.count[i];
	step_split(step, &parts);
	if (parts.known && step_end_is_late(step))
		leave_unmeasured(&parts);
	/*
	 * Of a step that is still open, own code and waits are not known: one name for all of it
	 * would be false.
	 */
	if (parts.known && !kind->parts_known++)
		kind->unmeasured_ns = take_all(&kind->parts_ns[STEP_OWN]);
	if (!parts.known && kind->parts_known)
		kind->unmeasured_ns =
			add_saturating(kind->unmeasured_ns, take_all(&parts.ns[STEP_OWN]));
	for (int i = 0; i < STEP_PARTS; i++)
		kind->parts_ns[i] = add_saturating(kind->parts_ns[i], parts.ns[i]);
	err = shortage_tally_add(&kind->shortage, step, &parts);
	if (err || !parts.known)
		return err;
	kind->faults_untimed += !parts.faults_known;
	kind->stops_unknown += !parts.stops_known;
	return step->record.end == FBT_END_RETURN ? add_to_tails(kind, step, &parts) : 0;
}

static void add_team(struct tally_kind *kind, const struct fbt_step *record)
{
	if (!(record->header.flags & FBT_STEP_TEAM_TIMED))
		return;
	kind->team_steps++;
	kind->team_ns = add_saturating(kind->team_ns, record->team_ns);
	kind->team_cpu_ns = add_saturating(kind->team_cpu_ns, record->team_cpu_ns);
	kind->team_delay_ns = add_saturating(kind->team_delay_ns, record->team_delay_ns);
}

static void add_stalls(struct tally_kind *kind, const struct step *step)
{
	const struct fbt_stalls *stalls = &step->stalls.record;
	struct tally_stalls *to = &kind->stalls;
	struct step_parts parts;

	if (!step->stalls.gil_known && !step->stalls.gc_known)
		return;
	step_split(step, &parts);
	to->gil_steps += step->stalls.gil_known;
	to->gil_ns = add_saturating(to->gil_ns, step_gil_ns(step, &parts));
	to->gil_waits += stalls->gil_waits;
	to->gc_steps += step->stalls.gc_known;
	to->gc_ns = add_saturating(to->gc_ns, step_gc_ns(step, &parts));
	to->gc_count += stalls->gc_count;
	if (stalls->gc_longest_ns <= to->gc_longest_ns)
		return;
	to->gc_longest_ns = stalls->gc_longest_ns;
	to->gc_generation = stalls->gc_generation;
}

static void add_sums(struct tally_kind *kind, const struct fbt_step *record)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		const struct fbt_sum *from = &record->sums[i];
		struct fbt_sum *to = &kind->sums[i];

		to->ns = add_saturating(to->ns, from->ns);
		to->calls = add_saturating(to->calls, from->calls);
		to->errors = add_saturating(to->errors, from->errors);
		if (from->max_ns > to->max_ns)
			to->max_ns = from->max_ns;
	}
}

static void add_args(struct tally_kind *kind, const struct fbt_step *record)
{
	for (int i = 0; i < FBT_ARG_COUNT; i++) {
		struct tally_arg *arg = &kind->args[i];
		int64_t value = record->args[i];

		if (!(record->arg_mask & 1u << i))
			continue;
		if (!arg->count || value < arg->min)
			arg->min = value;
		if (!arg->count || value > arg->max)
			arg->max = value;
		arg->sum += (long double)value;
		arg->count++;
	}
}

static void keep_slowest(struct tally_kind *kind, const struct window *window,
			 const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct tally_step entry = {
		.number = step->number,
		.total_ns = step_total_ns(step),
		.start_ns = sub_saturating(record->start_ns, window->record.start_ns),
		.compute_ns = step_compute_ns(step),
		.usual_ns = step->class.usual_ns,
		.end = record->end,
		.kind = record->kind,
		.tgid = record->tgid,
		.tid = record->tid,
		.complete = step->complete,
	};
	int place = TALLY_SLOWEST;
	struct step_parts parts;

	while (place && (!kind->slowest[place - 1].number ||
			 kind->slowest[place - 1].total_ns < entry.total_ns))
		place--;
	if (place == TALLY_SLOWEST)
		return;
	step_split(step, &parts);
	entry.own_ns = parts.ns[STEP_OWN];
	entry.parts_known = parts.known && !step_end_is_late(step);
	entry.arg_mask = record->arg_mask;
	memcpy(entry.args, record->args, sizeof(entry.args));
	if (record->header.flags & FBT_STEP_TEAM_KNOWN) {
		entry.starved_ns = record->starved_ns;
		entry.starved_tid = record->starved_tid;
	}
	for (int i = STEP_OWN + 1; i < STEP_PARTS; i++) {
		if (parts.ns[i] > entry.rest_ns) {
			entry.rest = (enum step_part)i;
			entry.rest_ns = parts.ns[i];
		}
	}
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (record->sums[i].ns >= entry.sum.ns) { /* the last of equals, as ferrum */
			entry.dominant = i;
			entry.sum = record->sums[i];
		}
	}
	memmove(&kind->slowest[place + 1], &kind->slowest[place],
		(size_t)(TALLY_SLOWEST - 1 - place) * sizeof(entry));
	kind->slowest[place] = entry;
}

/* Steps of another kind of run: no figure has them beside those that nothing slowed down. */
static int add_profiled(struct tally *tally, const struct step *step)
{
	struct stats **durations = &tally->profiled[step->record.kind];

	if (!*durations)
		*durations = stats__new();
	if (!*durations)
		return -ENOMEM;
	stats__add(*durations, step_total_ns(step));
	tally->profiled_open += step->record.end == FBT_END_TRUNCATED;
	return 0;
}

int tally_add(struct tally *tally, const struct window *window, const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct tally_kind *kind;
	uint64_t compute_ns = step_compute_ns(step);
	int err, result;

	if (record->kind >= FBT_KIND_COUNT || record->end >= TALLY_ENDS)
		return 0; /* decode refuses such a step */
	if (step_is_profiled(step))
		return add_profiled(tally, step);
	if (!tally->kinds[record->kind])
		tally->kinds[record->kind] = new_kind();
	kind = tally->kinds[record->kind];
	if (!kind)
		return -ENOMEM;

	kind->steps++;
	kind->ends[record->end]++;
	kind->incomplete += !step->complete;
	kind->untraced += !step_calls_known(step);
	kind->lost_calls = add_saturating(kind->lost_calls, record->lost_calls);
	if (record->end == FBT_END_RETURN)
		stats__add(kind->duration, step_total_ns(step));
	kind->total_ns = add_saturating(kind->total_ns, step_total_ns(step));
	kind->compute_ns = add_saturating(kind->compute_ns, compute_ns);
	err = add_parts(kind, step);
	if (compute_ns > kind->compute_max_ns)
		kind->compute_max_ns = compute_ns;
	if (!(record->header.flags & FBT_STEP_NO_GAP)) {
		stats__add(kind->gap, record->gap_ns);
		kind->gap_syscall_ns = add_saturating(kind->gap_syscall_ns, record->gap_syscall_ns);
	}
	if (!(record->header.flags & FBT_STEP_OTHER_UNKNOWN)) {
		kind->other_steps++;
		kind->other_ns = add_saturating(kind->other_ns, record->other_syscall_ns);
	}
	add_team(kind, record);
	add_stalls(kind, step);
	kind->polls += record->polls;
	if (record->threads > kind->threads_max)
		kind->threads_max = record->threads;
	add_sums(kind, record);
	add_args(kind, record);
	keep_slowest(kind, window, step);
	result = gpu_tally_add(&tally->gpu, step);
	err = err ? err : result;
	result = driver_tally_add(&tally->driver, window, step);
	return err ? err : result;
}

#define PART(part)	(1u << (part))
#define CALLS(category) PART(STEP_CALLS + FBT_##category)

/* The same where no syscall is known to have taken most of the time. */
static uint32_t parts_of_calls(enum cause_kind cause)
{
	switch (cause) {
	case CAUSE_LOCK_CONTENTION:
	case CAUSE_LATE_THREAD:
		return CALLS(FUTEX);
	case CAUSE_ALLOCATION_CHURN:
		return CALLS(MMAP);
	case CAUSE_DRIVER_CALLS:
		return CALLS(IOCTL);
	case CAUSE_FILE_IO:
		return CALLS(READ) | CALLS(WRITE);
	case CAUSE_TINY_WRITES:
		return CALLS(WRITE);
	case CAUSE_SOCKET_IO:
		return CALLS(READ) | CALLS(WRITE) | CALLS(OTHER);
	case CAUSE_THREAD_CHURN:
		return CALLS(MMAP) | CALLS(FUTEX) | CALLS(OTHER);
	case CAUSE_SLEEP:
	case CAUSE_OTHER_CALLS:
		return CALLS(OTHER);
	default:
		return 0;
	}
}

/*
 * The parts of a step that the time of a cause may be in, as bits. That of calls is in the part of
 * the syscall that took most of it, if that is known.
 */
static uint32_t parts_of(const struct window *window, const struct cause *cause)
{
	switch (cause->kind) {
	case CAUSE_RUN_QUEUE:
	case CAUSE_CPU_LIMIT:
		return PART(STEP_CPU_WAIT);
	case CAUSE_PAGE_FAULTS:
		return PART(STEP_FAULTS);
	case CAUSE_MEMORY_LIMIT:
		return PART(cause->faults_timed ? STEP_FAULTS : STEP_OFF_CPU);
	case CAUSE_STOPPED:
		return PART(STEP_STOPPED);
	case CAUSE_OFF_CPU:
	case CAUSE_STEAL:
		return PART(STEP_OFF_CPU);
	case CAUSE_AWAIT:
		return PART(STEP_AWAIT);
	case CAUSE_GIL:
		return CALLS(FUTEX);
	case CAUSE_GARBAGE_COLLECTION:
	case CAUSE_GPU_TRANSFER:
	case CAUSE_UNKNOWN:
	case CAUSE_COMPUTE:
		return 0;
	default:
		if (cause->nr_calls)
			return PART(STEP_CALLS + syscall_category(window->record.arch, cause->nr));
		return parts_of_calls(cause->kind);
	}
}

static void add_to_parts(struct tally_kind *kind, uint32_t parts, uint64_t ns)
{
	for (int i = 0; i < STEP_PARTS; i++) {
		if (parts & PART(i))
			kind->escalated_part_ns[i] = add_saturating(kind->escalated_part_ns[i], ns);
	}
}

/*
 * What is inferred is in the step's own code, not in the part that the cause belongs to. What
 * another thread lacked, for which the step waited, is in the step's own wait; and what page faults
 * waited for a disk, in a part of its own.
 */
static void add_escalated(struct tally_kind *kind, const struct window *window,
			  const struct cause *cause)
{
	uint64_t left_ns = sub_saturating(cause_extra_ns(cause), cause->inferred_ns);
	bool has_waited = cause->waker.ns && cause->waker.ns != cause->inferred_ns;

	if ((uint32_t)cause->kind < CAUSE_COUNT)
		kind->escalated_ns[cause->kind] =
			add_saturating(kind->escalated_ns[cause->kind], left_ns);
	switch (cause->kind) {
	case CAUSE_RUN_QUEUE:
	case CAUSE_CPU_LIMIT:
	case CAUSE_STOPPED:
	case CAUSE_PAGE_FAULTS:
	case CAUSE_MEMORY_LIMIT:
	case CAUSE_OFF_CPU:
	case CAUSE_STEAL:
		if (has_waited)
			add_to_parts(kind, CALLS(FUTEX), take_u64(cause->waker.ns, &left_ns));
		break;
	default:
		break;
	}
	if (cause->kind == CAUSE_PAGE_FAULTS || cause->kind == CAUSE_MEMORY_LIMIT)
		add_to_parts(kind, PART(STEP_DISK_WAIT),
			     take_u64(sub_saturating(cause->fault_wait_ns, cause->waker.fault_ns),
				      &left_ns));
	add_to_parts(kind, parts_of(window, cause), left_ns);
}

int tally_escalate(struct tally *tally, const struct window *window, const struct step *step,
		   const struct escalation *escalation)
{
	struct tally_kind *kind =
		step->record.kind < FBT_KIND_COUNT ? tally->kinds[step->record.kind] : NULL;

	for (int i = 0; kind && i < TALLY_SLOWEST; i++) {
		struct tally_step *slow = &kind->slowest[i];

		if (slow->number != step->number)
			continue;
		slow->is_escalated = true;
		slow->cause = escalation->cause.kind;
		slow->usual_ns = escalation->judged ? escalation->usual_ns : 0;
	}
	if (kind)
		add_escalated(kind, window, &escalation->cause);
	return escalation_tally_add(&tally->escalations, window, step, escalation);
}

void tally_clear(struct tally *tally)
{
	for (int i = 0; i < FBT_KIND_COUNT; i++) {
		free_kind(tally->kinds[i]);
		stats__free(tally->profiled[i]);
	}
	escalation_tally_clear(&tally->escalations);
	gpu_tally_clear(&tally->gpu);
	driver_tally_clear(&tally->driver);
	iteration_tally_clear(&tally->iterations);
	*tally = (struct tally){0};
}

int tally_main_kind(const struct tally *tally)
{
	int best = -1;

	for (int i = 1; i < FBT_KIND_COUNT; i++) {
		if (!tally->kinds[i])
			continue;
		if (best < 0 || tally->kinds[i]->total_ns > tally->kinds[best]->total_ns)
			best = i;
	}
	/* An interval has the time of all threads, so it says nothing of what matters most. */
	return best < 0 && tally->kinds[0] ? 0 : best;
}

bool tally_calls_known(const struct tally_kind *kind)
{
	return !kind->untraced;
}

uint64_t tally_syscall_ns(const struct tally_kind *kind)
{
	uint64_t sum = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		sum = add_saturating(sum, kind->sums[i].ns);
	return sum;
}

uint64_t tally_calls(const struct tally_kind *kind)
{
	uint64_t sum = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		sum = add_saturating(sum, kind->sums[i].calls);
	return sum;
}

uint64_t tally_cut_steps(const struct tally *tally, const struct window *window, uint32_t kind)
{
	const struct tally_kind *seen = tally->kinds[kind];

	/* Of one whose record was lost nothing is known. */
	return seen ? min_u64(window__cut_steps(window, kind), seen->ends[FBT_END_TRUNCATED]) : 0;
}

uint64_t tally_all_cut_steps(const struct tally *tally, const struct window *window)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < FBT_KIND_COUNT; i++)
		count += tally_cut_steps(tally, window, i);
	return count;
}

uint64_t tally_open_steps(const struct tally *tally, const struct window *window)
{
	uint64_t count = tally->profiled_open;

	for (int i = 0; i < FBT_KIND_COUNT; i++)
		if (tally->kinds[i])
			count += tally->kinds[i]->ends[FBT_END_TRUNCATED];
	return count - tally_all_cut_steps(tally, window);
}

uint64_t tally_window_ns(const struct window *window)
{
	return sub_saturating(window->end_ns, window->record.start_ns);
}

uint64_t tally_process_ns(const struct window *window, const struct process *process)
{
	uint64_t end_ns = process->exit_ns ? process->exit_ns : window->end_ns;
	uint64_t start_ns = process->record.start_ns;

	if (start_ns < window->record.start_ns)
		start_ns = window->record.start_ns;
	return sub_saturating(end_ns, start_ns);
}

void tally_add_garbage(struct tally_stalls *to, const struct tally_stalls *from)
{
	to->gc_ns = add_saturating(to->gc_ns, from->gc_ns);
	to->gc_count += from->gc_count;
	if (from->gc_longest_ns <= to->gc_longest_ns)
		return;
	to->gc_longest_ns = from->gc_longest_ns;
	to->gc_generation = from->gc_generation;
}
