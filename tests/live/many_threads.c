/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * many_threads TRUTH COUNT [LATE [ENDING [EARLY]]]: COUNT threads that wait, and until the go one
 * more each millisecond, EARLY at most. After the go LATE more begin to wait. 2 s later every other
 * one of the first ends, ENDING of them at most; again 2 s later each remaining one of these, and
 * the first thread, makes 10 getppid calls.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include "program.h"
#include "small_threads.h"

#define CALLS 10

struct crowd {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int phase;   /* 0: all wait; 1: odd ones end; 2: the others call; 3: the others end */
	long ending; /* of the odd ones, the first */
	_Atomic long done;
};

struct member {
	pthread_t thread; /* first member, for start_small_threads */
	struct crowd *crowd;
	long number;
};

static void wait_for_phase(struct crowd *crowd, int phase)
{
	pthread_mutex_lock(&crowd->mutex);
	while (crowd->phase < phase)
		pthread_cond_wait(&crowd->changed, &crowd->mutex);
	pthread_mutex_unlock(&crowd->mutex);
}

static void set_phase(struct crowd *crowd, int phase)
{
	pthread_mutex_lock(&crowd->mutex);
	crowd->phase = phase;
	pthread_cond_broadcast(&crowd->changed);
	pthread_mutex_unlock(&crowd->mutex);
}

static void make_calls(struct crowd *crowd)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	atomic_fetch_add(&crowd->done, 1);
}

static bool ends_early(const struct member *member)
{
	return member->number % 2 && member->number / 2 < member->crowd->ending;
}

static void *run_member(void *arg)
{
	struct member *member = arg;

	if (ends_early(member)) {
		wait_for_phase(member->crowd, 1);
		return NULL;
	}
	wait_for_phase(member->crowd, 2);
	make_calls(member->crowd);
	wait_for_phase(member->crowd, 3);
	return NULL;
}

static void *run_late(void *arg)
{
	struct member *member = arg;

	wait_for_phase(member->crowd, 3);
	return NULL;
}

static struct member *start_members(struct crowd *crowd, long count, void *(*run)(void *))
{
	struct member *members = calloc((size_t)count + 1, sizeof(*members));

	if (!members)
		exit(EXIT_FAILURE);
	for (long i = 0; i < count; i++)
		members[i] = (struct member){.crowd = crowd, .number = i};
	if (start_small_threads(members, sizeof(*members), count, run) < count)
		exit(77);
	return members;
}

/* Threads that begin one after the other, as while the tool attaches. */
struct trickle {
	pthread_t thread;
	struct member *members;
	long count, started;
	_Atomic bool ends;
};

static void *run_trickle(void *arg)
{
	const struct timespec tick = {.tv_nsec = 1000000};
	struct trickle *trickle = arg;

	for (; trickle->started < trickle->count && !trickle->ends; trickle->started++) {
		struct member *member = &trickle->members[trickle->started];

		if (!start_small_threads(member, sizeof(*member), 1, run_late))
			break;
		nanosleep(&tick, NULL);
	}
	return NULL;
}

static void start_trickle(struct trickle *trickle, struct crowd *crowd)
{
	trickle->members = calloc((size_t)trickle->count + 1, sizeof(*trickle->members));
	if (!trickle->members)
		exit(EXIT_FAILURE);
	for (long i = 0; i < trickle->count; i++)
		trickle->members[i].crowd = crowd;
	if (trickle->count && pthread_create(&trickle->thread, NULL, run_trickle, trickle))
		exit(77);
}

static void end_trickle(struct trickle *trickle)
{
	trickle->ends = true;
	if (trickle->count)
		pthread_join(trickle->thread, NULL);
}

static void join_members(struct member *members, long count)
{
	for (long i = 0; i < count; i++)
		pthread_join(members[i].thread, NULL);
	free(members);
}

int main(int argc, char **argv)
{
	static struct crowd crowd = {
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};
	const struct timespec quiet = {.tv_sec = 2}, tick = {.tv_nsec = 5000000};
	long count = number_at(argv, 2, 100), late = number_at(argv, 3, 0), left = count + 1;
	struct trickle trickle = {.count = number_at(argv, 5, 0)};
	struct member *members, *more;
	FILE *truth;

	crowd.ending = number_at(argv, 4, count);
	members = start_members(&crowd, count, run_member);
	start_trickle(&trickle, &crowd);
	wait_for_go();
	end_trickle(&trickle);
	more = start_members(&crowd, late, run_late);
	if (late)
		nanosleep(&quiet, NULL);
	set_phase(&crowd, 1);
	for (long i = 0; i < count; i++) {
		if (!ends_early(&members[i]))
			continue;
		pthread_join(members[i].thread, NULL);
		left--;
	}
	nanosleep(&quiet, NULL);
	set_phase(&crowd, 2);
	make_calls(&crowd);
	while (atomic_load(&crowd.done) < left)
		nanosleep(&tick, NULL);
	set_phase(&crowd, 3);
	for (long i = 0; i < count; i++) {
		if (!ends_early(&members[i]))
			pthread_join(members[i].thread, NULL);
	}
	free(members);
	join_members(more, late);
	join_members(trickle.members, trickle.started);
	truth = open_truth(argv);
	fprintf(truth, "{\"threads\": %ld, \"left\": %ld, \"getppid\": %ld}\n",
		count + 1 + late + trickle.started + (trickle.count > 0), left, left * CALLS);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
