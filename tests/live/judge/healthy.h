/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Steps that differ, none of which is slow. */
#ifndef FBT_TESTS_JUDGE_HEALTHY_H
#define FBT_TESTS_JUDGE_HEALTHY_H

#include "anomalies.h"

enum {
	POOL = 2,
	PARTS = 12,
	PART_US = 8000,
};

/* Sequences come and go, and each has some tokens more than before. */
static inline long mixed_work(struct engine *e, long number)
{
	(void)number;
	return 500 + below(e, 8500);
}

static inline long growing_work(struct engine *e, long number)
{
	return 1000 + 11000 * number / e->steps;
}

/* Thirty prefills of any length, and then decodes. */
static inline long bursts_of_work(struct engine *e, long number)
{
	return number % 330 < 30 ? 10000 + below(e, 30000) : 3000;
}

/* On both sides of a border between two classes. */
static inline long two_works(struct engine *e, long number)
{
	(void)number;
	return below(e, 2) ? 3000 : 5000;
}

/* A little of the usual: tokens that are written, a buffer that grows. */
static inline void do_chores(struct engine *e, bool due)
{
	static char block[1 << 16];

	for (int i = 0; i < (due ? 20 : 1); i++)
		must(pwrite(e->file, block, sizeof(block), 0) > 0, "pwrite");
	munmap(mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	       MAPPED_BYTES);
}

/* A lock that others hold for up to a millisecond, in most steps. */
static inline void *hold_lock_often(void *engine)
{
	struct engine *e = engine;

	for (;;) {
		pthread_mutex_lock(&e->lock);
		pause_us(500);
		pthread_mutex_unlock(&e->lock);
		pause_us(500);
	}
	return NULL;
}

/* Waits for a device, as long as its work takes: four times as long as this thread's own. */
static inline void wait_for_device(struct engine *e, bool due)
{
	(void)e;
	pause_us(due ? 64000 : 4000);
}

/* The first steps fault their memory in, as after a start. */
static inline void touch_once(struct engine *e, bool due)
{
	long end = e->touched + (4 << 20);

	(void)due;
	for (; e->touched < FAULT_BYTES && e->touched < end; e->touched += PAGE_BYTES)
		e->memory[e->touched] = 1;
}

/* Each step has new pages, as of an allocator that gives its memory back. */
static inline void touch_some(struct engine *e, bool due)
{
	(void)due;
	madvise(e->memory, SOME_BYTES, MADV_DONTNEED);
	for (long at = 0; at < SOME_BYTES; at += PAGE_BYTES)
		e->memory[at] = 1;
}

/* A worker of its own computes a prefill, and the step waits for that worker. */
static inline void *compute_prefills(void *engine)
{
	struct engine *e = engine;

	for (;;) {
		sem_wait(&e->ask);
		work(60000);
		sem_post(&e->answer);
	}
	return NULL;
}

/* The same with a pool, whose threads take the parts of a prefill from a queue. */
static inline void *compute_parts(void *engine)
{
	struct engine *e = engine;

	pthread_mutex_lock(&e->lock);
	for (;;) {
		while (!e->parts)
			pthread_cond_wait(&e->given, &e->lock);
		e->parts--;
		pthread_mutex_unlock(&e->lock);
		work(PART_US);
		pthread_mutex_lock(&e->lock);
		if (--e->parts_left == 0)
			pthread_cond_signal(&e->done);
	}
	return NULL;
}

static inline void make_pool(struct engine *e)
{
	must(!pthread_cond_init(&e->given, NULL) && !pthread_cond_init(&e->done, NULL),
	     "pthread_cond_init");
	for (int i = 0; i < POOL; i++)
		start_helper(e);
}

static inline void use_pool(struct engine *e, bool due)
{
	if (!due)
		return;
	pthread_mutex_lock(&e->lock);
	e->parts = e->parts_left = PARTS;
	pthread_cond_broadcast(&e->given);
	while (e->parts_left)
		pthread_cond_wait(&e->done, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

/* A member of a crew that computes its part of a prefill, which is the longest. */
static inline void *compute_as_long(void *engine)
{
	struct engine *e = engine;

	for (;;) {
		pthread_barrier_wait(&e->start);
		if (e->due)
			work(60000);
		pthread_barrier_wait(&e->end);
	}
	return NULL;
}

/* A worker that computes prefills, and answers through a descriptor. */
static inline void *answer_when_done(void *engine)
{
	struct engine *e = engine;
	uint64_t one;

	while (read(e->asked[0], &one, sizeof(one)) == sizeof(one)) {
		work(e->due ? 60000 : 300);
		must(write(e->answered[1], &one, sizeof(one)) == sizeof(one), "write");
	}
	return NULL;
}

/* The worker of a team that spins for a while, and then sleeps until there is work. */
static inline void *spin_and_sleep(void *engine)
{
	struct engine *e = engine;
	uint64_t begin;

	e->worker = gettid();
	sem_post(&e->answer);
	for (long round = 1;; round++) {
		begin = clock_ns(CLOCK_MONOTONIC);
		while (__atomic_load_n(&e->round, __ATOMIC_ACQUIRE) < round && !passed(begin, 1000))
			;
		pthread_mutex_lock(&e->lock);
		while (__atomic_load_n(&e->round, __ATOMIC_ACQUIRE) < round)
			pthread_cond_wait(&e->given, &e->lock);
		pthread_mutex_unlock(&e->lock);
		work(LAYER_US);
		__atomic_store_n(&e->arrived, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Rarely the step's thread has more to do, in the middle of the layers: the worker sleeps then. */
static inline void lead_sleepers(struct engine *e, bool due)
{
	for (int i = 0; i < LAYERS; i++) {
		long round = __atomic_add_fetch(&e->round, 1, __ATOMIC_ACQ_REL);

		pthread_mutex_lock(&e->lock);
		pthread_cond_broadcast(&e->given);
		pthread_mutex_unlock(&e->lock);
		work(due && i == LAYERS / 2 ? 60000 : LAYER_US);
		while (__atomic_load_n(&e->arrived, __ATOMIC_ACQUIRE) < round)
			;
	}
}

static inline void find_sleepers(struct engine *e)
{
	must(!pthread_cond_init(&e->given, NULL), "pthread_cond_init");
	start_helper(e);
	sem_wait(&e->answer);
}

static inline void wait_for_worker(struct engine *e, bool due)
{
	if (due)
		ask_helper(e);
}

#endif
