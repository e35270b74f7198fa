/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/join.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/arith.h"
#include "base/log.h"

/* Calls of one correlation id that are indexed: more than two are a wrap, or made up. */
#define CALLS_MAX 16

#define SLOTS_MIN 256 /* a power of two, as all sizes are */
#define BLOCK_IDS 8

/* What is known of one correlation id. A slot with neither calls nor waiting work is free. */
struct ids {
	uint32_t correlation;
	uint32_t call_count;
	struct join_record *calls; /* the latest first, linked by older */
	struct join_list waiting;  /* work whose call has not come */
};

/* A hash table with linear probing. */
struct id_table {
	struct ids *slots;
	size_t size;
	size_t count;
	uint64_t factor;
};

struct gpu_join {
	struct gpu_timeline *timelines[JOIN_KINDS];
	struct id_table by_id;
	struct join_list fresh;	  /* work that was not looked up yet */
	struct join_list orphans; /* work that names no call, or a wrong one */
	uint32_t turn;
	uint64_t gone_ns;	 /* latest end of what was dropped, or found no memory */
	uint64_t known_until_ns; /* where records without times are kept */
};

static bool is_free(const struct ids *ids)
{
	return !ids->calls && LIST_EMPTY(&ids->waiting);
}

/* Neighbouring ids are looked up together: BLOCK_IDS of them stay side by side. */
static size_t home_slot(const struct id_table *table, uint32_t correlation)
{
	size_t block = correlation / BLOCK_IDS * table->factor >> 32;

	return (block * BLOCK_IDS + correlation % BLOCK_IDS) & (table->size - 1);
}

/* The slot of an id, or the free one where it belongs. At least one slot is always free. */
static struct ids *find_slot(const struct id_table *table, uint32_t correlation)
{
	size_t i = home_slot(table, correlation);

	while (!is_free(&table->slots[i]) && table->slots[i].correlation != correlation)
		i = (i + 1) & (table->size - 1);
	return &table->slots[i];
}

/* The first entry of a list points back to its head. */
static void move_slot(struct ids *to, struct ids *from)
{
	*to = *from;
	if (!LIST_EMPTY(&to->waiting))
		LIST_FIRST(&to->waiting)->in_list.le_prev = &LIST_FIRST(&to->waiting);
	*from = (struct ids){0};
}

static int grow(struct id_table *table)
{
	struct id_table larger = *table;

	larger.size = table->size * 2;
	larger.slots = calloc(larger.size, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->size; i++) {
		if (!is_free(&table->slots[i]))
			move_slot(find_slot(&larger, table->slots[i].correlation),
				  &table->slots[i]);
	}
	free(table->slots);
	*table = larger;
	return 0;
}

static int init_table(struct id_table *table)
{
	/* The process chooses the ids, so it must not be able to tell which of them collide. */
	if (getrandom(&table->factor, sizeof(table->factor), GRND_NONBLOCK) < 0)
		table->factor = UINT64_C(0x9e3779b97f4a7c15);
	table->factor |= 1;
	table->size = SLOTS_MIN;
	table->slots = calloc(table->size, sizeof(*table->slots));
	return table->slots ? 0 : -ENOMEM;
}

/* Valid until the next touch or settle. NULL: nothing is known of the id. */
static struct ids *find_ids(const struct id_table *table, uint32_t correlation)
{
	struct ids *ids = find_slot(table, correlation);

	return is_free(ids) ? NULL : ids;
}

/* The same, added if it is not there; the caller must put something in. NULL: -ENOMEM. */
static struct ids *touch_ids(struct id_table *table, uint32_t correlation)
{
	struct ids *ids = find_slot(table, correlation);

	if (!is_free(ids))
		return ids;
	if (table->count >= table->size / 2) {
		if (grow(table))
			return NULL;
		ids = find_slot(table, correlation);
	}
	table->count++;
	*ids = (struct ids){.correlation = correlation};
	return ids;
}

/* Removes the slot if it has become free. */
static void settle_ids(struct id_table *table, struct ids *hole)
{
	size_t mask = table->size - 1;
	size_t i = hole - table->slots;

	if (!is_free(hole))
		return;
	table->count--;
	/* What was pushed past the hole moves back into it, so that no search ends early. */
	for (;;) {
		struct ids *next;

		i = (i + 1) & mask;
		next = &table->slots[i];
		if (is_free(next))
			return;
		if (((i - home_slot(table, next->correlation)) & mask) >=
		    ((size_t)(next - hole) & mask)) {
			move_slot(hole, next);
			hole = next;
		}
	}
}

static void give_work(struct join_record *call, struct join_record *work, uint32_t turn)
{
	work->call = call;
	LIST_INSERT_HEAD(&call->works, work, in_list);
	call->has_work = true;
	call->news = turn;
	if (work->work.end_ns > call->works_end_ns)
		call->works_end_ns = work->work.end_ns;
}

static bool is_driver(const struct join_record *call)
{
	return call->api.header.flags & FBT_GPU_API_DRIVER;
}

static void nest_if_inside(struct join_record *inner, struct join_record *outer, uint32_t turn)
{
	struct join_record *work;

	if (!is_driver(inner) || is_driver(outer) || inner->outer ||
	    inner->api.start_ns < outer->api.start_ns || inner->api.end_ns > outer->api.end_ns)
		return;
	inner->outer = outer;
	inner->api.header.flags |= FBT_GPU_API_NESTED;
	outer->has_work |= inner->has_work;
	while ((work = LIST_FIRST(&inner->works))) {
		LIST_REMOVE(work, in_list);
		give_work(outer, work, turn);
	}
}

/* Removes a call, if it is there; no other call points to it afterwards. */
static void forget_call(struct ids *ids, struct join_record *call)
{
	struct join_record **link = &ids->calls;

	while (*link) {
		if ((*link)->outer == call)
			(*link)->outer = NULL;
		if (*link == call) {
			*link = call->older;
			ids->call_count--;
		} else {
			link = &(*link)->older;
		}
	}
	call->older = NULL;
	call->outer = NULL;
}

static struct join_record *oldest_of(const struct ids *ids)
{
	struct join_record *call = ids->calls;

	while (call->older)
		call = call->older;
	return call;
}

static void add_to_ids(struct ids *ids, struct join_record *call, uint32_t turn)
{
	struct join_record **link, *oldest;

	for (link = &ids->calls; *link; link = &(*link)->older) {
		if ((*link)->api.start_ns < call->api.start_ns)
			break;
	}
	call->older = *link;
	*link = call;
	if (++ids->call_count > CALLS_MAX) {
		oldest = oldest_of(ids);
		forget_call(ids, oldest);
		if (oldest == call)
			return;
	}
	for (struct join_record *known = ids->calls; known; known = known->older) {
		nest_if_inside(call, known, turn);
		nest_if_inside(known, call, turn);
	}
}

/*
 * Picks one of the calls of an id, which must have some: the latest that began at or before
 * time_ns, or the call around that one; the first call if all began later.
 */
static struct join_record *pick_call(const struct ids *ids, uint64_t time_ns)
{
	struct join_record *call = ids->calls;

	while (call->api.start_ns > time_ns && call->older)
		call = call->older;
	return call->outer ? call->outer : call;
}

int join_record_copy(const struct join_record *record, struct gpu_records *to)
{
	switch (record->kind) {
	case JOIN_WORK:
		return vec_push(&to->works, record->work);
	case JOIN_CALL:
		return vec_push(&to->apis, record->api);
	case JOIN_SYNC:
		return vec_push(&to->syncs, record->sync);
	case JOIN_OVERHEAD:
		return vec_push(&to->overheads, record->overhead);
	case JOIN_KINDS:
		break;
	}
	return 0;
}

bool join_call_is_launch(const struct join_record *call)
{
	const struct fbt_gpu_api *api = &call->api;

	if (!api->correlation || api->result || api->header.flags & FBT_GPU_API_NESTED)
		return false;
	return api->api_class == FBT_GPU_API_LAUNCH || api->api_class == FBT_GPU_API_GRAPH ||
	       api->api_class == FBT_GPU_API_MEMCPY || api->api_class == FBT_GPU_API_MEMSET;
}

struct gpu_join *gpu_join__new(void)
{
	struct gpu_join *join = calloc(1, sizeof(*join));
	int err;

	if (!join)
		return NULL;
	err = init_table(&join->by_id);
	for (int i = 0; i < JOIN_KINDS; i++) {
		join->timelines[i] = gpu_timeline__new();
		if (!join->timelines[i])
			err = -ENOMEM;
	}
	if (!err)
		return join;
	gpu_join__free(join);
	return NULL;
}

static void release_call(struct join_record *call)
{
	if (!call->is_kept && LIST_EMPTY(&call->works))
		free(call);
}

static void take_from_call(struct join_record *work)
{
	LIST_REMOVE(work, in_list);
	if (work->call)
		release_call(work->call);
	work->call = NULL;
}

/* Takes the first record off a timeline; the caller frees it. NULL if there is none. */
static struct join_record *pop(struct gpu_timeline *timeline)
{
	const struct gpu_timeline_entry *first = gpu_timeline__first(timeline);
	struct join_record *record = first ? first->record : NULL;

	if (first)
		gpu_timeline__drop_first(timeline);
	return record;
}

void gpu_join__free(struct gpu_join *join)
{
	struct join_record *record;

	if (!join)
		return;
	/* Work first: calls may go once it has left them. */
	for (int i = 0; i < JOIN_KINDS; i++) {
		while (join->timelines[i] && (record = pop(join->timelines[i]))) {
			if (record->kind == JOIN_WORK)
				take_from_call(record);
			free(record);
		}
		gpu_timeline__free(join->timelines[i]);
	}
	free(join->by_id.slots);
	free(join);
}

size_t gpu_join__count(const struct gpu_join *join)
{
	size_t count = 0;

	for (int i = 0; i < JOIN_KINDS; i++)
		count += gpu_timeline__count(join->timelines[i]);
	return count;
}

/* Work that waited for the call is looked up again. */
static int index_call(struct gpu_join *join, struct join_record *call)
{
	struct ids *ids = touch_ids(&join->by_id, call->api.correlation);
	struct join_record *work;

	if (!ids)
		return -ENOMEM;
	add_to_ids(ids, call, join->turn);
	while ((work = LIST_FIRST(&ids->waiting))) {
		LIST_REMOVE(work, in_list);
		LIST_INSERT_HEAD(&join->fresh, work, in_list);
	}
	return 0;
}

static void list_work(struct gpu_join *join, struct join_record *record, struct gpu_counts *counts)
{
	const struct fbt_gpu_work *work = &record->work;

	LIST_INSERT_HEAD(work->correlation ? &join->fresh : &join->orphans, record, in_list);
	counts->unjoined += work->correlation != 0;
	counts->unmeasured += !work->end_ns;
	counts->unnamed += work->kind == FBT_GPU_KERNEL && !work->name;
	counts->kernels += work->kind == FBT_GPU_KERNEL;
	counts->memcpys += work->kind == FBT_GPU_MEMCPY;
	counts->memsets += work->kind == FBT_GPU_MEMSET;
	counts->graph_nodes += work->graph_node != 0;
	if (work->device < 64)
		counts->devices |= UINT64_C(1) << work->device;
}

/* Copies a record of one of the four types; false: it is of another. */
static bool read_event(const struct fbt_header *event, struct join_record *record)
{
	switch (event->type) {
	case FBT_EVENT_GPU_WORK:
		record->kind = JOIN_WORK;
		record->work = *(const struct fbt_gpu_work *)event;
		return true;
	case FBT_EVENT_GPU_API:
		record->kind = JOIN_CALL;
		record->api = *(const struct fbt_gpu_api *)event;
		record->api.header.flags &= ~FBT_GPU_API_NESTED;
		record->is_kept = true;
		return true;
	case FBT_EVENT_GPU_SYNC:
		record->kind = JOIN_SYNC;
		record->sync = *(const struct fbt_gpu_sync *)event;
		return true;
	case FBT_EVENT_GPU_OVERHEAD:
		record->kind = JOIN_OVERHEAD;
		record->overhead = *(const struct fbt_gpu_overhead *)event;
		return true;
	default:
		return false;
	}
}

static struct gpu_interval time_of(const struct join_record *record)
{
	switch (record->kind) {
	case JOIN_WORK:
		return (struct gpu_interval){record->work.start_ns, record->work.end_ns};
	case JOIN_CALL:
		return (struct gpu_interval){record->api.start_ns, record->api.end_ns};
	case JOIN_SYNC:
		return (struct gpu_interval){record->sync.start_ns, record->sync.end_ns};
	case JOIN_OVERHEAD:
		return (struct gpu_interval){record->overhead.start_ns, record->overhead.end_ns};
	case JOIN_KINDS:
		break;
	}
	return (struct gpu_interval){0, 0};
}

static int insert(struct gpu_join *join, struct join_record *record)
{
	struct gpu_interval time = time_of(record);

	/* CUPTI could not measure it. */
	if (!time.end_ns && (record->kind == JOIN_WORK || record->kind == JOIN_CALL))
		time.start_ns = time.end_ns = join->known_until_ns;
	return gpu_timeline__insert(join->timelines[record->kind], time.start_ns, time.end_ns,
				    record);
}

static int lose(struct gpu_join *join, const struct join_record *record)
{
	join->gone_ns = max_u64(join->gone_ns, time_of(record).end_ns);
	return -ENOMEM;
}

int gpu_join__add(struct gpu_join *join, const struct fbt_header *event, struct gpu_counts *counts)
{
	struct join_record *record = calloc(1, sizeof(*record));

	if (!record) {
		struct join_record lost = {0};

		return read_event(event, &lost) ? lose(join, &lost) : 0;
	}
	if (!read_event(event, record)) {
		free(record);
		return 0;
	}
	if (insert(join, record)) {
		lose(join, record);
		free(record);
		return -ENOMEM;
	}
	counts->apis += record->kind == JOIN_CALL;
	counts->syncs += record->kind == JOIN_SYNC;
	if (record->kind == JOIN_WORK)
		list_work(join, record, counts);
	/* A call without times belongs to no step: its work is attributed by its own times. */
	if (record->kind == JOIN_CALL && record->api.correlation && record->api.end_ns &&
	    index_call(join, record))
		return lose(join, record);
	return 0;
}

void gpu_join__flush(struct gpu_join *join, uint64_t time_ns)
{
	join->known_until_ns = time_ns;
	join->turn++;
}

/*
 * In a process in which CUPTI was used before, versions before 13.1 U1 number the work of graphs
 * wrongly: it names another call. If that launches no graph, it cannot be the right one.
 */
static bool is_misnumbered(const struct join_record *work, const struct join_record *call)
{
	return work->work.graph_node && call->api.api_class != FBT_GPU_API_GRAPH;
}

static void attach(struct gpu_join *join, const struct ids *ids, struct join_record *work,
		   uint64_t epsilon_ns, struct gpu_counts *counts)
{
	uint64_t latest_ns = UINT64_MAX;
	struct join_record *call;

	if (work->work.end_ns)
		latest_ns = add_saturating(work->work.start_ns, epsilon_ns);
	call = pick_call(ids, latest_ns);
	if (is_misnumbered(work, call)) {
		LIST_INSERT_HEAD(&join->orphans, work, in_list);
		counts->misnumbered++;
		return;
	}
	give_work(call, work, join->turn);
	counts->unjoined--;
	counts->joined++;
	counts->violations += call->api.start_ns > latest_ns;
}

int gpu_join__resolve(struct gpu_join *join, uint64_t epsilon_ns, struct gpu_counts *counts,
		      const struct join_record **late)
{
	struct join_record *work;

	*late = NULL;
	while ((work = LIST_FIRST(&join->fresh))) {
		struct ids *ids = touch_ids(&join->by_id, work->work.correlation);

		if (!ids)
			return -ENOMEM;
		LIST_REMOVE(work, in_list);
		if (!ids->calls) {
			LIST_INSERT_HEAD(&ids->waiting, work, in_list);
			continue;
		}
		attach(join, ids, work, epsilon_ns, counts);
		if (work->call && work->call->step)
			*late = work->call;
	}
	return 0;
}

const struct join_record *gpu_join__find_call(const struct gpu_join *join, uint32_t correlation,
					      uint64_t time_ns)
{
	const struct ids *ids = correlation ? find_ids(&join->by_id, correlation) : NULL;

	return ids && ids->calls ? pick_call(ids, time_ns) : NULL;
}

struct gpu_timeline_cursor gpu_join__overlapping(const struct gpu_join *join, enum join_kind kind,
						 uint64_t from_ns, uint64_t until_ns)
{
	return gpu_timeline__overlapping(join->timelines[kind], from_ns, until_ns);
}

struct join_record *join_next(struct gpu_timeline_cursor *cursor)
{
	const struct gpu_timeline_entry *entry = gpu_timeline__next(cursor);

	return entry ? entry->record : NULL;
}

bool gpu_join__has_news(const struct gpu_join *join, const struct join_record *call)
{
	return call->news == join->turn;
}

bool gpu_join__lost_since(const struct gpu_join *join, uint64_t time_ns)
{
	return join->gone_ns > time_ns;
}

static void leave_work(struct gpu_join *join, struct join_record *work)
{
	struct ids *ids = NULL;

	if (!work->call && work->work.correlation)
		ids = find_ids(&join->by_id, work->work.correlation);
	take_from_call(work);
	if (ids)
		settle_ids(&join->by_id, ids);
	free(work);
}

static void leave_call(struct gpu_join *join, struct join_record *call)
{
	struct ids *ids = NULL;

	if (call->api.correlation)
		ids = find_ids(&join->by_id, call->api.correlation);
	if (ids) {
		forget_call(ids, call);
		settle_ids(&join->by_id, ids);
	}
	call->is_kept = false;
	release_call(call);
}

static int drop_first(struct gpu_join *join, enum join_kind kind, struct gpu_counts *counts,
		      struct gpu_records *left)
{
	struct join_record *record = pop(join->timelines[kind]);
	int err = record->step ? 0 : join_record_copy(record, left);

	join->gone_ns = max_u64(join->gone_ns, time_of(record).end_ns);
	if (kind == JOIN_WORK) {
		counts->outside += !record->step && (!record->call || !record->call->step);
		leave_work(join, record);
	} else if (kind == JOIN_CALL) {
		leave_call(join, record);
	} else {
		free(record);
	}
	return err;
}

static bool still_waits(const struct gpu_timeline_entry *entry, uint64_t waiting_ns)
{
	const struct join_record *call = entry->record;

	return entry->end_ns > waiting_ns && !call->has_work && join_call_is_launch(call);
}

int gpu_join__drop_until(struct gpu_join *join, uint64_t until_ns, uint64_t waiting_ns,
			 struct gpu_counts *counts, struct gpu_records *left)
{
	const struct gpu_timeline_entry *first;
	int err = 0;

	for (enum join_kind kind = 0; kind < JOIN_KINDS; kind++) {
		while ((first = gpu_timeline__first(join->timelines[kind])) &&
		       first->end_ns <= until_ns) {
			if (kind == JOIN_CALL && still_waits(first, waiting_ns))
				break;
			keep_first(&err, drop_first(join, kind, counts, left));
		}
	}
	return err;
}

int gpu_join__drop_to(struct gpu_join *join, size_t count, uint64_t until_ns,
		      struct gpu_counts *counts, struct gpu_records *left)
{
	int err = 0;

	while (gpu_join__count(join) > count) {
		const struct gpu_timeline_entry *oldest = NULL;
		enum join_kind oldest_kind = JOIN_WORK;

		for (enum join_kind kind = 0; kind < JOIN_KINDS; kind++) {
			const struct gpu_timeline_entry *first =
				gpu_timeline__first(join->timelines[kind]);

			if (!first || (oldest && first->start_ns >= oldest->start_ns))
				continue;
			oldest = first;
			oldest_kind = kind;
		}
		if (oldest->end_ns > until_ns)
			return err;
		keep_first(&err, drop_first(join, oldest_kind, counts, left));
	}
	return err;
}
