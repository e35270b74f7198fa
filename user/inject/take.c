/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/take.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "inject/filters.h"
#include "inject/stop.h"
#include "inject/thread.h"
#include "model/syscalls.h"

/* How long a thread that could not be taken is left alone, doubled each time. */
#define PAUSE_MIN_NS (5 * NS_PER_MS)
#define PAUSE_MAX_NS (200 * NS_PER_MS)
/* The least pause for epoll_wait: each stop may restart its time-out from the beginning. */
#define PAUSE_EINTR_NS (100 * NS_PER_MS)
/* Pause between two searches of all threads. */
#define LOOK_NS (5 * NS_PER_MS)
/* Number of tries before a thread of a worse rank is tried. */
#define PATIENCE 3
/* Number of times that --dry-run looks for a thread. */
#define LOOKS_MAX 5

/* A thread that could not be taken. */
struct record {
	uint32_t tid;
	uint32_t tries;
	bool never;
	uint64_t pause_ns;
	uint64_t next_ns;
};

struct search {
	const struct inject_take *take;
	struct inject_taken *taken;
	VEC(struct record) records;
};

static struct record *find_record(struct search *search, uint32_t tid)
{
	struct record fresh = {.tid = tid};

	vec_for_each (record, &search->records) {
		if (record->tid == tid)
			return record;
	}
	if (vec_push(&search->records, fresh))
		return NULL;
	return &search->records.items[search->records.count - 1];
}

static const char *describe(uint32_t action)
{
	switch (action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_KILL_PROCESS:
		return "would kill the process";
	case SECCOMP_RET_KILL_THREAD:
		return "would kill the thread";
	case SECCOMP_RET_TRAP:
		return "would be answered with SIGSYS";
	case SECCOMP_RET_ERRNO:
		return "is not allowed";
	case SECCOMP_RET_USER_NOTIF:
		return "is decided by another process";
	case SECCOMP_RET_TRACE:
		return "is decided by a tracer";
	}
	return "may not be allowed";
}

/* 0, or -EPERM and text. */
static int check_filters(uint32_t tid, char text[INJECT_TEXT_MAX])
{
	const char *call = "?";
	uint32_t action = 0;
	int err = inject_seccomp_check(tid, &call, &action);

	if (!err)
		return 0;
	if (err == -EPERM)
		snprintf(text, INJECT_TEXT_MAX, "seccomp filter of thread %u: %s %s", tid, call,
			 describe(action));
	else
		snprintf(text, INJECT_TEXT_MAX, "seccomp filter of thread %u cannot be read: %s%s",
			 tid, strerror(-err),
			 err == -EACCES ? " (needs CAP_SYS_ADMIN and no seccomp filter of our own)"
					: "");
	return -EPERM;
}

static int stop_thread(struct search *search, const struct inject_thread *thread)
{
	const struct inject_take *take = search->take;
	const struct inject_place *place = &take->target->place;
	struct inject_taken *taken = search->taken;
	struct inject_stop *stop;
	int err;

	inject_reach(take->hook, INJECT_AT_CHOSEN);
	if (!taken->tries++)
		taken->begin_ns = clock_ns(CLOCK_MONOTONIC);
	taken->tid = thread->tid;
	taken->nr = (uint32_t)thread->nr;
	err = inject_stop__take(&stop, thread, take->hook);
	if (err == -EPERM)
		snprintf(taken->text, sizeof(taken->text),
			 "thread %u cannot be stopped: is it being traced (strace, gdb)?",
			 thread->tid);
	if (err == -ETIMEDOUT)
		snprintf(taken->text, sizeof(taken->text),
			 "thread %u does not stop: is its control group frozen?", thread->tid);
	if (err)
		return err;
	if (thread->filtered)
		err = check_filters(thread->tid, taken->text);
	inject_reach(take->hook, INJECT_AT_FILTERS_READ);
	if (!err)
		err = inject_stop__divert(stop, place->stub, place->bytes, take->nonce);
	inject_stop__let_go(stop);
	taken->stop_ns = inject_stop__ns(stop);
	taken->wait_ns = inject_stop__waited_ns(stop);
	inject_stop__free(stop);
	return err;
}

/* -ESRCH: the process is gone. A thread that is gone is -EAGAIN. */
static int try_thread(struct search *search, const struct inject_thread *thread)
{
	const struct inject_target *target = search->take->target;
	struct record *record = find_record(search, thread->tid);
	int err = -EAGAIN;

	if (!record)
		return -ENOMEM;
	if (!inject_target_is_there(target))
		return -ESRCH;
	if (inject_thread_is_same(thread, target->process.tgid))
		err = stop_thread(search, thread);
	record->tries++;
	record->never = err == -EPERM;
	record->pause_ns = record->pause_ns ? record->pause_ns * 2 : PAUSE_MIN_NS;
	if (thread->rank >= INJECT_RANK_EINTR && record->pause_ns < PAUSE_EINTR_NS)
		record->pause_ns = PAUSE_EINTR_NS;
	if (record->pause_ns > PAUSE_MAX_NS)
		record->pause_ns = PAUSE_MAX_NS;
	record->next_ns = clock_ns(CLOCK_MONOTONIC) + record->pause_ns;
	return err == -EPERM || err == -ESRCH ? -EAGAIN : err;
}

/*
 * Tries the threads, best first. -EAGAIN: none can be taken now; -EPERM: every waiting thread is
 * refused for good.
 */
static int try_threads(struct search *search, const inject_thread_vec *threads)
{
	enum inject_rank worst = INJECT_RANK_NONE;
	uint32_t refused = 0, others = 0;

	vec_for_each (thread, threads) {
		struct record *record;
		int err;

		if (search->take->tid && thread->tid != search->take->tid)
			continue;
		record = find_record(search, thread->tid);
		if (!record)
			return -ENOMEM;
		if (record->never) {
			refused++;
			continue;
		}
		others++;
		if (thread->rank > worst)
			continue;
		if (clock_ns(CLOCK_MONOTONIC) >= record->next_ns) {
			err = try_thread(search, thread);
			if (err != -EAGAIN)
				return err;
		}
		record = find_record(search, thread->tid);
		if (record && record->tries < PATIENCE && !record->never)
			worst = thread->rank;
	}
	return refused && !others ? -EPERM : -EAGAIN;
}

/*
 * Searches, then pauses for as long as the search took, so that many threads do not cost a whole
 * CPU.
 */
static int search_once(struct search *search)
{
	const struct inject_target *target = search->take->target;
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), took_ns;
	inject_thread_vec threads = {0};
	int err = inject_threads_list(&threads, target->process.tgid, target->place.stub,
				      target->place.size);

	if (!err)
		err = try_threads(search, &threads);
	vec_free(&threads);
	took_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
	if (err != -EAGAIN)
		return err;
	if (!inject_target_is_there(target))
		return -ESRCH;
	clock_sleep(took_ns > LOOK_NS ? took_ns : LOOK_NS);
	return -EAGAIN;
}

int inject_take(const struct inject_take *take, struct inject_taken *taken)
{
	struct search search = {.take = take, .taken = taken};
	int err;

	memset(taken, 0, sizeof(*taken));
	do {
		err = search_once(&search);
	} while (err == -EAGAIN && clock_ns(CLOCK_MONOTONIC) < take->deadline_ns);
	vec_free(&search.records);
	return err;
}

/* 0; -EPERM and text; or -EAGAIN: the thread no longer waits there. */
static int look_at_filters(const struct inject_thread *thread, char text[INJECT_TEXT_MAX])
{
	struct inject_stop *stop;
	int err = inject_stop__take(&stop, thread, NULL);

	/* -EPERM is what the filters refuse. */
	if (err == -EPERM)
		return -EBUSY;
	if (err)
		return err;
	err = check_filters(thread->tid, text);
	inject_stop__let_go(stop);
	inject_stop__free(stop);
	return err;
}

static void say_thread(struct inject_verdict *verdict, const struct inject_thread *thread,
		       size_t count)
{
	char label[24];

	inject_fine(verdict, "thread", "%zu can be used now; it would be %u, which waits in %s",
		    count, thread->tid,
		    syscall_label(syscalls_arch(), (uint32_t)thread->nr, label));
	if (thread->rank == INJECT_RANK_EINTR_TIMED)
		inject_warn(verdict, "thread",
			    "all of them wait in calls whose time-out would start again");
}

void inject_take_look(const struct inject_target *target, struct inject_verdict *verdict)
{
	char text[INJECT_TEXT_MAX];
	int err = -EAGAIN;

	for (int looks = 0; looks < LOOKS_MAX && err == -EAGAIN; looks++) {
		inject_thread_vec threads = {0};

		if (looks)
			clock_sleep(PAUSE_EINTR_NS);
		err = inject_threads_list(&threads, target->process.tgid, target->place.stub,
					  target->place.size);
		if (!err && !threads.count)
			err = -EAGAIN;
		if (!err && threads.items->filtered)
			err = look_at_filters(threads.items, text);
		if (!err)
			say_thread(verdict, threads.items, threads.count);
		vec_free(&threads);
	}
	if (err == -EPERM)
		inject_refuse(verdict, "seccomp", "%s", text);
	else if (err == -EBUSY)
		inject_refuse(verdict, "thread",
			      "it cannot be stopped: is it being traced (strace, gdb)?");
	else if (err == -EAGAIN)
		inject_warn(verdict, "thread",
			    "no thread waits where it can be used at this moment");
	else if (err)
		inject_refuse(verdict, "thread", "%s", strerror(-err));
}
