/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * leader TRUTH STEPS AFTER: a second thread makes STEPS steps (my_step), of which one sleeps after
 * two thirds of them. The first thread ends by pthread_exit after AFTER steps, or before the go if
 * AFTER is 0.
 */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include "program.h"

struct run {
	char **argv;
	long steps;
	long after;
	sem_t leave;
};

void my_step(long sleep_ns);

STEP void my_step(long sleep_ns)
{
	const struct timespec sleep = {.tv_nsec = sleep_ns};

	syscall(SYS_getppid);
	syscall(SYS_getppid);
	if (sleep_ns)
		nanosleep(&sleep, NULL);
	STAY();
}

static void *run_steps(void *arg)
{
	const struct timespec between = {.tv_nsec = 500000}, rest = {.tv_nsec = 50000000};
	struct run *run = arg;
	FILE *truth;

	if (!run->after) {
		sem_post(&run->leave);
		nanosleep(&rest, NULL);
	}
	wait_for_go();
	for (long i = 0; i < run->steps; i++) {
		my_step(i == run->steps * 2 / 3 ? 50000000 : 0);
		nanosleep(&between, NULL);
		if (i + 1 != run->after)
			continue;
		sem_post(&run->leave);
		nanosleep(&rest, NULL);
	}
	truth = open_truth(run->argv);
	fprintf(truth, "{\"steps\": %ld, \"getppid\": %ld}\n", run->steps, run->steps * 2);
	exit(fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
	static struct run run;
	pthread_t thread;

	run.argv = argv;
	run.steps = number_at(argv, 2, 1);
	run.after = number_at(argv, 3, 0);
	sem_init(&run.leave, 0, 0);
	if (pthread_create(&thread, NULL, run_steps, &run))
		return EXIT_FAILURE;
	while (sem_wait(&run.leave))
		;
	pthread_exit(NULL);
}
