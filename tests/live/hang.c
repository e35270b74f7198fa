/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * hang TRUTH RELEASE: an engine with four steps (hang_step) that do not end before the file RELEASE
 * is there, which is removed then: in a read, in its own code, in a loop of short calls, and at a
 * lock. Healthy steps come before each, and a pause of 1.5 s after it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include "program.h"

#define HEALTHY 20

static int pipe_fds[2];
static atomic_int hangs, released, ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *release_path;
static const struct timespec blink = {.tv_nsec = 10000000};
static unsigned long long called_ns, begun_ns; /* of the last step: before it, and in it */

void hang_step(void (*body)(void));

static unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (unsigned long long)time.tv_sec * 1000000000 + (unsigned long long)time.tv_nsec;
}

static void rest(void)
{
	nanosleep(&blink, NULL);
}

static void wait_in_read(void)
{
	char byte;

	if (read(pipe_fds[0], &byte, 1) != 1)
		abort();
}

static void compute(void)
{
	while (!released)
		;
}

static void yield(void)
{
	while (!released)
		sched_yield();
}

static void wait_for_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

STEP void hang_step(void (*body)(void))
{
	begun_ns = now();
	body();
	STAY();
}

/* Holds the lock but for the time until the step has ended. */
static void *release(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!hangs || unlink(release_path))
			nanosleep(&blink, NULL);
		hangs = 0;
		released = 1;
		if (write(pipe_fds[1], "", 1) != 1)
			abort();
		pthread_mutex_unlock(&lock);
		while (!ended)
			nanosleep(&blink, NULL);
		ended = 0;
		pthread_mutex_lock(&lock);
	}
	return unused;
}

/* What was written for a step that did not read it. */
static void empty_pipe(void)
{
	char bytes[16];

	if (read(pipe_fds[0], bytes, sizeof(bytes)) < 0)
		abort();
}

int main(int argc, char **argv)
{
	static void (*const bodies[])(void) = {wait_in_read, compute, yield, wait_for_lock};
	static const char *const names[] = {"read", "compute", "yield", "lock"};
	const struct timespec idle = {.tv_sec = 1, .tv_nsec = 500000000};
	FILE *truth = open_truth(argv);
	pthread_t thread;

	if (argc != 3 || pipe(pipe_fds))
		return EXIT_FAILURE;
	release_path = argv[2];
	pthread_create(&thread, NULL, release, NULL);
	wait_for_go();
	fprintf(truth, "{\"healthy\": %d, \"hangs\": [", HEALTHY * 4);
	for (int i = 0; i < 4; i++) {
		unsigned long long end_ns;

		for (int j = 0; j < HEALTHY; j++)
			hang_step(rest);
		released = 0;
		hangs = 1;
		called_ns = now();
		hang_step(bodies[i]);
		end_ns = now();
		ended = 1;
		if (i)
			empty_pipe();
		fprintf(truth,
			"%s{\"name\": \"%s\", \"called_ns\": %llu, \"begin_ns\": %llu, "
			"\"end_ns\": %llu}",
			i ? ", " : "", names[i], called_ns, begun_ns, end_ns);
		nanosleep(&idle, NULL);
	}
	fprintf(truth, "], \"lock\": %lu, \"tid\": %d}\n", (unsigned long)&lock, getpid());
	fclose(truth);
	return EXIT_SUCCESS;
}
