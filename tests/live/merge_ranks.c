/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * merge_ranks STEPS EVERY US: two ranks, each a process. A step (model_step) computes for about a
 * millisecond, then all ranks wait for each other (all_reduce). Every EVERYth step of the second
 * rank sleeps for US before that. Prints "ranks PID PID", and begins when a line is read.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((noinline, noclone, visibility("default")))

struct shared {
	pthread_barrier_t barrier;
};

int model_step(int rank, int step, int every, long sleep_us);
int all_reduce(struct shared *shared);

static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

EXPORTED int model_step(int rank, int step, int every, long sleep_us)
{
	struct timespec time = {0, sleep_us * 1000};

	/* Each step takes another time, as in an engine. */
	compute(700 + (long)((unsigned int)step * 2654435761u >> 23) % 600);
	if (rank && step % every == every - 1)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	return step;
}

EXPORTED int all_reduce(struct shared *shared)
{
	int last = pthread_barrier_wait(&shared->barrier);

	/* Not a tail call: the step must end here. */
	return last ? 1 : 0;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 1000, every = argc > 2 ? atoi(argv[2]) : 10, rank;
	long sleep_us = argc > 3 ? atol(argv[3]) : 3000;
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attr;
	volatile int sum = 0;
	char line[16];
	pid_t child;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &attr, 2);
	child = fork();
	rank = child == 0;
	if (rank)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!rank) {
		printf("ranks %d %d\n", getpid(), child);
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 1;
	}
	pthread_barrier_wait(&shared->barrier);
	for (int i = 0; i < steps; i++) {
		sum += model_step(rank, i, every, sleep_us);
		sum += all_reduce(shared);
	}
	if (!rank)
		waitpid(child, NULL, 0);
	return 0;
}
