/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * short_calls TRUTH FILE: steps (my_step) of a millisecond with a few calls, of which every
 * fortieth, but for the first second and a half, makes thousands of short calls, each time in
 * another function: it maps memory, or writes single bytes, or asks for a file's state from two
 * places, from one of them four times as often.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include "program.h"

/* What is usual for a call is learnt at first; then a stack of one that takes longer is copied. */
enum { STEPS = 720, FIRST = 240, EVERY = 40, WAYS = 3, USUAL = 10, MANY = 4000 };

static int file;

static void spend(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

STEP void map_pages(int times);
void map_pages(int times)
{
	for (int i = 0; i < times; i++) {
		void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED || munmap(page, 4096))
			exit(EXIT_FAILURE);
	}
	STAY();
}

STEP void write_bytes(int times);
void write_bytes(int times)
{
	for (int i = 0; i < times; i++)
		if (write(file, "x", 1) != 1)
			exit(EXIT_FAILURE);
	STAY();
}

static void ask_state(void)
{
	struct stat state;

	if (fstat(file, &state))
		exit(EXIT_FAILURE);
}

STEP void ask_often(int times);
void ask_often(int times)
{
	for (int i = 0; i < 4 * times; i++)
		ask_state();
	STAY();
}

STEP void ask_seldom(int times);
void ask_seldom(int times)
{
	for (int i = 0; i < times; i++)
		ask_state();
	STAY();
}

STEP void my_step(int way);
void my_step(int way)
{
	spend(1000);
	map_pages(way == 0 ? MANY : USUAL);
	write_bytes(way == 1 ? 4 * MANY : USUAL);
	/* Stacks are copied at doublings, so of the last fifth there is one at most. */
	ask_often(way == 2 ? MANY : USUAL);
	ask_seldom(way == 2 ? MANY : USUAL);
	STAY();
}

int main(int argc, char **argv)
{
	FILE *truth;
	int slow = 0;

	file = argc > 2 ? open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
	if (file < 0)
		return EXIT_FAILURE;
	/* Beside other work it would mostly wait for a CPU. */
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	wait_for_go();
	for (int i = 1; i <= STEPS; i++) {
		my_step(i % EVERY || i <= FIRST ? -1 : slow++ % WAYS);
		usleep(5000);
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"steps\": %d, \"slow\": %d}\n", STEPS, slow);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
