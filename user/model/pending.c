/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/arith.h"
#include "base/id_map.h"
#include "base/log.h"

/* A queue of calls per thread, and the threads of each process. */

/* The calls of one thread in order of arrival; dropping the oldest is cheap. {0} is empty. */
struct call_queue {
	call_vec calls;
	size_t first;	   /* index of the oldest call; those before it have left */
	bool is_unordered; /* some call began or returned before its predecessor did */
};

/* A thread without waiting calls keeps an array of up to this many calls (16 KiB). */
#define SPARE_CALLS 256

static size_t call_queue_count(const struct call_queue *queue)
{
	return queue->calls.count - queue->first;
}

static struct fbt_call *call_queue_at(const struct call_queue *queue, size_t index)
{
	return &queue->calls.items[queue->first + index];
}

static uint64_t end_of(const struct fbt_call *call)
{
	return call->start_ns + call->duration_ns;
}

static bool is_in_order(const struct call_queue *queue, const struct fbt_call *call)
{
	size_t count = call_queue_count(queue);
	const struct fbt_call *last;

	if (!count)
		return true;
	last = call_queue_at(queue, count - 1);
	return call->start_ns >= last->start_ns && end_of(call) >= end_of(last);
}

static int call_queue_push(struct call_queue *queue, const struct fbt_call *call)
{
	bool is_late = !is_in_order(queue, call);
	int err = vec_push(&queue->calls, *call);

	if (!err)
		queue->is_unordered |= is_late;
	return err;
}

/*
 * Moves the calls to the front of the array, but only if at least half of the array is free. So a
 * call is moved once on average.
 */
static void close_up(struct call_queue *queue)
{
	call_vec *calls = &queue->calls;
	size_t count = call_queue_count(queue);

	if (queue->first < count)
		return;
	if (count)
		memmove(calls->items, call_queue_at(queue, 0), count * sizeof(*calls->items));
	else
		queue->is_unordered = false;
	calls->count = count;
	queue->first = 0;
	vec_shrink(calls, SPARE_CALLS);
}

/* Drops the oldest count calls. */
static void call_queue_drop(struct call_queue *queue, size_t count)
{
	queue->first += count;
	close_up(queue);
}

/* Drops all calls but the oldest count. */
static void call_queue_cut(struct call_queue *queue, size_t count)
{
	queue->calls.count = queue->first + count;
	close_up(queue);
}

struct process_queues;

/* The calls of one thread, by time of return. */
struct thread_queue {
	uint32_t tid;
	bool has_steps;
	uint64_t evicted_ns; /* time of return of the last evicted call; 0: none was evicted */
	struct call_queue calls;
	wake_vec wakes; /* by start time */
	struct process_queues *process;
	LIST_ENTRY(thread_queue) in_process;
	LIST_ENTRY(thread_queue) in_all;
};

LIST_HEAD(process_list, thread_queue);
LIST_HEAD(queue_list, thread_queue);

struct process_queues {
	uint32_t tgid;
	bool exited;
	struct process_list threads; /* never empty */
};

struct pending {
	int (*on_outside)(void *ctx, const struct fbt_call *call);
	void *ctx;
	struct tid_map *threads;   /* to struct thread_queue */
	struct tid_map *processes; /* to struct process_queues */
	struct queue_list all;
	size_t calls;
	size_t wakes;
};

struct pending *pending__new(int (*on_outside)(void *ctx, const struct fbt_call *call), void *ctx)
{
	struct pending *pending = calloc(1, sizeof(*pending));

	if (!pending)
		return NULL;
	pending->on_outside = on_outside;
	pending->ctx = ctx;
	LIST_INIT(&pending->all);
	pending->threads = tid_map__new();
	pending->processes = tid_map__new();
	if (!pending->threads || !pending->processes) {
		pending__free(pending);
		return NULL;
	}
	return pending;
}

static void free_queue(struct pending *pending, struct thread_queue *queue)
{
	struct process_queues *process = queue->process;

	pending->calls -= call_queue_count(&queue->calls);
	pending->wakes -= queue->wakes.count;
	tid_map__remove(pending->threads, queue->tid);
	LIST_REMOVE(queue, in_all);
	LIST_REMOVE(queue, in_process);
	vec_free(&queue->calls.calls);
	vec_free(&queue->wakes);
	free(queue);
	if (LIST_EMPTY(&process->threads)) {
		tid_map__remove(pending->processes, process->tgid);
		free(process);
	}
}

void pending__free(struct pending *pending)
{
	struct thread_queue *queue;

	if (!pending)
		return;
	while ((queue = LIST_FIRST(&pending->all)))
		free_queue(pending, queue);
	tid_map__free(pending->threads);
	tid_map__free(pending->processes);
	free(pending);
}

/* add_queue() enters a new process into the map, which holds no process without threads. */
static struct process_queues *find_or_make_process(struct pending *pending, uint32_t tgid)
{
	struct process_queues *process = tid_map__get(pending->processes, tgid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->tgid = tgid;
	LIST_INIT(&process->threads);
	return process;
}

static struct thread_queue *add_queue(struct pending *pending, uint32_t tgid, uint32_t tid)
{
	struct process_queues *process = find_or_make_process(pending, tgid);
	struct thread_queue *queue = calloc(1, sizeof(*queue));

	if (!process || !queue)
		goto out_of_memory;
	if (tid_map__set(pending->processes, tgid, process))
		goto out_of_memory;
	queue->tid = tid;
	queue->process = process;
	LIST_INSERT_HEAD(&process->threads, queue, in_process);
	LIST_INSERT_HEAD(&pending->all, queue, in_all);
	if (tid_map__set(pending->threads, tid, queue)) {
		free_queue(pending, queue);
		return NULL;
	}
	return queue;

out_of_memory:
	if (process && LIST_EMPTY(&process->threads))
		free(process);
	free(queue);
	return NULL;
}

/* Passes on the oldest calls, although their step may still come. */
static int evict(struct pending *pending, struct thread_queue *queue, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		const struct fbt_call *call = call_queue_at(&queue->calls, i);

		queue->evicted_ns = end_of(call);
		keep_first(&err, pending->on_outside(pending->ctx, call));
	}
	pending->calls -= count;
	call_queue_drop(&queue->calls, count);
	return err;
}

static int release_queue(struct pending *pending, struct thread_queue *queue)
{
	int err = evict(pending, queue, call_queue_count(&queue->calls));

	free_queue(pending, queue);
	return err;
}

/* What leaves when room is needed, in this order. */
enum pressure {
	RELEASE_DEAD,	 /* threads without waiting calls, and threads of exited processes */
	RELEASE_OUTSIDE, /* threads that never had a step */
	HALVE,		 /* the older half of the calls of each thread */
	RELEASE_ALL,
	PRESSURE_COUNT,
};

static int relieve_queue(struct pending *pending, struct thread_queue *queue,
			 enum pressure pressure)
{
	switch (pressure) {
	case RELEASE_DEAD:
		if ((call_queue_count(&queue->calls) || queue->wakes.count) &&
		    !queue->process->exited)
			return 0;
		break;
	case RELEASE_OUTSIDE:
		if (queue->has_steps)
			return 0;
		break;
	case HALVE:
		return evict(pending, queue, (call_queue_count(&queue->calls) + 1) / 2);
	default:
		break;
	}
	return release_queue(pending, queue);
}

/* A quarter of the room must be free, so that the walk over all threads is rare. */
static bool has_room(const struct pending *pending)
{
	return pending->calls <= PENDING_CALLS_MAX / 4 * 3 &&
	       tid_map__count(pending->threads) <= PENDING_THREADS_MAX / 4 * 3;
}

static int make_room(struct pending *pending)
{
	int err = 0;

	for (int pressure = 0; pressure < PRESSURE_COUNT && !has_room(pending); pressure++) {
		struct thread_queue *queue = LIST_FIRST(&pending->all);

		while (queue) {
			struct thread_queue *next = LIST_NEXT(queue, in_all);

			keep_first(&err, relieve_queue(pending, queue, pressure));
			queue = next;
		}
	}
	return err;
}

static struct thread_queue *find_or_add_queue(struct pending *pending, uint32_t tgid, uint32_t tid,
					      int *err)
{
	struct thread_queue *queue = tid_map__get(pending->threads, tid);

	if (queue && queue->process->tgid == tgid)
		return queue;
	if (queue)
		keep_first(err, release_queue(pending, queue));
	if (tid_map__count(pending->threads) >= PENDING_THREADS_MAX)
		keep_first(err, make_room(pending));
	return add_queue(pending, tgid, tid);
}

int pending__push(struct pending *pending, const struct fbt_call *call)
{
	struct thread_queue *queue;
	int err = 0;

	if (pending->calls >= PENDING_CALLS_MAX)
		keep_first(&err, make_room(pending));
	queue = find_or_add_queue(pending, call->tgid, call->tid, &err);
	if (!queue)
		return err ? err : -ENOMEM;
	if (call_queue_count(&queue->calls) >= PENDING_THREAD_CALLS_MAX)
		keep_first(&err, evict(pending, queue, PENDING_THREAD_CALLS_MAX / 2));
	if (call_queue_push(&queue->calls, call))
		return err ? err : -ENOMEM;
	pending->calls++;
	return err;
}

int pending__push_wake(struct pending *pending, const struct fbt_wake *wake)
{
	struct thread_queue *queue;
	int err = 0;

	if (pending->wakes >= PENDING_WAKES_MAX)
		return 0;
	queue = find_or_add_queue(pending, wake->tgid, wake->tid, &err);
	if (!queue || vec_push(&queue->wakes, *wake))
		return err ? err : -ENOMEM;
	pending->wakes++;
	return err;
}

/* Wakes before the step belong to a step whose record was lost. */
static void take_wakes(struct pending *pending, struct thread_queue *queue, struct step *step)
{
	wake_vec *wakes = &queue->wakes;
	size_t first = vec_lower_bound(wakes, item->start_ns, step->record.start_ns), i = first;

	while (i < wakes->count && wakes->items[i].start_ns <= step->record.end_ns &&
	       !vec_push(&step->wakes, wakes->items[i]))
		i++;
	pending->wakes -= i;
	wakes->count -= i;
	if (wakes->count)
		memmove(wakes->items, wakes->items + i, wakes->count * sizeof(*wakes->items));
	vec_shrink(wakes, SPARE_CALLS);
}

/*
 * The calls of a function are those that begin inside it, because a thread makes one call at a
 * time. The calls of an interval are those that returned in it.
 */
static bool is_before(const struct fbt_step *step, const struct fbt_call *call)
{
	if (step->kind == 0)
		return end_of(call) <= step->start_ns;
	return call->start_ns < step->start_ns;
}

static bool is_after(const struct fbt_step *step, const struct fbt_call *call)
{
	if (step->kind == 0)
		return end_of(call) > step->end_ns;
	return call->start_ns > step->end_ns;
}

static int take_from(struct pending *pending, struct thread_queue *queue, struct step *step)
{
	struct call_queue *calls = &queue->calls;
	size_t count = call_queue_count(calls), kept = 0, i;
	int err = 0;

	queue->has_steps = true;
	if (queue->evicted_ns > step->record.start_ns)
		step->calls_truncated = true;
	for (i = 0; i < count; i++) {
		const struct fbt_call *call = call_queue_at(calls, i);
		bool stays = is_after(&step->record, call);

		/*
		 * The later calls of an ordered queue stay too. Without this break a stall would be
		 * expensive: after it, thousands of steps arrive at once, preceded by all calls.
		 */
		if (stays && !calls->is_unordered)
			break;
		if (stays)
			*call_queue_at(calls, kept++) = *call;
		else if (is_before(&step->record, call))
			keep_first(&err, pending->on_outside(pending->ctx, call));
		else if (step->calls.count >= STEP_CALLS_MAX || vec_push(&step->calls, *call))
			step->calls_truncated = true;
	}
	pending->calls -= i - kept;
	if (i == count)
		call_queue_cut(calls, kept);
	else
		call_queue_drop(calls, i);
	return err;
}

static int compare_starts(const void *left, const void *right)
{
	const struct fbt_call *a = left;
	const struct fbt_call *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

int pending__take(struct pending *pending, struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct process_queues *process;
	struct thread_queue *queue;
	int err = 0;

	if (record->kind != 0) {
		queue = tid_map__get(pending->threads, record->tid);
		if (!queue || queue->process->tgid != record->tgid)
			return 0;
		take_wakes(pending, queue, step);
		return take_from(pending, queue, step);
	}
	process = tid_map__get(pending->processes, record->tgid);
	if (!process)
		return 0;
	LIST_FOREACH(queue, &process->threads, in_process)
	keep_first(&err, take_from(pending, queue, step));
	vec_sort(&step->calls, compare_starts);
	return err;
}

void pending__mark_exited(struct pending *pending, uint32_t tgid)
{
	struct process_queues *process = tid_map__get(pending->processes, tgid);

	if (process)
		process->exited = true;
}

int pending__release(struct pending *pending, uint32_t tgid)
{
	struct process_queues *process;
	int err = 0;

	/* The process leaves the map with its last thread. */
	while ((process = tid_map__get(pending->processes, tgid)))
		keep_first(&err, release_queue(pending, LIST_FIRST(&process->threads)));
	return err;
}

int pending__flush(struct pending *pending)
{
	struct thread_queue *queue;
	int err = 0;

	/* NOLINT: the analyzer does not see that LIST_REMOVE changes lh_first through le_prev. */
	while ((queue = LIST_FIRST(&pending->all)))
		keep_first(&err, release_queue(pending, queue)); // NOLINT
	return err;
}

size_t pending__call_count(const struct pending *pending)
{
	return pending->calls;
}

size_t pending__thread_count(const struct pending *pending)
{
	return tid_map__count(pending->threads);
}
