/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_join.h"

#include <stdlib.h>

static void free_timeline(struct gpu_timeline *timeline)
{
	while (timeline && gpu_timeline__count(timeline)) {
		free(gpu_timeline__first(timeline)->record);
		gpu_timeline__drop_first(timeline);
	}
	gpu_timeline__free(timeline);
}

struct gpu_join *gpu_join__new(void)
{
	struct gpu_join *join = calloc(1, sizeof(*join));

	if (!join)
		return NULL;
	join->works = gpu_timeline__new();
	join->calls = gpu_timeline__new();
	join->syncs = gpu_timeline__new();
	join->overheads = gpu_timeline__new();
	join->map = join_map__new();
	LIST_INIT(&join->fresh);
	LIST_INIT(&join->orphans);
	if (join->works && join->calls && join->syncs && join->overheads && join->map)
		return join;
	gpu_join__free(join);
	return NULL;
}

static void release_call(struct join_call *call)
{
	if (!call->is_kept && LIST_EMPTY(&call->works))
		free(call);
}

static void take_from_call(struct join_work *work)
{
	LIST_REMOVE(work, in_list);
	if (work->call)
		release_call(work->call);
	work->call = NULL;
}

void gpu_join__free(struct gpu_join *join)
{
	if (!join)
		return;
	while (join->works && gpu_timeline__count(join->works)) {
		struct join_work *work = gpu_timeline__first(join->works)->record;

		gpu_timeline__drop_first(join->works);
		take_from_call(work);
		free(work);
	}
	gpu_timeline__free(join->works);
	free_timeline(join->calls);
	free_timeline(join->syncs);
	free_timeline(join->overheads);
	join_map__free(join->map);
	free(join);
}

size_t gpu_join__count(const struct gpu_join *join)
{
	return gpu_timeline__count(join->works) + gpu_timeline__count(join->calls) +
	       gpu_timeline__count(join->syncs) + gpu_timeline__count(join->overheads);
}

/* Asks again what waited for it. */
static int index_call(struct gpu_join *join, struct join_call *call)
{
	struct join_ids *ids = join_map__touch(join->map, call->api.correlation);

	if (!ids)
		return -ENOMEM;
	join_ids_add(ids, call, join->turn);
	while (!LIST_EMPTY(&ids->waiting)) {
		struct join_work *work = LIST_FIRST(&ids->waiting);

		LIST_REMOVE(work, in_list);
		LIST_INSERT_HEAD(&join->fresh, work, in_list);
	}
	return 0;
}

static int add_call(struct gpu_join *join, const struct fbt_gpu_api *api)
{
	struct join_call *call = calloc(1, sizeof(*call));

	if (!call)
		return -ENOMEM;
	call->api = *api;
	call->api.header.flags &= ~FBT_GPU_API_NESTED;
	call->is_kept = true;
	if (gpu_timeline__insert(join->calls, api->end_ns ? api->start_ns : join->known_until_ns,
				 api->end_ns ? api->end_ns : join->known_until_ns, call)) {
		free(call);
		return -ENOMEM;
	}
	/* Of one without times nobody knows whose step it is: its work goes by its own. */
	return api->correlation && api->end_ns ? index_call(join, call) : 0;
}

static int add_work(struct gpu_join *join, const struct fbt_gpu_work *record,
		    struct gpu_counts *counts)
{
	struct join_work *work = calloc(1, sizeof(*work));
	uint64_t start_ns = record->end_ns ? record->start_ns : join->known_until_ns;
	uint64_t end_ns = record->end_ns ? record->end_ns : join->known_until_ns;

	if (!work)
		return -ENOMEM;
	work->work = *record;
	if (gpu_timeline__insert(join->works, start_ns, end_ns, work)) {
		free(work);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(record->correlation ? &join->fresh : &join->orphans, work, in_list);
	counts->unjoined += record->correlation != 0;
	counts->unmeasured += !record->end_ns;
	counts->kernels += record->kind == FBT_GPU_KERNEL;
	counts->memcpys += record->kind == FBT_GPU_MEMCPY;
	counts->memsets += record->kind == FBT_GPU_MEMSET;
	return 0;
}

static int add_sync(struct gpu_join *join, const struct fbt_gpu_sync *record)
{
	struct join_sync *sync = calloc(1, sizeof(*sync));

	if (!sync)
		return -ENOMEM;
	sync->sync = *record;
	if (gpu_timeline__insert(join->syncs, record->start_ns, record->end_ns, sync)) {
		free(sync);
		return -ENOMEM;
	}
	return 0;
}

static int add_overhead(struct gpu_join *join, const struct fbt_gpu_overhead *record)
{
	struct join_overhead *overhead = calloc(1, sizeof(*overhead));

	if (!overhead)
		return -ENOMEM;
	overhead->overhead = *record;
	if (gpu_timeline__insert(join->overheads, record->start_ns, record->end_ns, overhead)) {
		free(overhead);
		return -ENOMEM;
	}
	return 0;
}

static void note_gone(struct gpu_join *join, uint64_t end_ns)
{
	if (end_ns > join->gone_ns)
		join->gone_ns = end_ns;
}

static int add_record(struct gpu_join *join, const struct fbt_header *event,
		      struct gpu_counts *counts)
{
	switch (event->type) {
	case FBT_EVENT_GPU_WORK:
		return add_work(join, (const struct fbt_gpu_work *)event, counts);
	case FBT_EVENT_GPU_API:
		counts->apis++;
		return add_call(join, (const struct fbt_gpu_api *)event);
	case FBT_EVENT_GPU_SYNC:
		counts->syncs++;
		return add_sync(join, (const struct fbt_gpu_sync *)event);
	case FBT_EVENT_GPU_OVERHEAD:
		return add_overhead(join, (const struct fbt_gpu_overhead *)event);
	default:
		return 0;
	}
}

static uint64_t end_of(const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_GPU_WORK:
		return ((const struct fbt_gpu_work *)event)->end_ns;
	case FBT_EVENT_GPU_API:
		return ((const struct fbt_gpu_api *)event)->end_ns;
	case FBT_EVENT_GPU_SYNC:
		return ((const struct fbt_gpu_sync *)event)->end_ns;
	case FBT_EVENT_GPU_OVERHEAD:
		return ((const struct fbt_gpu_overhead *)event)->end_ns;
	default:
		return 0;
	}
}

int gpu_join__add(struct gpu_join *join, const struct fbt_header *event, struct gpu_counts *counts)
{
	int err = add_record(join, event, counts);

	if (err)
		note_gone(join, end_of(event));
	return err;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

const struct join_call *gpu_join__find_call(const struct gpu_join *join, uint32_t correlation,
					    uint64_t time_ns)
{
	const struct join_ids *ids = correlation ? join_map__find(join->map, correlation) : NULL;

	return ids && ids->calls ? join_ids_pick(ids, time_ns) : NULL;
}

static void attach(struct gpu_join *join, const struct join_ids *ids, struct join_work *work,
		   uint64_t epsilon_ns, struct gpu_counts *counts)
{
	uint64_t latest_ns = UINT64_MAX;
	struct join_call *call;

	if (work->work.end_ns)
		latest_ns = add_saturating(work->work.start_ns, epsilon_ns);
	call = join_ids_pick(ids, latest_ns);
	join_call_give_work(call, work, join->turn);
	counts->unjoined--;
	counts->joined++;
	counts->violations += call->api.start_ns > latest_ns;
}

int gpu_join__resolve(struct gpu_join *join, uint64_t epsilon_ns, struct gpu_counts *counts,
		      const struct join_call **late)
{
	int err = 0;

	*late = NULL;
	while (!err && !LIST_EMPTY(&join->fresh)) {
		struct join_work *work = LIST_FIRST(&join->fresh);
		struct join_ids *ids;

		LIST_REMOVE(work, in_list);
		ids = join_map__touch(join->map, work->work.correlation);
		if (!ids) {
			LIST_INSERT_HEAD(&join->fresh, work, in_list);
			err = -ENOMEM;
		} else if (ids->calls) {
			attach(join, ids, work, epsilon_ns, counts);
			if (work->call->step)
				*late = work->call;
		} else {
			LIST_INSERT_HEAD(&ids->waiting, work, in_list);
		}
	}
	return err;
}

static int leave_work(struct gpu_join *join, struct join_work *work, struct gpu_counts *counts,
		      struct gpu_left *left)
{
	struct join_ids *ids = NULL;
	int err = 0;

	if (!work->step) {
		err = vec_push(&left->works, work->work);
		counts->outside += !work->call || !work->call->step;
	}
	if (!work->call && work->work.correlation)
		ids = join_map__find(join->map, work->work.correlation);
	take_from_call(work);
	if (ids)
		join_map__settle(join->map, ids);
	free(work);
	return err;
}

static int leave_call(struct gpu_join *join, struct join_call *call, struct gpu_left *left)
{
	struct join_ids *ids = NULL;
	int err = 0;

	if (!call->step)
		err = vec_push(&left->apis, call->api);
	if (call->api.correlation)
		ids = join_map__find(join->map, call->api.correlation);
	if (ids) {
		join_ids_forget(ids, call);
		join_map__settle(join->map, ids);
	}
	call->is_kept = false;
	release_call(call);
	return err;
}

static int leave_record(struct gpu_join *join, const struct gpu_timeline *timeline, void *record,
			struct gpu_counts *counts, struct gpu_left *left)
{
	struct join_overhead *overhead = record;
	struct join_sync *sync = record;
	int err = 0;

	if (timeline == join->works)
		return leave_work(join, record, counts, left);
	if (timeline == join->calls)
		return leave_call(join, record, left);
	if (timeline == join->syncs && !sync->step)
		err = vec_push(&left->syncs, sync->sync);
	if (timeline == join->overheads && !overhead->step)
		err = vec_push(&left->overheads, overhead->overhead);
	free(record);
	return err;
}

static int drop_first(struct gpu_join *join, struct gpu_timeline *timeline,
		      struct gpu_counts *counts, struct gpu_left *left)
{
	void *record = gpu_timeline__first(timeline)->record;

	gpu_timeline__drop_first(timeline);
	/* All of them begin with the record as it came. */
	note_gone(join, end_of(record));
	return leave_record(join, timeline, record, counts, left);
}

static bool still_waits(const struct gpu_timeline_entry *entry, uint64_t waiting_ns)
{
	const struct join_call *call = entry->record;

	return entry->end_ns > waiting_ns && !call->has_work && join_call_is_launch(call);
}

int gpu_join__drop_until(struct gpu_join *join, uint64_t until_ns, uint64_t waiting_ns,
			 struct gpu_counts *counts, struct gpu_left *left)
{
	struct gpu_timeline *const timelines[] = {join->works, join->calls, join->syncs,
						  join->overheads};
	const struct gpu_timeline_entry *first;
	int err = 0;

	for (size_t i = 0; i < sizeof(timelines) / sizeof(timelines[0]); i++) {
		while ((first = gpu_timeline__first(timelines[i])) && first->end_ns <= until_ns) {
			int result;

			if (timelines[i] == join->calls && still_waits(first, waiting_ns))
				break;
			result = drop_first(join, timelines[i], counts, left);
			err = err ? err : result;
		}
	}
	return err;
}

int gpu_join__drop_to(struct gpu_join *join, size_t count, uint64_t until_ns,
		      struct gpu_counts *counts, struct gpu_left *left)
{
	struct gpu_timeline *const timelines[] = {join->works, join->calls, join->syncs,
						  join->overheads};
	int err = 0;

	while (gpu_join__count(join) > count) {
		struct gpu_timeline *oldest = NULL;
		uint64_t oldest_ns = 0;
		int result;

		for (size_t i = 0; i < sizeof(timelines) / sizeof(timelines[0]); i++) {
			const struct gpu_timeline_entry *first = gpu_timeline__first(timelines[i]);

			if (!first || (oldest && first->start_ns >= oldest_ns))
				continue;
			oldest = timelines[i];
			oldest_ns = first->start_ns;
		}
		if (gpu_timeline__first(oldest)->end_ns > until_ns)
			return err;
		result = drop_first(join, oldest, counts, left);
		err = err ? err : result;
	}
	return err;
}
