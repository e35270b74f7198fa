/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/claim.h"

#include <stdlib.h>

#include "base/arith.h"
#include "base/vec.h"
#include "gpu/metrics.h"
#include "gpu/timeline.h"

/* A thread without a step for so long, while others had some, is not waited for any more. */
#define IDLE_NS 10000000000ull

/*
 * Bounds of the search after a step's end: pieces of work that were launched later, and pieces
 * that the step is given.
 */
#define LATER_MAX 64
#define AFTER_MAX 16384

#define CAPTURING_MAX 8

enum comm { COMM_UNKNOWN = 0, COMM_NO = 1, COMM_YES = 2 };

/* A step that has ended. */
struct span {
	uint64_t number;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t tid;
	bool whole; /* an interval: of all threads */
	bool sealed;
};

struct thread_end {
	uint32_t tid;
	uint64_t end_ns; /* of its last step */
};

struct attribution {
	bool strict;
	struct gpu_join *join;
	const struct gpu_process *process; /* for names; NULL: none are known */
	uint64_t hidden_until_ns;	   /* gpu/hidden.h */
	VEC(unsigned char) comm;	   /* enum comm by name id - 1 */

	struct gpu_timeline *spans; /* of struct span */
	VEC(struct thread_end) threads;
	uint64_t latest_ns; /* end of any step */
	uint64_t sealed_ns; /* … that is sealed */

	/* The step at hand. */
	struct span selected;
	struct span *own;	 /* its entry in spans; NULL: dropped */
	VEC(struct span) rivals; /* steps that overlap it */
	VEC(struct gpu_item) items;
	VEC(const struct fbt_gpu_api *) apis;
	VEC(const struct fbt_gpu_sync *) syncs;
	VEC(const struct fbt_gpu_overhead *) overheads;
	bool is_damaged;
};

struct attribution *attribution__new(bool strict)
{
	struct attribution *attribution = calloc(1, sizeof(*attribution));

	if (!attribution)
		return NULL;
	attribution->strict = strict;
	attribution->join = gpu_join__new();
	attribution->spans = gpu_timeline__new();
	if (attribution->join && attribution->spans)
		return attribution;
	attribution__free(attribution);
	return NULL;
}

static void drop_first_span(struct attribution *attribution)
{
	struct span *span = gpu_timeline__first(attribution->spans)->record;

	gpu_timeline__drop_first(attribution->spans);
	if (span == attribution->own)
		attribution->own = NULL;
	free(span);
}

void attribution__free(struct attribution *attribution)
{
	if (!attribution)
		return;
	while (attribution->spans && gpu_timeline__count(attribution->spans))
		drop_first_span(attribution);
	gpu_timeline__free(attribution->spans);
	gpu_join__free(attribution->join);
	vec_free(&attribution->comm);
	vec_free(&attribution->threads);
	vec_free(&attribution->rivals);
	vec_free(&attribution->items);
	vec_free(&attribution->apis);
	vec_free(&attribution->syncs);
	vec_free(&attribution->overheads);
	free(attribution);
}

struct gpu_join *attribution__join(const struct attribution *attribution)
{
	return attribution->join;
}

void attribution__set_process(struct attribution *attribution, const struct gpu_process *process)
{
	attribution->process = process;
}

void attribution__set_hidden(struct attribution *attribution, uint64_t until_ns)
{
	attribution->hidden_until_ns = until_ns;
}

void attribution__rename(struct attribution *attribution, uint32_t name)
{
	if (name && name <= attribution->comm.count)
		attribution->comm.items[name - 1] = COMM_UNKNOWN;
}

static struct span span_of(const struct step *step)
{
	const struct fbt_step *record = &step->record;

	return (struct span){.number = step->number,
			     .start_ns = record->start_ns,
			     .end_ns = record->end_ns,
			     .tid = record->tid,
			     .whole = record->kind == 0};
}

static bool is_idle(const struct attribution *attribution, const struct thread_end *thread)
{
	return attribution->latest_ns - thread->end_ns > IDLE_NS;
}

/* Threads come and go: an idle one gives up its place. */
static int note_end(struct attribution *attribution, uint32_t tid, uint64_t end_ns)
{
	struct thread_end *place = NULL;

	attribution->latest_ns = max_u64(attribution->latest_ns, end_ns);
	vec_for_each (thread, &attribution->threads) {
		if (thread->tid == tid) {
			place = thread;
			break;
		}
		if (is_idle(attribution, thread))
			place = thread;
	}
	if (!place)
		return vec_push(&attribution->threads, ((struct thread_end){tid, end_ns}));
	if (place->tid != tid || end_ns > place->end_ns)
		*place = (struct thread_end){tid, end_ns};
	return 0;
}

int attribution__add_step(struct attribution *attribution, const struct step *step)
{
	struct span *span = malloc(sizeof(*span));

	if (!span)
		return -ENOMEM;
	*span = span_of(step);
	if (note_end(attribution, span->tid, span->end_ns) ||
	    gpu_timeline__insert(attribution->spans, span->start_ns, span->end_ns, span)) {
		free(span);
		return -ENOMEM;
	}
	return 0;
}

/* Turns to a step that was added: the functions below are about it. 0 or -ENOMEM. */
static int select_step(struct attribution *attribution, const struct step *step)
{
	struct gpu_timeline_cursor cursor = gpu_timeline__overlapping(
		attribution->spans, step->record.start_ns, step->record.end_ns);
	const struct gpu_timeline_entry *entry;
	int err = 0;

	attribution->selected = span_of(step);
	attribution->own = NULL;
	attribution->rivals.count = 0;
	while (!err && (entry = gpu_timeline__next(&cursor))) {
		struct span *span = entry->record;

		if (span->number == attribution->selected.number)
			attribution->own = span;
		else
			err = vec_push(&attribution->rivals, *span);
	}
	return err;
}

static bool holds(const struct span *span, uint64_t time_ns)
{
	return time_ns >= span->start_ns && time_ns < span->end_ns;
}

/* The thread was in another step of its own then, or is in one that has not ended. */
static bool is_of_other_step(const struct attribution *attribution, uint32_t tid, uint64_t time_ns)
{
	const struct thread_end *own = NULL;

	vec_for_each (thread, &attribution->threads) {
		if (thread->tid == tid) {
			own = thread;
			break;
		}
	}
	if (!own || is_idle(attribution, own))
		return false;
	if (time_ns >= own->end_ns)
		return true;
	vec_for_each (rival, &attribution->rivals) {
		if (rival->tid == tid && holds(rival, time_ns))
			return true;
	}
	return false;
}

/* What a thread began at a time is the selected step's, and no other step could claim it. */
static bool has_alone(const struct attribution *attribution, uint32_t tid, uint64_t time_ns)
{
	const struct span *selected = &attribution->selected;

	return holds(selected, time_ns) && (selected->whole || (tid && tid == selected->tid));
}

/* What a thread (0: not known which) began at a time is the selected step's. */
static bool has(const struct attribution *attribution, uint32_t tid, uint64_t time_ns)
{
	const struct span *selected = &attribution->selected;

	if (!holds(selected, time_ns))
		return false;
	if (has_alone(attribution, tid, time_ns))
		return true;
	if (attribution->strict || (tid && is_of_other_step(attribution, tid, time_ns)))
		return false;
	vec_for_each (rival, &attribution->rivals) {
		if (holds(rival, time_ns) &&
		    (rival->start_ns > selected->start_ns ||
		     (rival->start_ns == selected->start_ns && rival->number > selected->number)))
			return false;
	}
	return true;
}

/* A nested call belongs where the call around it does. */
static bool has_call(const struct attribution *attribution, const struct join_record *call)
{
	const struct fbt_gpu_api *api = call->outer ? &call->outer->api : &call->api;

	return has(attribution, api->tid, api->start_ns);
}

void attribution__seal(struct attribution *attribution)
{
	if (attribution->own)
		attribution->own->sealed = true;
	attribution->sealed_ns = max_u64(attribution->sealed_ns, attribution->selected.end_ns);
}

bool attribution__is_late(const struct attribution *attribution, uint32_t tid, uint64_t time_ns)
{
	struct gpu_timeline_cursor cursor;
	const struct gpu_timeline_entry *entry;

	if (time_ns >= attribution->sealed_ns)
		return false;
	cursor = gpu_timeline__overlapping(attribution->spans, time_ns, time_ns + 1);
	while ((entry = gpu_timeline__next(&cursor))) {
		const struct span *span = entry->record;

		if (span->sealed && (span->whole || span->tid == tid) && holds(span, time_ns))
			return true;
	}
	return false;
}

uint64_t attribution__next_start(const struct attribution *attribution)
{
	uint64_t earliest_ns = attribution->latest_ns;

	vec_for_each (thread, &attribution->threads) {
		if (!is_idle(attribution, thread))
			earliest_ns = min_u64(earliest_ns, thread->end_ns);
	}
	return earliest_ns;
}

void attribution__forget(struct attribution *attribution, uint64_t until_ns)
{
	const struct gpu_timeline_entry *first;

	while ((first = gpu_timeline__first(attribution->spans)) && first->end_ns <= until_ns)
		drop_first_span(attribution);
}

static struct gpu_timeline_cursor records_in(const struct attribution *attribution,
					     enum join_kind kind, const struct step *step)
{
	return gpu_join__overlapping(attribution->join, kind, step->record.start_ns,
				     step->record.end_ns);
}

/* Threads that capture what they launch; further ones are taken for threads that do not. */
struct capturing {
	uint32_t tids[CAPTURING_MAX];
	size_t count;
};

static bool is_capturing(struct capturing *capturing, const struct fbt_gpu_api *api)
{
	size_t i = 0;

	while (i < capturing->count && capturing->tids[i] != api->tid)
		i++;
	if (api->api_class == FBT_GPU_API_CAPTURE && i == capturing->count && i < CAPTURING_MAX &&
	    !api->result)
		capturing->tids[capturing->count++] = api->tid;
	if (api->api_class == FBT_GPU_API_CAPTURE_END && i < capturing->count)
		capturing->tids[i] = capturing->tids[--capturing->count];
	return i < capturing->count;
}

static void count_awaited(const struct attribution *attribution, const struct step *step,
			  const struct join_record *call, bool is_captured,
			  struct gpu_awaited *awaited)
{
	bool is_graph = call->api.api_class == FBT_GPU_API_GRAPH;
	bool goes_on = is_graph && gpu_join__has_news(attribution->join, call) &&
		       call->works_end_ns > step->record.end_ns;

	if (!join_call_is_launch(call) || !has_call(attribution, call) ||
	    (call->has_work && !goes_on))
		return;
	if (!call->has_work && !is_captured &&
	    (is_graph || call->api.api_class == FBT_GPU_API_LAUNCH))
		awaited->launches++;
	else
		awaited->perhaps++;
}

int attribution__await(struct attribution *attribution, const struct step *step,
		       struct gpu_awaited *awaited)
{
	struct gpu_timeline_cursor cursor = records_in(attribution, JOIN_CALL, step);
	const struct join_record *call;
	struct capturing capturing = {.count = 0};
	int err = select_step(attribution, step);

	*awaited = (struct gpu_awaited){0};
	while (!err && (call = join_next(&cursor)))
		count_awaited(attribution, step, call, is_capturing(&capturing, &call->api),
			      awaited);
	return err;
}

/* Kernels are many, their names few. Without memory the name is checked each time. */
static bool is_comm(struct attribution *attribution, const struct fbt_gpu_work *work)
{
	uint32_t name = work->name;
	unsigned char *known = NULL;
	bool is_comm;

	if (work->kind != FBT_GPU_KERNEL || !attribution->process || !name ||
	    name > FBT_GPU_NAMES_MAX)
		return false;
	while (attribution->comm.count < name && !vec_push(&attribution->comm, COMM_UNKNOWN))
		;
	if (name <= attribution->comm.count)
		known = &attribution->comm.items[name - 1];
	if (known && *known)
		return *known == COMM_YES;
	is_comm = gpu_name_is_comm(gpu_process_kernel_name(attribution->process, name));
	if (known)
		*known = is_comm ? COMM_YES : COMM_NO;
	return is_comm;
}

static int add_item(struct attribution *attribution, const struct join_record *work,
		    uint64_t number)
{
	struct gpu_item item = {.work = &work->work};

	item.api = work->call ? &work->call->api : NULL;
	item.mine = work->step == number;
	item.comm = is_comm(attribution, &work->work);
	return vec_push(&attribution->items, item);
}

static int give(struct join_record *record, const struct step *step, struct step_gpu *gpu)
{
	record->step = step->number;
	return join_record_copy(record, &gpu->records);
}

/*
 * The work of a call that began in the step. Work that overlaps the step is found by its own time
 * in attribute_works; work of others matters only after the step.
 */
static int attribute_works_of(struct attribution *attribution, const struct step *step,
			      const struct join_record *call, struct step_gpu *gpu)
{
	const struct fbt_step *record = &step->record;
	bool is_given = call->step == step->number;
	struct join_record *work;
	int err = 0;

	LIST_FOREACH(work, &call->works, in_list)
	{
		const struct fbt_gpu_work *measured = &work->work;

		if (is_given && !work->step)
			work->step = step->number;
		if (!measured->end_ns && work->step == step->number) {
			gpu->unmeasured++;
			err = join_record_copy(work, &gpu->records);
		} else if (measured->end_ns &&
			   !gpu_timeline_is_inside(measured->start_ns, measured->end_ns,
						   record->start_ns, record->end_ns) &&
			   (work->step == step->number || measured->start_ns >= record->end_ns)) {
			err = add_item(attribution, work, step->number);
		}
		if (err)
			return err;
	}
	return 0;
}

static int attribute_calls(struct attribution *attribution, const struct step *step,
			   struct step_gpu *gpu)
{
	struct gpu_timeline_cursor cursor = records_in(attribution, JOIN_CALL, step);
	struct join_record *call;
	int err = 0;

	while (!err && (call = join_next(&cursor))) {
		const struct fbt_gpu_api *api = &call->api;

		/* A call without times is shown, and no more. */
		if (!api->end_ns)
			continue;
		if (!(api->header.flags & FBT_GPU_API_NESTED))
			err = vec_push(&attribution->apis, api);
		if (err || api->start_ns < step->record.start_ns)
			continue;
		if (call->step && has_alone(attribution, api->tid, api->start_ns))
			attribution->is_damaged = true;
		if (!call->step && has_call(attribution, call))
			err = give(call, step, gpu);
		if (!err)
			err = attribute_works_of(attribution, step, call, gpu);
	}
	return err;
}

/* The end of the step's last work; 0: it has none. */
static uint64_t last_end(const struct attribution *attribution)
{
	uint64_t end_ns = 0;

	vec_for_each (item, &attribution->items) {
		if (item->mine)
			end_ns = max_u64(end_ns, item->work->end_ns);
	}
	return end_ns;
}

/*
 * Work after the step's end that matters to the step: what was launched before the step and was
 * queued all through it, since the step's own work waits for that and the next work after the step
 * may be of it; and everything until the step's last work has ended, since the GPU is busy with
 * that too. After that at most LATER_MAX pieces of work that were launched later are looked at.
 */
static int add_works_after(struct attribution *attribution, const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct gpu_timeline_cursor cursor =
		gpu_join__overlapping(attribution->join, JOIN_WORK, record->end_ns, UINT64_MAX);
	const struct join_record *work;
	uint64_t until_ns = last_end(attribution);
	size_t later = 0, taken = 0;
	int err = 0;

	while (!err && later < LATER_MAX && taken < AFTER_MAX && (work = join_next(&cursor))) {
		const struct fbt_gpu_api *api = work->call ? &work->call->api : NULL;
		bool is_later = !api || api->start_ns >= record->end_ns;

		if (!work->work.end_ns || work->work.start_ns < record->end_ns)
			continue;
		/* What was launched in the step is there already. */
		if (api && !is_later && api->start_ns >= record->start_ns)
			continue;
		if (is_later && work->work.start_ns >= until_ns) {
			later++;
			continue;
		}
		taken++;
		err = add_item(attribution, work, step->number);
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

/* Work that was launched in the step and runs after it is mostly in order. */
static void sort_items(struct attribution *attribution)
{
	struct gpu_item *items = attribution->items.items;

	for (size_t i = 1; i < attribution->items.count; i++) {
		if (compare_items(&items[i - 1], &items[i]) > 0) {
			qsort(items, attribution->items.count, sizeof(*items), compare_items);
			return;
		}
	}
}

static int attribute_works(struct attribution *attribution, const struct step *step,
			   struct step_gpu *gpu)
{
	struct gpu_timeline_cursor cursor = records_in(attribution, JOIN_WORK, step);
	struct join_record *work;
	int err = 0;

	while (!err && (work = join_next(&cursor))) {
		if (!work->work.end_ns)
			continue;
		if (!work->call && !work->step && has(attribution, 0, work->work.start_ns))
			work->step = step->number;
		err = add_item(attribution, work, step->number);
	}
	if (!err)
		err = add_works_after(attribution, step);
	sort_items(attribution);
	vec_for_each (item, &attribution->items) {
		if (!err && item->mine)
			err = vec_push(&gpu->records.works, *item->work);
	}
	return err;
}

static bool has_sync(const struct attribution *attribution, const struct step *step,
		     const struct fbt_gpu_sync *sync)
{
	const struct join_record *call =
		gpu_join__find_call(attribution->join, sync->correlation, sync->start_ns);

	if (sync->start_ns < step->record.start_ns)
		return false;
	return call ? call->step == step->number : has(attribution, 0, sync->start_ns);
}

static int attribute_syncs(struct attribution *attribution, const struct step *step,
			   struct step_gpu *gpu)
{
	struct gpu_timeline_cursor cursor = records_in(attribution, JOIN_SYNC, step);
	struct join_record *record;
	int err = 0;

	while (!err && (record = join_next(&cursor))) {
		err = vec_push(&attribution->syncs, &record->sync);
		if (!err && !record->step && has_sync(attribution, step, &record->sync))
			err = give(record, step, gpu);
	}
	return err;
}

static int attribute_overheads(struct attribution *attribution, const struct step *step,
			       struct step_gpu *gpu)
{
	struct gpu_timeline_cursor cursor = records_in(attribution, JOIN_OVERHEAD, step);
	struct join_record *record;
	int err = 0;

	while (!err && (record = join_next(&cursor))) {
		const struct fbt_gpu_overhead *overhead = &record->overhead;

		err = vec_push(&attribution->overheads, overhead);
		if (!err && !record->step && has(attribution, overhead->tid, overhead->start_ns))
			err = give(record, step, gpu);
	}
	return err;
}

static int measure(struct attribution *attribution, const struct step *step, struct step_gpu *gpu)
{
	const struct gpu_metrics_input input = {
		.step = step,
		.items = attribution->items.items,
		.item_count = attribution->items.count,
		.apis = attribution->apis.items,
		.api_count = attribution->apis.count,
		.syncs = attribution->syncs.items,
		.sync_count = attribution->syncs.count,
		.overheads = attribution->overheads.items,
		.overhead_count = attribution->overheads.count,
		.hidden_until_ns = attribution->hidden_until_ns,
	};

	return gpu_metrics_compute(&input, gpu);
}

static void take_from(struct join_record *record, const struct step *step)
{
	if (record->step == step->number)
		record->step = 0;
}

/* The records of the step leave as those that no step launched. */
static void give_back(struct attribution *attribution, const struct step *step)
{
	for (enum join_kind kind = 0; kind < JOIN_KINDS; kind++) {
		struct gpu_timeline_cursor cursor = records_in(attribution, kind, step);
		struct join_record *record, *work;

		while ((record = join_next(&cursor))) {
			take_from(record, step);
			if (kind != JOIN_CALL)
				continue;
			LIST_FOREACH(work, &record->works, in_list)
			take_from(work, step);
		}
	}
}

int attribution__take(struct attribution *attribution, const struct step *step,
		      struct step_gpu *gpu, bool *is_damaged)
{
	struct gpu_awaited awaited;
	int err = attribution__await(attribution, step, &awaited);

	if (err)
		return err;
	attribution->items.count = attribution->apis.count = 0;
	attribution->syncs.count = attribution->overheads.count = 0;
	attribution->is_damaged = false;
	gpu->missing = awaited.launches;
	err = attribute_calls(attribution, step, gpu);
	if (!err)
		err = attribute_works(attribution, step, gpu);
	if (!err)
		err = attribute_syncs(attribution, step, gpu);
	if (!err)
		err = attribute_overheads(attribution, step, gpu);
	if (!err)
		err = measure(attribution, step, gpu);
	if (err)
		give_back(attribution, step);
	*is_damaged = attribution->is_damaged;
	return err;
}
