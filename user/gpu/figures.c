/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/figures.h"

#include <math.h>

#include "base/arith.h"
#include "base/stats.h"
#include "gpu/launches.h"
#include "model/gpu.h"

enum direction { TO_DEVICE, TO_HOST, ON_DEVICE, BETWEEN_DEVICES, NO_DIRECTION };

static bool is_host_memory(uint8_t memory)
{
	return memory == FBT_GPU_MEMORY_PAGEABLE || memory == FBT_GPU_MEMORY_PINNED;
}

/*
 * The direction of a copy whose kind CUPTI does not tell. It is not known where managed memory is.
 */
static enum direction direction_by_memory(const struct fbt_gpu_work *work)
{
	bool from_host = is_host_memory(work->copy.source_memory);
	bool to_host = is_host_memory(work->copy.target_memory);
	bool from_device = work->copy.source_memory == FBT_GPU_MEMORY_DEVICE ||
			   work->copy.source_memory == FBT_GPU_MEMORY_ARRAY;
	bool to_device = work->copy.target_memory == FBT_GPU_MEMORY_DEVICE ||
			 work->copy.target_memory == FBT_GPU_MEMORY_ARRAY;

	if (from_host && to_device)
		return TO_DEVICE;
	if (from_device && to_host)
		return TO_HOST;
	return from_device && to_device ? ON_DEVICE : NO_DIRECTION;
}

static enum direction direction_of(const struct fbt_gpu_work *work)
{
	static const enum direction directions[FBT_GPU_COPY_KIND_COUNT] = {
		[FBT_GPU_COPY_H2D] = TO_DEVICE,	      [FBT_GPU_COPY_H2A] = TO_DEVICE,
		[FBT_GPU_COPY_D2H] = TO_HOST,	      [FBT_GPU_COPY_A2H] = TO_HOST,
		[FBT_GPU_COPY_D2D] = ON_DEVICE,	      [FBT_GPU_COPY_A2A] = ON_DEVICE,
		[FBT_GPU_COPY_A2D] = ON_DEVICE,	      [FBT_GPU_COPY_D2A] = ON_DEVICE,
		[FBT_GPU_COPY_P2P] = BETWEEN_DEVICES, [FBT_GPU_COPY_H2H] = NO_DIRECTION,
	};

	if (work->copy.kind == FBT_GPU_COPY_UNKNOWN)
		return direction_by_memory(work);
	return work->copy.kind < FBT_GPU_COPY_KIND_COUNT ? directions[work->copy.kind]
							 : NO_DIRECTION;
}

/* The length of a union of intervals, which must be added by start time. */
struct cover {
	uint64_t ns;
	uint64_t until_ns;
};

static void cover_add(struct cover *cover, struct gpu_interval interval)
{
	uint64_t from_ns = max_u64(interval.start_ns, cover->until_ns);

	if (interval.end_ns <= from_ns)
		return;
	cover->ns += interval.end_ns - from_ns;
	cover->until_ns = interval.end_ns;
}

struct covers {
	struct cover kernels, memcpys, memsets;
	struct cover directions[NO_DIRECTION + 1];
	struct cover transfers;
	struct cover comm, compute; /* kernels that communicate, and those that do not */
};

static void cover_work(struct covers *covers, const struct gpu_item *item, struct gpu_interval time)
{
	enum direction direction;

	switch (item->work->kind) {
	case FBT_GPU_KERNEL:
		cover_add(&covers->kernels, time);
		cover_add(item->comm ? &covers->comm : &covers->compute, time);
		break;
	case FBT_GPU_MEMCPY:
		direction = direction_of(item->work);
		cover_add(&covers->memcpys, time);
		cover_add(&covers->directions[direction], time);
		if (direction != ON_DEVICE && direction != NO_DIRECTION)
			cover_add(&covers->transfers, time);
		break;
	case FBT_GPU_MEMSET:
		cover_add(&covers->memsets, time);
		break;
	}
}

/* Copies without a direction are in memcpy_ns only. */
static void tell_covers(const struct covers *covers, struct gpu_figures *figures)
{
	figures->kernel_ns = covers->kernels.ns;
	figures->memcpy_ns = covers->memcpys.ns;
	figures->memset_ns = covers->memsets.ns;
	figures->h2d_ns = covers->directions[TO_DEVICE].ns;
	figures->d2h_ns = covers->directions[TO_HOST].ns;
	figures->d2d_ns = covers->directions[ON_DEVICE].ns;
	figures->p2p_ns = covers->directions[BETWEEN_DEVICES].ns;
	figures->transfer_ns = covers->transfers.ns;
	/* All busy time without a kernel is a copy or a memset. */
	figures->exposed_copy_ns = figures->busy_ns - figures->kernel_ns;
	figures->comm_ns = covers->comm.ns;
	figures->exposed_comm_ns = covers->kernels.ns - covers->compute.ns;
}

static void count_copy(const struct fbt_gpu_work *work, struct gpu_figures *figures)
{
	uint64_t *const bytes[NO_DIRECTION] = {
		[TO_DEVICE] = &figures->h2d_bytes,
		[TO_HOST] = &figures->d2h_bytes,
		[ON_DEVICE] = &figures->d2d_bytes,
		[BETWEEN_DEVICES] = &figures->p2p_bytes,
	};
	enum direction direction = direction_of(work);

	figures->memcpys++;
	figures->pageable += work->copy.source_memory == FBT_GPU_MEMORY_PAGEABLE ||
			     work->copy.target_memory == FBT_GPU_MEMORY_PAGEABLE;
	if (direction != NO_DIRECTION)
		*bytes[direction] = add_saturating(*bytes[direction], work->copy.bytes);
}

/* What the step launched. */
static void count_work(const struct fbt_gpu_work *work, struct gpu_figures *figures)
{
	bool first = !figures->kernels && !figures->memcpys && !figures->memsets;

	if (first)
		figures->view_start_ns = work->start_ns;
	figures->view_end_ns = max_u64(figures->view_end_ns, work->end_ns);
	figures->graph_nodes += work->graph_node != 0;
	switch (work->kind) {
	case FBT_GPU_KERNEL:
		figures->kernels++;
		break;
	case FBT_GPU_MEMCPY:
		count_copy(work, figures);
		break;
	case FBT_GPU_MEMSET:
		figures->memsets++;
		figures->memset_bytes = add_saturating(figures->memset_bytes, work->copy.bytes);
		break;
	}
}

static uint64_t view_busy(const struct gpu_figures_input *input, const struct gpu_figures *figures)
{
	struct gpu_interval view = {figures->view_start_ns, figures->view_end_ns};
	struct cover cover = {0};

	for (size_t i = 0; i < input->count; i++) {
		const struct fbt_gpu_work *work = input->items[i].work;

		cover_add(&cover,
			  gpu_interval_clip((struct gpu_interval){work->start_ns, work->end_ns},
					    view));
	}
	return cover.ns;
}

bool gpu_calls_known(const struct step *step)
{
	if (!step_calls_known(step) || !step->record.kind || step->calls_truncated ||
	    step->record.lost_calls)
		return false;
	/* The call that a step was cut off in has time, and is not counted. */
	if (!step->calls.count && step_syscall_ns(step))
		return false;
	return step_recorded_calls(step) >= step_calls(step);
}

int gpu_spans_make(const struct step *step, gpu_span_vec *spans)
{
	struct gpu_interval free_time = {step->record.start_ns, step->record.end_ns};
	int err = 0;

	if (!gpu_calls_known(step))
		return 0;
	vec_for_each (call, &step->calls) {
		struct gpu_interval time = {call->start_ns,
					    add_saturating(call->start_ns, call->duration_ns)};
		struct gpu_span span = {.time = gpu_interval_clip(time, free_time),
					.nr = call->nr,
					.blocked = call->header.flags & FBT_CALL_BLOCKED};

		if (!gpu_interval_ns(span.time))
			continue;
		free_time.start_ns = span.time.end_ns;
		err = vec_push(spans, span);
		if (err)
			break;
	}
	return err;
}

/* What the launching thread did while the GPU waited for it: a sum over gaps, by start. */
struct host_wait {
	const gpu_span_vec *spans; /* borrowed; NULL: not known */
	size_t next;
	struct top_keys calls;
	struct gpu_figures *figures; /* wait_* */
};

/* Key of a share: the call, and whether it blocked. */
static uint64_t key_of(const struct gpu_span *span)
{
	return (uint64_t)span->nr << 1 | span->blocked;
}

static void host_wait_begin(struct host_wait *wait, const gpu_span_vec *spans,
			    struct gpu_figures *figures)
{
	wait->spans = spans;
	wait->next = 0;
	wait->figures = figures;
	top_keys_clear(&wait->calls);
}

/* Adds a wait for the step thread (step_thread), or for another thread. */
static void host_wait_add(struct host_wait *wait, struct gpu_interval interval, bool step_thread)
{
	uint64_t left_ns = gpu_interval_ns(interval);
	const gpu_span_vec *spans = wait->spans;
	struct gpu_figures *figures = wait->figures;

	if (!left_ns)
		return;
	if (!spans || !step_thread) {
		figures->wait_unknown_ns += left_ns;
		return;
	}
	while (wait->next < spans->count &&
	       spans->items[wait->next].time.end_ns <= interval.start_ns)
		wait->next++;
	for (size_t i = wait->next; i < spans->count; i++) {
		const struct gpu_span *span = &spans->items[i];
		uint64_t ns = gpu_interval_ns(gpu_interval_clip(span->time, interval));

		if (span->time.start_ns >= interval.end_ns)
			break;
		*(span->blocked ? &figures->wait_blocked_ns : &figures->wait_syscall_ns) += ns;
		top_keys_add(&wait->calls, key_of(span), ns);
		left_ns -= ns;
	}
	figures->wait_user_ns += left_ns;
}

static bool is_before(const struct top_key *a, const struct top_key *b)
{
	return a->ns != b->ns ? a->ns > b->ns : a->key < b->key;
}

/* Among calls that took the same time, the lower number comes first. */
static void list_calls(const struct top_keys *calls, struct gpu_figures *figures)
{
	struct top_key top[GPU_WAIT_CALLS_MAX + 1];
	size_t count = 0;

	for (uint32_t i = 0; i < calls->count; i++) {
		size_t at = count;

		for (; at && is_before(&calls->items[i], &top[at - 1]); at--)
			top[at] = top[at - 1];
		top[at] = calls->items[i];
		if (count < GPU_WAIT_CALLS_MAX)
			count++;
	}
	for (size_t i = 0; i < count; i++)
		figures->wait_calls[i] = (struct gpu_wait_call){.nr = (uint32_t)(top[i].key >> 1),
								.blocked = top[i].key & 1,
								.ns = top[i].ns};
}

/* What the device waited for. */
struct idle {
	const struct gpu_figures_input *input;
	struct gpu_figures *figures;
	struct host_wait wait;
	/* Per item: the earliest end of the calls that launched this item or a later one. */
	uint64_t *launched_ns;
	uint64_t empty_ns; /* nothing in the queue */
};

static int idle_init(struct idle *idle, const struct gpu_figures_input *input,
		     struct gpu_figures *figures)
{
	uint64_t earliest_ns = UINT64_MAX;

	idle->input = input;
	idle->figures = figures;
	idle->empty_ns = 0;
	host_wait_begin(&idle->wait, input->spans, figures);
	idle->launched_ns = reallocarray(NULL, input->count + 1, sizeof(*idle->launched_ns));
	if (!idle->launched_ns)
		return -ENOMEM;
	idle->launched_ns[input->count] = UINT64_MAX;
	for (size_t i = input->count; i--;) {
		const struct fbt_gpu_api *call = gpu_item_call(&input->items[i]);

		if (call && gpu_item_takes_time(&input->items[i]))
			earliest_ns = min_u64(earliest_ns, call->end_ns);
		idle->launched_ns[i] = earliest_ns;
	}
	return 0;
}

/* The work that was launched first of all work that begins at the same time as item i. */
static const struct gpu_item *first_launched(const struct gpu_figures_input *input, size_t i)
{
	const struct gpu_item *first = &input->items[i];
	uint64_t start_ns = first->work->start_ns;

	for (; i < input->count && input->items[i].work->start_ns == start_ns; i++) {
		const struct gpu_item *item = &input->items[i];
		const struct fbt_gpu_api *call = gpu_item_call(item), *other = gpu_item_call(first);

		if (call && gpu_item_takes_time(item) &&
		    (!other || call->start_ns < other->start_ns))
			first = item;
	}
	return first;
}

static bool is_same_graph(const struct fbt_gpu_work *before, const struct fbt_gpu_work *next)
{
	return before && before->graph_node && next->graph_node && before->graph == next->graph;
}

static void charge_queue(struct idle *idle, uint64_t ns, const struct fbt_gpu_work *before,
			 const struct fbt_gpu_work *next)
{
	uint64_t limit_ns = is_same_graph(before, next) ? GPU_NODE_WAIT_NS : GPU_KERNEL_WAIT_NS;

	idle->figures->queue_ns += ns;
	*(ns < limit_ns ? &idle->figures->kernel_wait_ns : &idle->figures->dependency_ns) += ns;
}

static void charge_host_wait(struct idle *idle, struct gpu_interval gap, uint64_t until_ns,
			     bool step_thread)
{
	struct gpu_interval wait = {gap.start_ns, until_ns};

	if (!gpu_interval_ns(wait))
		return;
	idle->figures->host_wait_ns += gpu_interval_ns(wait);
	idle->figures->hta_host_wait_ns += gpu_interval_ns(gap);
	host_wait_add(&idle->wait, wait, step_thread);
}

/* Charges a gap. before, next: the work around it; NULL if there is none. */
static void charge(struct idle *idle, struct gpu_interval gap, const struct fbt_gpu_work *before,
		   const struct gpu_item *next)
{
	const struct fbt_gpu_api *call = next ? gpu_item_call(next) : NULL;
	uint64_t hidden_ns = clamp_u64(idle->input->hidden_until_ns, gap.start_ns, gap.end_ns);
	uint64_t begin_ns, end_ns;

	idle->figures->unattributed_ns += hidden_ns - gap.start_ns;
	gap.start_ns = hidden_ns;
	if (!gpu_interval_ns(gap))
		return;
	if (!next) {
		charge_host_wait(idle, gap, gap.end_ns, true);
		return;
	}
	if (!call) {
		idle->figures->unattributed_ns += gpu_interval_ns(gap);
		return;
	}
	begin_ns = clamp_u64(call->start_ns, gap.start_ns, gap.end_ns);
	end_ns = clamp_u64(call->end_ns, gap.start_ns, gap.end_ns);
	charge_host_wait(idle, gap, begin_ns, call->tid == idle->input->tid);
	idle->figures->launch_ns += end_ns - begin_ns;
	charge_queue(idle, gap.end_ns - end_ns, before, next->work);
}

/* i: the first item that begins at the end of the gap or later. */
static void count_empty(struct idle *idle, struct gpu_interval gap, size_t i)
{
	uint64_t launched_ns = idle->launched_ns[i];

	idle->empty_ns += clamp_u64(launched_ns, gap.start_ns, gap.end_ns) - gap.start_ns;
}

/* The gap at the end of the step: the next work may begin after the step. */
static void charge_tail(struct idle *idle, uint64_t start_ns, const struct fbt_gpu_work *before,
			size_t i)
{
	const struct gpu_figures_input *input = idle->input;
	struct gpu_interval gap = {start_ns, input->step.end_ns};
	const struct gpu_item *next = NULL;

	if (!gpu_interval_ns(gap))
		return;
	count_empty(idle, gap, i);
	for (; !next && i < input->count; i++) {
		const struct fbt_gpu_api *call = gpu_item_call(&input->items[i]);

		if (call && call->start_ns < gap.end_ns && gpu_item_takes_time(&input->items[i]))
			next = first_launched(input, i);
	}
	charge(idle, gap, before, next);
}

static void tell_idle(struct idle *idle)
{
	struct gpu_figures *figures = idle->figures;

	list_calls(&idle->wait.calls, figures);
	figures->idle_ns = gpu_interval_ns(idle->input->step) - figures->busy_ns;
	figures->idle_empty =
		figures->idle_ns ? (double)idle->empty_ns / (double)figures->idle_ns : (double)NAN;
}

/* Walks the work by start: lengths of unions, and the gaps between. */
static void walk(struct idle *idle)
{
	const struct gpu_figures_input *input = idle->input;
	struct gpu_figures *figures = idle->figures;
	struct cover busy = {.until_ns = input->step.start_ns};
	const struct fbt_gpu_work *before = NULL;
	struct covers covers = {0};
	size_t i;

	for (i = 0; i < input->count; i++) {
		const struct gpu_item *item = &input->items[i];
		struct gpu_interval time = {item->work->start_ns, item->work->end_ns};
		struct gpu_interval gap = {busy.until_ns, time.start_ns};

		if (time.start_ns >= input->step.end_ns)
			break;
		time = gpu_interval_clip(time, input->step);
		if (!gpu_interval_ns(time))
			continue;
		if (gpu_interval_ns(gap)) {
			count_empty(idle, gap, i);
			charge(idle, gap, before, first_launched(input, i));
		}
		if (time.end_ns > busy.until_ns)
			before = item->work;
		cover_add(&busy, time);
		cover_work(&covers, item, time);
		figures->work_sum_ns = add_saturating(figures->work_sum_ns, gpu_interval_ns(time));
	}
	charge_tail(idle, busy.until_ns, before, i);
	figures->busy_ns = busy.ns;
	tell_covers(&covers, figures);
	tell_idle(idle);
}

int gpu_figures_compute(const struct gpu_figures_input *input, struct gpu_figures *figures)
{
	struct idle idle;
	int err = idle_init(&idle, input, figures);

	if (err)
		return err;
	walk(&idle);
	free(idle.launched_ns);
	for (size_t i = 0; i < input->count; i++) {
		if (input->items[i].mine)
			count_work(input->items[i].work, figures);
	}
	figures->view_busy_ns = view_busy(input, figures);
	return gpu_launches_compute(input->items, input->count, input->step, figures);
}
