/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * callers TRUTH: calls functions that end in a jump, once from each of many call sites: my_tail
 * from its own file and through my_wrapper; strtol of the C library through the PLT and the GOT;
 * my_far in the same ways and through pointers; my_inner directly and within calls of my_far.
 */
#include <time.h>
#include "program.h"

int other(int number);
int my_tail(int number);
int my_wrapper(int number);
int my_inner(int number);
int my_far(int number);
int my_last(int number);
int my_chosen(int number);

long strtol_by_plt(const char *text, char **end, int base) __asm__("strtol");
long strtol_by_got(const char *text, char **end, int base) __asm__("strtol") __attribute__((noplt));

static int calls, inner_calls;

STEP int other(int number)
{
	STAY();
	return number;
}

STEP int my_tail(int number)
{
	syscall(SYS_getppid);
	return other(number);
}

/* Ends with a jump to my_tail. */
STEP int my_wrapper(int number)
{
	return my_tail(number + 1);
}

STEP int my_inner(int number)
{
	syscall(SYS_getuid);
	STAY();
	return number;
}

/* Calls an inner step, deeper in the stack, and ends with a jump to another step. */
STEP int my_far(int number)
{
	number += my_inner(number);
	return my_last(number);
}

STEP int my_last(int number)
{
	syscall(SYS_getgid);
	STAY();
	return number;
}

static int my_choice(int number)
{
	syscall(SYS_getgid);
	return other(number);
}

static int (*pick(void))(int number)
{
	return my_choice;
}

int my_chosen(int number) __attribute__((ifunc("pick")));

#define FIVE(call)                                                                                 \
	do {                                                                                       \
		call;                                                                              \
		call;                                                                              \
		call;                                                                              \
		call;                                                                              \
		call;                                                                              \
	} while (0)

static void call_all(int (*volatile *far)(int number))
{
	FIVE(FIVE(calls += my_tail(1) > 0));
	FIVE(calls += my_wrapper(1) > 0);
	FIVE(strtol_by_plt("1", NULL, 10));
	FIVE(strtol_by_got("1", NULL, 10));
	/* The tool learns of such a call site only after its only call. */
	FIVE((*far)(1));
	FIVE(inner_calls += my_inner(1) > 0);
	my_last(1);
	FIVE(my_chosen(1));
}

int main(int argc, char **argv)
{
	int (*volatile far)(int number) = my_far;
	FILE *truth;

	wait_for_go();
	call_all(&far);
	truth = open_truth(argv);
	fprintf(truth, "{\"my_tail\": %d, \"strtol\": 10, \"my_far\": 5, \"my_inner\": %d}\n",
		calls, inner_calls);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
