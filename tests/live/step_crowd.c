/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * step_crowd TRUTH THREADS STEPS [PAUSE_US]: THREADS threads at once make STEPS steps each. A step
 * makes 1 + (number of the thread modulo 7) getppid calls and 2 write calls of 1 byte; after it the
 * thread sleeps. TRUTH has each thread's id and counts.
 */
#include <fcntl.h>
#include <time.h>
#include "program.h"
#include "small_threads.h"

struct crowd {
	pthread_barrier_t barrier;
	long steps;
	struct timespec pause;
	int null;
};

struct member {
	pthread_t thread; /* first member, for start_small_threads */
	struct crowd *crowd;
	long number;
	long tid;
	long written;
};

void crowd_step(struct member *member);

STEP void crowd_step(struct member *member)
{
	for (long i = 0; i < 1 + member->number % 7; i++)
		syscall(SYS_getppid);
	for (int i = 0; i < 2; i++)
		member->written += write(member->crowd->null, "x", 1);
	STAY();
}

static void *run_member(void *arg)
{
	struct member *member = arg;
	struct crowd *crowd = member->crowd;

	member->tid = syscall(SYS_gettid);
	pthread_barrier_wait(&crowd->barrier);
	pthread_barrier_wait(&crowd->barrier);
	for (long i = 0; i < crowd->steps; i++) {
		crowd_step(member);
		if (crowd->pause.tv_sec || crowd->pause.tv_nsec)
			nanosleep(&crowd->pause, NULL);
	}
	/* All threads exist at once, until the end. */
	pthread_barrier_wait(&crowd->barrier);
	return NULL;
}

int main(int argc, char **argv)
{
	long count = number_at(argv, 2, 1000), pause_us = number_at(argv, 4, 0);
	struct member *members = calloc((size_t)count, sizeof(*members));
	struct crowd crowd = {
		.steps = number_at(argv, 3, 10),
		.pause = {pause_us / 1000000, pause_us % 1000000 * 1000},
		.null = open("/dev/null", O_WRONLY | O_CLOEXEC),
	};
	FILE *truth;

	if (argc < 2 || !members || crowd.null < 0 ||
	    pthread_barrier_init(&crowd.barrier, NULL, (unsigned int)count + 1))
		return EXIT_FAILURE;
	for (long i = 0; i < count; i++)
		members[i] = (struct member){.crowd = &crowd, .number = i};
	if (start_small_threads(members, sizeof(*members), count, run_member) < count)
		exit(77);
	pthread_barrier_wait(&crowd.barrier);
	wait_for_go();
	pthread_barrier_wait(&crowd.barrier);
	pthread_barrier_wait(&crowd.barrier);
	truth = open_truth(argv);
	fprintf(truth, "{\"steps\": %ld, \"threads\": {", crowd.steps);
	for (long i = 0; i < count; i++) {
		pthread_join(members[i].thread, NULL);
		fprintf(truth, "%s\"%ld\": [%ld, %ld]", i ? ", " : "", members[i].tid,
			1 + members[i].number % 7, members[i].written / crowd.steps);
	}
	fprintf(truth, "}}\n");
	free(members);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
