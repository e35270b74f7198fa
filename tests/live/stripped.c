/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * stripped TRUTH STEPS [TWO]: an engine whose step has no name once it is stripped, but contains
 * texts for errors. A small function that the step calls contains one of them too. Makes STEPS
 * steps; 0: runs until SIGTERM. TRUTH is the number of steps.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "program.h"

#define STEP_NS 2000000

int check_tokens(long token);
int check_cache(long token);
int model_step(long token);

/* Set by the signal handler. */
static volatile sig_atomic_t over;

static void end(int signo)
{
	(void)signo;
	over = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

STEP int check_tokens(long token)
{
	return token < 0 ? printf("synchronous model execution panicked: %ld\n", token) : 0;
}

/* As large as the step of an engine. */
STEP int model_step(long token)
{
	uint64_t end_ns = now_ns() + STEP_NS;
	int said = check_tokens(token);

	if (token < -1) {
		__asm__ volatile(".skip 2000, 0x90");
		said += printf("synchronous model execution panicked: %ld\n", token);
	}
	if (token < -2)
		said += printf("no such expert: %ld\n", token);
	while (now_ns() < end_ns)
		;
	return said;
}

/* Not a step, but as large as one and with the same text. */
STEP int check_cache(long token)
{
	uint64_t end_ns = now_ns() + STEP_NS / 2;
	int said = 0;

	if (token < -1) {
		__asm__ volatile(".skip 2000, 0x90");
		said += printf("synchronous model execution panicked: %ld\n", token + 1);
	}
	while (now_ns() < end_ns)
		;
	return said;
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	long steps = number_at(argv, 2, 0), made = 0;
	bool two = argc > 3;
	struct sigaction action = {.sa_handler = end};
	FILE *truth = open_truth(argv);

	sigaction(SIGTERM, &action, NULL);
	wait_for_go();
	while (!over && (!steps || made < steps)) {
		model_step(made++);
		if (two)
			check_cache(made);
		nanosleep(&pause, NULL);
	}
	fprintf(truth, "{\"steps\": %ld}\n", made);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
