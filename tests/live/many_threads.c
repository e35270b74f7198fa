/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * many_threads TRUTH COUNT: COUNT threads that wait. After the go every other one ends; 2 s later
 * each remaining thread, and the first thread, makes 10 getppid calls.
 */
#include <stdatomic.h>
#include <time.h>
#include "program.h"
#include "small_threads.h"

#define CALLS 10

struct crowd {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int phase; /* 0: all wait; 1: odd ones end; 2: the others call; 3: the others end */
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

static void *run_member(void *arg)
{
	struct member *member = arg;

	wait_for_phase(member->crowd, member->number % 2 ? 1 : 2);
	if (member->number % 2 == 0) {
		make_calls(member->crowd);
		wait_for_phase(member->crowd, 3);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct crowd crowd = {
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};
	const struct timespec quiet = {.tv_sec = 2}, tick = {.tv_nsec = 5000000};
	long count = number_at(argv, 2, 100), left;
	struct member *members = calloc((size_t)count, sizeof(*members));
	FILE *truth;

	if (!members)
		return EXIT_FAILURE;
	for (long i = 0; i < count; i++)
		members[i] = (struct member){.crowd = &crowd, .number = i};
	if (start_small_threads(members, sizeof(*members), count, run_member) < count)
		exit(77);
	wait_for_go();
	set_phase(&crowd, 1);
	for (long i = 1; i < count; i += 2)
		pthread_join(members[i].thread, NULL);
	nanosleep(&quiet, NULL);
	set_phase(&crowd, 2);
	make_calls(&crowd);
	left = (count + 1) / 2 + 1;
	while (atomic_load(&crowd.done) < left)
		nanosleep(&tick, NULL);
	set_phase(&crowd, 3);
	for (long i = 0; i < count; i += 2)
		pthread_join(members[i].thread, NULL);
	free(members);
	truth = open_truth(argv);
	fprintf(truth, "{\"threads\": %ld, \"left\": %ld, \"getppid\": %ld}\n", count + 1, left,
		left * CALLS);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
