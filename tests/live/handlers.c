/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * handlers TRUTH ROUNDS: steps with signal handlers that take time. The row of each step says how
 * many handlers returned, how many were left by a jump, and how long those that returned took by
 * the thread's CPU clock.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include "judge/engine.h"

enum {
	WORK_US = 1000,
	BURN_US = 300,
	MANY = 20,
	ROWS_MAX = 1000,
};

enum way { NONE, ONE, SEVERAL, NESTED, LEFT, LEFT_NESTED, OTHER_STACK, WAYS };

static const char *const names[WAYS] = {"none", "one",	       "several",    "nested",
					"left", "left_nested", "other_stack"};

struct row {
	enum way way;
	volatile uint64_t handled, left, cpu_ns;
	uint64_t
		away_ns; /* no CPU, from the step before on: the host of a virtual machine had it */
};

/* A handler has no argument, so the row is global. */
static struct row *volatile now;
static sigjmp_buf jump;
static volatile sig_atomic_t depth;

static void burn(uint64_t us)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + us * 1000;

	while (clock_ns(CLOCK_MONOTONIC) < end)
		;
}

static void handle(int number)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	depth++;
	burn(BURN_US);
	if (number == SIGUSR2)
		raise(SIGUSR1);
	depth--;
	now->handled++;
	if (!depth)
		now->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void leave(int number)
{
	(void)number;
	burn(BURN_US);
	now->left++;
	siglongjmp(jump, 1);
}

/* A handler that is left by a jump, on top of one that returns. */
static void handle_over_left(int number)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	(void)number;
	if (!sigsetjmp(jump, 1))
		raise(SIGALRM);
	burn(BURN_US);
	now->handled++;
	now->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

void handlers_step(enum way way);

__attribute__((noinline)) void handlers_step(enum way way)
{
	burn(WORK_US);
	switch (way) {
	case ONE:
		raise(SIGUSR1);
		break;
	case SEVERAL:
		for (int i = 0; i < MANY; i++)
			raise(SIGUSR1);
		break;
	case NESTED:
		raise(SIGUSR2);
		break;
	case LEFT:
		if (!sigsetjmp(jump, 1))
			raise(SIGALRM);
		raise(SIGUSR1);
		break;
	case LEFT_NESTED:
		raise(SIGHUP);
		break;
	case OTHER_STACK:
		raise(SIGWINCH);
		break;
	case NONE:
	case WAYS:
		break;
	}
	burn(WORK_US);
}

static void set_handler(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	must(sigaction(number, &action, NULL) == 0, "sigaction");
}

static void write_truth(FILE *truth, const struct row *rows, long count)
{
	fprintf(truth, "[\n");
	for (long i = 0; i < count; i++)
		fprintf(truth,
			"%s{\"name\": \"%s\", \"handled\": %llu, \"left\": %llu, \"cpu_ns\": %llu, "
			"\"away_ns\": %llu}\n",
			i ? "," : "", names[rows[i].way], (unsigned long long)rows[i].handled,
			(unsigned long long)rows[i].left, (unsigned long long)rows[i].cpu_ns,
			(unsigned long long)rows[i].away_ns);
	fprintf(truth, "]\n");
	fclose(truth);
}

/* Time that the thread was on no CPU, up to a constant. */
static uint64_t away_clock(void)
{
	return clock_ns(CLOCK_MONOTONIC) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

int main(int argc, char **argv)
{
	static struct row rows[ROWS_MAX];
	static char stack_memory[65536];
	stack_t stack = {.ss_sp = stack_memory, .ss_size = sizeof(stack_memory)};
	FILE *truth = open_truth(argv);
	long rounds = number_at(argv, 2, 0), count = 0;
	uint64_t before, last, clock;

	(void)argc;
	must(rounds * WAYS <= ROWS_MAX, "rounds");
	must(sigaltstack(&stack, NULL) == 0, "sigaltstack");
	set_handler(SIGUSR1, handle, 0);
	set_handler(SIGUSR2, handle, 0);
	set_handler(SIGALRM, leave, 0);
	set_handler(SIGHUP, handle_over_left, 0);
	set_handler(SIGWINCH, handle, SA_ONSTACK);
	wait_for_go();
	before = last = away_clock();
	for (long i = 0; i < rounds; i++) {
		for (int way = 0; way < WAYS; way++) {
			now = &rows[count++];
			now->way = (enum way)way;
			handlers_step(now->way);
			/* The two clocks are not read at the same moment. */
			clock = away_clock();
			now->away_ns = clock > before ? clock - before : 0;
			before = last;
			last = clock;
		}
	}
	write_truth(truth, rows, count);
	return 0;
}
