/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * call_sites TRUTH WHAT SECONDS: for that time, or until SIGUSR1, calls my_step, which returns, and
 * my_tail, which ends in a jump. WHAT is "alone": from call sites of their own; "shared": from one
 * call site that calls other functions too, a hundred times as often; "deep": calls my_deep
 * instead, which calls itself; "nowhere": from code that is in no file; "forked": as nowhere, then
 * once in each of 20 children; "moved": my_tail by a pointer, once on a stack that is unmapped
 * then, and from then on on one below; "both": from call sites of their own, and my_step from
 * nowhere, too; "later": the same, but from nowhere in the second half of the time only. "nowhere"
 * of the account counts these calls of both.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include "program.h"

#define CHILDREN    20
#define MANY	    80
#define STACK_BYTES 65536

int my_step(int number);
int my_tail(int number);
int my_deep(int number);
int other(int number);
int dispatch(int (*function)(int number), int number);
void call_own(int number);

STEP int other(int number)
{
	STAY();
	return number;
}

STEP int my_step(int number)
{
	syscall(SYS_getppid);
	STAY();
	return number;
}

STEP int my_tail(int number)
{
	syscall(SYS_getppid);
	return other(number);
}

/* One step, however often it calls itself. */
STEP int my_deep(int number)
{
	syscall(SYS_getppid);
	if (number)
		number += my_deep(number - 1);
	STAY();
	return number;
}

STEP int dispatch(int (*function)(int number), int number)
{
	int result = function(number);

	STAY();
	return result;
}

/* int call(int number, int (*function)(int number)), which calls function. */
static int (*make_call(void))(int number, int (*function)(int number))
{
	static const unsigned char code[] = {
		0x48, 0x83, 0xec, 0x08, /* sub $8,%rsp */
		0xff, 0xd6,		/* call *%rsi */
		0x48, 0x83, 0xc4, 0x08, /* add $8,%rsp */
		0xc3,			/* ret */
	};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED) {
		perror("mmap");
		exit(EXIT_FAILURE);
	}
	memcpy(page, code, sizeof(code));
	return (int (*)(int, int (*)(int)))page;
}

STEP void call_own(int number)
{
	my_step(number);
	my_tail(number);
	STAY();
}

static void call_in_children(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child) {
			call_own(1);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

/* The tool has time to look at where they call from, and to see their ends. */
static void call_in_many(int (*call)(int number, int (*function)(int number)))
{
	const struct timespec time = {.tv_nsec = 500000000};

	for (int i = 0; i < MANY; i++) {
		if (fork())
			continue;
		call(1, my_step);
		nanosleep(&time, NULL);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	nanosleep(&time, NULL);
}

static volatile sig_atomic_t told_to_end;

static void on_signal(int number)
{
	(void)number;
	told_to_end = 1;
}

static ucontext_t home, fiber;

/* Runs function on a stack of its own. */
static void run_on(void *stack, void (*function)(void))
{
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = STACK_BYTES;
	fiber.uc_link = &home;
	makecontext(&fiber, function, 0);
	swapcontext(&home, &fiber);
}

static long moved_calls;
static double moved_end;

static void call_once_there(void)
{
	dispatch(my_tail, 1);
	moved_calls++;
}

static double now_s(void);

static void call_on_there(void)
{
	const struct timespec pause = {.tv_nsec = 500000};

	while (now_s() < moved_end) {
		call_once_there();
		nanosleep(&pause, NULL);
	}
}

static void call_on_stacks(void)
{
	char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stacks == MAP_FAILED)
		exit(EXIT_FAILURE);
	run_on(stacks + STACK_BYTES, call_once_there);
	munmap(stacks + STACK_BYTES, STACK_BYTES);
	run_on(stacks, call_on_there);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void call_once(const char *what, int (*call)(int number, int (*function)(int number)))
{
	if (*what == 'd') {
		my_deep(2);
	} else if (*what == 'n') {
		call(1, my_step);
		call(1, my_tail);
	} else if (*what == 's') {
		dispatch(my_step, 1);
		dispatch(my_tail, 1);
		for (int i = 0; i < 100; i++)
			dispatch(other, i);
	} else {
		call_own(1);
	}
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 500000};
	int (*call)(int number, int (*function)(int number)) = make_call();
	long calls = 0, nowhere = 0;
	double end, half;
	FILE *truth;

	signal(SIGUSR1, on_signal);
	wait_for_go();
	if (!strcmp(argv[2], "many")) {
		call_in_many(call);
		calls += MANY;
	}
	end = now_s() + atof(argv[3]);
	half = end - (*argv[2] == 'b' ? 1 : 0.5) * atof(argv[3]);
	if (!strcmp(argv[2], "moved")) {
		moved_end = end;
		call_on_stacks();
		calls = moved_calls;
		end = 0;
	}
	while (now_s() < end && !told_to_end) {
		call_once(argv[2], call);
		calls++;
		if ((*argv[2] == 'b' || *argv[2] == 'l') && now_s() > half)
			nowhere += call(1, my_step);
		nanosleep(&pause, NULL);
	}
	if (*argv[2] == 'f') {
		call_in_children();
		calls += CHILDREN;
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"calls\": %ld, \"nowhere\": %ld}\n", calls, nowhere);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
