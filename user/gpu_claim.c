/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_claim.h"

#include <stdlib.h>

#include "gpu_metrics.h"

enum comm {
	COMM_UNKNOWN = 0,
	COMM_NO = 1,
	COMM_YES = 2,
};

void gpu_claim_clear(struct gpu_claim *claim)
{
	vec_free(&claim->comm);
	vec_free(&claim->items);
	vec_free(&claim->apis);
	vec_free(&claim->syncs);
	vec_free(&claim->overheads);
}

void gpu_claim_rename(struct gpu_claim *claim, uint32_t name)
{
	if (name && name <= claim->comm.count)
		claim->comm.items[name - 1] = COMM_UNKNOWN;
}

/* Kernels are many, their names few. Without memory for it the name is read again each time. */
static bool is_comm(struct gpu_claim *claim, const struct fbt_gpu_work *work)
{
	uint32_t name = work->name;
	bool known;

	if (work->kind != FBT_GPU_KERNEL || !claim->process || !name || name > FBT_GPU_NAMES_MAX)
		return false;
	while (claim->comm.count < name && !vec_push(&claim->comm, COMM_UNKNOWN))
		;
	known = name <= claim->comm.count;
	if (known && claim->comm.items[name - 1])
		return claim->comm.items[name - 1] == COMM_YES;
	if (!gpu_name_is_comm(gpu_process_kernel_name(claim->process, name))) {
		if (known)
			claim->comm.items[name - 1] = COMM_NO;
		return false;
	}
	if (known)
		claim->comm.items[name - 1] = COMM_YES;
	return true;
}

/* A nested call is where the one around it is. */
static bool is_mine(const struct gpu_claim *claim, const struct join_call *call)
{
	const struct fbt_gpu_api *api = call->outer ? &call->outer->api : &call->api;

	return gpu_owner__has(claim->owner, api->tid, api->start_ns);
}

static void count_awaited(const struct gpu_claim *claim, const struct step *step,
			  const struct join_call *call, struct gpu_awaited *awaited)
{
	bool is_graph = call->api.api_class == FBT_GPU_API_GRAPH;
	bool goes_on = is_graph && call->news == claim->join->turn &&
		       call->works_end_ns > step->record.end_ns;

	if (!join_call_is_launch(call) || !is_mine(claim, call) || (call->has_work && !goes_on))
		return;
	if (!call->has_work && (is_graph || call->api.api_class == FBT_GPU_API_LAUNCH))
		awaited->launches++;
	else
		awaited->perhaps++;
}

int gpu_claim_await(struct gpu_claim *claim, const struct step *step, struct gpu_awaited *awaited)
{
	struct gpu_timeline_cursor cursor = gpu_timeline__overlapping(
		claim->join->calls, step->record.start_ns, step->record.end_ns);
	const struct gpu_timeline_entry *entry;
	int err = gpu_owner__select(claim->owner, step);

	*awaited = (struct gpu_awaited){0};
	while (!err && (entry = gpu_timeline__next(&cursor)))
		count_awaited(claim, step, entry->record, awaited);
	return err;
}

static int add_item(struct gpu_claim *claim, const struct join_work *work, uint64_t number)
{
	struct gpu_item item = {.work = &work->work};

	item.api = work->call ? &work->call->api : NULL;
	item.mine = work->step == number;
	item.comm = is_comm(claim, &work->work);
	return vec_push(&claim->items, item);
}

/*
 * The work of a call that began in the step. What has a part in the step is found by its own time;
 * of others' work it matters what comes behind.
 */
static int take_works(struct gpu_claim *claim, const struct step *step,
		      const struct join_call *call, struct step_gpu *gpu)
{
	const struct fbt_step *record = &step->record;
	bool is_given = call->step == step->number;
	struct join_work *work;
	int err = 0;

	LIST_FOREACH(work, &call->works, in_list)
	{
		const struct fbt_gpu_work *measured = &work->work;

		if (is_given && !work->step)
			work->step = step->number;
		if (!measured->end_ns && work->step == step->number) {
			gpu->unmeasured++;
			err = vec_push(&gpu->works, *measured);
		} else if (measured->end_ns &&
			   !gpu_timeline_is_inside(measured->start_ns, measured->end_ns,
						   record->start_ns, record->end_ns) &&
			   (work->step == step->number || measured->start_ns >= record->end_ns)) {
			err = add_item(claim, work, step->number);
		}
		if (err)
			return err;
	}
	return 0;
}

static int take_calls(struct gpu_claim *claim, const struct step *step, struct step_gpu *gpu)
{
	struct gpu_timeline_cursor cursor = gpu_timeline__overlapping(
		claim->join->calls, step->record.start_ns, step->record.end_ns);
	const struct gpu_timeline_entry *entry;
	int err = 0;

	while (!err && (entry = gpu_timeline__next(&cursor))) {
		struct join_call *call = entry->record;
		const struct fbt_gpu_api *api = &call->api;

		/* Without times it is shown, and no more. */
		if (!api->end_ns)
			continue;
		if (!(api->header.flags & FBT_GPU_API_NESTED))
			err = vec_push(&claim->apis, api);
		if (err || api->start_ns < step->record.start_ns)
			continue;
		if (call->step && gpu_owner__has_alone(claim->owner, api->tid, api->start_ns))
			claim->is_damaged = true;
		if (!call->step && is_mine(claim, call)) {
			err = vec_push(&gpu->apis, *api);
			call->step = step->number;
		}
		if (!err)
			err = take_works(claim, step, call, gpu);
	}
	return err;
}

/* The end of the last work of the step; 0: it has none. */
static uint64_t last_end(const struct gpu_claim *claim)
{
	uint64_t end_ns = 0;

	vec_for_each (item, &claim->items) {
		if (item->mine && item->work->end_ns > end_ns)
			end_ns = item->work->end_ns;
	}
	return end_ns;
}

/*
 * Of the work behind the step, what was launched before it and waited in the queue all through it:
 * the step's own stands behind that, and what comes next after the step may be of it; and until the
 * last of its own has ended, all: the GPU is busy with that too. Then no more than a few pieces of
 * work that were launched later are looked through.
 */
#define LATER_MAX  64
#define BEHIND_MAX 16384

static int take_behind(struct gpu_claim *claim, const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct gpu_timeline_cursor cursor =
		gpu_timeline__overlapping(claim->join->works, record->end_ns, UINT64_MAX);
	const struct gpu_timeline_entry *entry;
	uint64_t until_ns = last_end(claim);
	size_t later = 0, taken = 0;
	int err = 0;

	while (!err && later < LATER_MAX && taken < BEHIND_MAX &&
	       (entry = gpu_timeline__next(&cursor))) {
		const struct join_work *work = entry->record;
		const struct fbt_gpu_api *api = work->call ? &work->call->api : NULL;
		bool is_later = !api || api->start_ns >= record->end_ns;

		if (!work->work.end_ns || work->work.start_ns < record->end_ns)
			continue;
		/* What was launched in the step is there. */
		if (api && !is_later && api->start_ns >= record->start_ns)
			continue;
		if (is_later && work->work.start_ns >= until_ns) {
			later++;
			continue;
		}
		taken++;
		err = add_item(claim, work, step->number);
	}
	return err;
}

static int compare_items(const void *left, const void *right)
{
	const struct gpu_item *a = left, *b = right;

	if (a->work->start_ns != b->work->start_ns)
		return a->work->start_ns < b->work->start_ns ? -1 : 1;
	return (a->work->end_ns > b->work->end_ns) - (a->work->end_ns < b->work->end_ns);
}

/* What was launched in the step and runs behind it follows in order mostly. */
static void sort_items(gpu_item_vec *items)
{
	for (size_t i = 1; i < items->count; i++) {
		if (compare_items(&items->items[i - 1], &items->items[i]) > 0) {
			qsort(items->items, items->count, sizeof(*items->items), compare_items);
			return;
		}
	}
}

static int take_items(struct gpu_claim *claim, const struct step *step, struct step_gpu *gpu)
{
	struct gpu_timeline_cursor cursor = gpu_timeline__overlapping(
		claim->join->works, step->record.start_ns, step->record.end_ns);
	const struct gpu_timeline_entry *entry;
	int err = 0;

	while (!err && (entry = gpu_timeline__next(&cursor))) {
		struct join_work *work = entry->record;

		if (!work->work.end_ns)
			continue;
		if (!work->call && !work->step &&
		    gpu_owner__has(claim->owner, 0, work->work.start_ns))
			work->step = step->number;
		err = add_item(claim, work, step->number);
	}
	if (!err)
		err = take_behind(claim, step);
	sort_items(&claim->items);
	for (size_t i = 0; !err && i < claim->items.count; i++) {
		if (claim->items.items[i].mine)
			err = vec_push(&gpu->works, *claim->items.items[i].work);
	}
	return err;
}

static bool is_sync_mine(const struct gpu_claim *claim, const struct step *step,
			 const struct fbt_gpu_sync *sync)
{
	const struct join_call *call =
		gpu_join__find_call(claim->join, sync->correlation, sync->start_ns);

	if (sync->start_ns < step->record.start_ns)
		return false;
	return call ? call->step == step->number : gpu_owner__has(claim->owner, 0, sync->start_ns);
}

static int take_syncs(struct gpu_claim *claim, const struct step *step, struct step_gpu *gpu)
{
	struct gpu_timeline_cursor cursor = gpu_timeline__overlapping(
		claim->join->syncs, step->record.start_ns, step->record.end_ns);
	const struct gpu_timeline_entry *entry;
	int err = 0;

	while (!err && (entry = gpu_timeline__next(&cursor))) {
		struct join_sync *sync = entry->record;

		err = vec_push(&claim->syncs, &sync->sync);
		if (err || sync->step || !is_sync_mine(claim, step, &sync->sync))
			continue;
		err = vec_push(&gpu->syncs, sync->sync);
		sync->step = step->number;
	}
	return err;
}

static int take_overheads(struct gpu_claim *claim, const struct step *step, struct step_gpu *gpu)
{
	struct gpu_timeline_cursor cursor = gpu_timeline__overlapping(
		claim->join->overheads, step->record.start_ns, step->record.end_ns);
	const struct gpu_timeline_entry *entry;
	int err = 0;

	while (!err && (entry = gpu_timeline__next(&cursor))) {
		struct join_overhead *overhead = entry->record;
		const struct fbt_gpu_overhead *record = &overhead->overhead;

		err = vec_push(&claim->overheads, record);
		if (err || overhead->step ||
		    !gpu_owner__has(claim->owner, record->tid, record->start_ns))
			continue;
		err = vec_push(&gpu->overheads, *record);
		overhead->step = step->number;
	}
	return err;
}

/* Gives back what was taken, so that it leaves as what no step launched. */
static void give_back(struct gpu_claim *claim, const struct step *step)
{
	uint64_t from_ns = step->record.start_ns, until_ns = step->record.end_ns;
	struct gpu_timeline_cursor calls =
		gpu_timeline__overlapping(claim->join->calls, from_ns, until_ns);
	struct gpu_timeline_cursor works =
		gpu_timeline__overlapping(claim->join->works, from_ns, until_ns);
	struct gpu_timeline_cursor syncs =
		gpu_timeline__overlapping(claim->join->syncs, from_ns, until_ns);
	struct gpu_timeline_cursor overheads =
		gpu_timeline__overlapping(claim->join->overheads, from_ns, until_ns);
	const struct gpu_timeline_entry *entry;
	struct join_work *work;

	while ((entry = gpu_timeline__next(&calls))) {
		struct join_call *call = entry->record;

		if (call->step == step->number)
			call->step = 0;
		LIST_FOREACH(work, &call->works, in_list)
		work->step = work->step == step->number ? 0 : work->step;
	}
	while ((entry = gpu_timeline__next(&works))) {
		work = entry->record;
		work->step = work->step == step->number ? 0 : work->step;
	}
	while ((entry = gpu_timeline__next(&syncs))) {
		struct join_sync *sync = entry->record;

		sync->step = sync->step == step->number ? 0 : sync->step;
	}
	while ((entry = gpu_timeline__next(&overheads))) {
		struct join_overhead *overhead = entry->record;

		overhead->step = overhead->step == step->number ? 0 : overhead->step;
	}
}

int gpu_claim_take(struct gpu_claim *claim, const struct step *step, struct step_gpu *gpu)
{
	struct gpu_metrics_input input = {.step = step};
	struct gpu_awaited awaited;
	int err = gpu_claim_await(claim, step, &awaited);

	claim->items.count = claim->apis.count = 0;
	claim->syncs.count = claim->overheads.count = 0;
	claim->is_damaged = false;
	if (err)
		return err;
	gpu->missing = awaited.launches;
	err = take_calls(claim, step, gpu);
	if (!err)
		err = take_items(claim, step, gpu);
	if (!err)
		err = take_syncs(claim, step, gpu);
	if (!err)
		err = take_overheads(claim, step, gpu);
	input.items = claim->items.items;
	input.item_count = claim->items.count;
	input.apis = claim->apis.items;
	input.api_count = claim->apis.count;
	input.syncs = claim->syncs.items;
	input.sync_count = claim->syncs.count;
	input.overheads = claim->overheads.items;
	input.overhead_count = claim->overheads.count;
	if (!err)
		err = gpu_metrics_compute(&input, gpu);
	if (err)
		give_back(claim, step);
	return err;
}
