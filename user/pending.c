/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "call_queue.h"
#include "tid_map.h"

struct process_queues;

/* Calls of one thread, by the time they returned. */
struct thread_queue {
	uint32_t tid;
	bool has_steps;
	uint64_t evicted_ns; /* when the last call returned that had to leave early; 0: none */
	struct call_queue calls;
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

static void keep_first(int *err, int result)
{
	if (!*err)
		*err = result;
}

static void free_queue(struct pending *pending, struct thread_queue *queue)
{
	struct process_queues *process = queue->process;

	pending->calls -= call_queue_count(&queue->calls);
	tid_map__remove(pending->threads, queue->tid);
	LIST_REMOVE(queue, in_all);
	LIST_REMOVE(queue, in_process);
	call_queue_clear(&queue->calls);
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
	queue = LIST_FIRST(&pending->all);
	while (queue) {
		struct thread_queue *next = LIST_NEXT(queue, in_all);

		free_queue(pending, queue);
		queue = next;
	}
	tid_map__free(pending->threads);
	tid_map__free(pending->processes);
	free(pending);
}

/* The map holds no process without threads: the new one is entered by add_queue. */
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

/* Passes the oldest calls on though a step may yet come for them. */
static int evict(struct pending *pending, struct thread_queue *queue, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		const struct fbt_call *call = call_queue_at(&queue->calls, i);

		queue->evicted_ns = call->start_ns + call->duration_ns;
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

enum pressure {
	RELEASE_DEAD,	 /* threads with no call waiting, and those of exited processes */
	RELEASE_OUTSIDE, /* threads that never had a step */
	HALVE,
	RELEASE_ALL,
	PRESSURE_COUNT,
};

static int relieve_queue(struct pending *pending, struct thread_queue *queue,
			 enum pressure pressure)
{
	switch (pressure) {
	case RELEASE_DEAD:
		if (call_queue_count(&queue->calls) && !queue->process->exited)
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

/* A quarter must be free afterwards, so that the walk over all threads is rare. */
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

int pending__push(struct pending *pending, const struct fbt_call *call)
{
	struct thread_queue *queue;
	int err = 0;

	if (pending->calls >= PENDING_CALLS_MAX)
		keep_first(&err, make_room(pending));
	queue = tid_map__get(pending->threads, call->tid);
	if (queue && queue->process->tgid != call->tgid) {
		keep_first(&err, release_queue(pending, queue));
		queue = NULL;
	}
	if (!queue) {
		if (tid_map__count(pending->threads) >= PENDING_THREADS_MAX)
			keep_first(&err, make_room(pending));
		queue = add_queue(pending, call->tgid, call->tid);
	}
	if (!queue)
		return err ? err : -ENOMEM;
	if (call_queue_count(&queue->calls) >= PENDING_THREAD_CALLS_MAX)
		keep_first(&err, evict(pending, queue, PENDING_THREAD_CALLS_MAX / 2));
	if (call_queue_push(&queue->calls, call))
		return err ? err : -ENOMEM;
	pending->calls++;
	return err;
}

/*
 * A thread makes one call at a time, so a function's calls begin inside it. An interval is charged
 * with the calls that returned in it.
 */
static bool is_before(const struct fbt_step *step, const struct fbt_call *call)
{
	if (step->kind == 0)
		return call->start_ns + call->duration_ns <= step->start_ns;
	return call->start_ns < step->start_ns;
}

static bool is_after(const struct fbt_step *step, const struct fbt_call *call)
{
	if (step->kind == 0)
		return call->start_ns + call->duration_ns > step->end_ns;
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

		/* After a stall thousands of steps come at once, and their calls before them. */
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
		return take_from(pending, queue, step);
	}
	process = tid_map__get(pending->processes, record->tgid);
	if (!process)
		return 0;
	LIST_FOREACH(queue, &process->threads, in_process)
	keep_first(&err, take_from(pending, queue, step));
	if (step->calls.count)
		qsort(step->calls.items, step->calls.count, sizeof(*step->calls.items),
		      compare_starts);
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
	struct process_queues *process = tid_map__get(pending->processes, tgid);
	struct thread_queue *queue = process ? LIST_FIRST(&process->threads) : NULL;
	int err = 0;

	while (queue) {
		struct thread_queue *next = LIST_NEXT(queue, in_process);

		keep_first(&err, release_queue(pending, queue));
		queue = next;
	}
	return err;
}

int pending__flush(struct pending *pending)
{
	struct thread_queue *queue = LIST_FIRST(&pending->all);
	int err = 0;

	while (queue) {
		struct thread_queue *next = LIST_NEXT(queue, in_all);

		keep_first(&err, release_queue(pending, queue));
		queue = next;
	}
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
