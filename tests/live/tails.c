/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * tails TRUTH: functions that end in a jump to another one, each called in turn. The account has
 * for each call how long it slept, and how long it took by the clock around it.
 */
#include <setjmp.h>
#include <time.h>
#include "program.h"

#define ROUNDS	 120
#define KINDS	 (sizeof(kinds) / sizeof(kinds[0]))
#define SLEEP_US 500

struct node {
	const struct node *next;
	int (*run)(const struct node *node);
};

int by_jump(const struct node *node);
int by_plt(const struct node *node);
int by_got(const struct node *node);
int by_two(const struct node *node);
int by_register(const struct node *node);
int by_chain(const struct node *node);
int by_branch(const struct node *node);
int by_throw(const struct node *node);
int stays(const struct node *node);
int sleeps(const struct node *node);

/* usleep in libc: through the PLT and, by its other declaration, through the GOT alone. */
extern int usleep_by_got(useconds_t us) __asm__("usleep") __attribute__((noplt));

static jmp_buf thrown;

STEP int sleeps(const struct node *node)
{
	usleep(SLEEP_US);
	STAY();
	return 0;
}

STEP int by_jump(const struct node *node)
{
	return sleeps(node);
}

STEP int by_plt(const struct node *node)
{
	return usleep(SLEEP_US);
}

STEP int by_got(const struct node *node)
{
	return usleep_by_got(SLEEP_US);
}

STEP int by_two(const struct node *node)
{
	return by_jump(node);
}

STEP int by_register(const struct node *node)
{
	return node->run(node);
}

/* Jumps to itself through memory, and finally to usleep. */
STEP int by_chain(const struct node *node)
{
	return node->next ? node->next->run(node->next) : usleep(SLEEP_US);
}

STEP int by_branch(const struct node *node)
{
	return node->next ? sleeps(node) : by_plt(node);
}

/* Every third call is left by longjmp, and the next one comes from the same place. */
STEP int by_throw(const struct node *node)
{
	static int calls;

	if (++calls % 3 == 0)
		longjmp(thrown, 1);
	return sleeps(node);
}

STEP int stays(const struct node *node)
{
	int result = sleeps(node);

	STAY();
	return result;
}

static const struct node leaf = {NULL, sleeps};
static const struct node last = {NULL, by_chain};
static const struct node middle = {&last, by_chain};
static const struct node chain = {&middle, by_chain};

static const struct {
	const char *name;
	int (*run)(const struct node *node);
	const struct node *node;
} kinds[] = {
	{"by_jump", by_jump, &leaf},
	{"by_plt", by_plt, &leaf},
	{"by_got", by_got, &leaf},
	{"by_two", by_two, &leaf},
	{"by_register", by_register, &leaf},
	{"by_chain", by_chain, &chain},
	{"by_branch", by_branch, &chain},
	{"by_throw", by_throw, &leaf},
	{"stays", stays, &leaf},
};

static double took_us[KINDS][ROUNDS];

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* One call site for each function, so that no two functions share one. */
#define CALL(index)                                                                                \
	do {                                                                                       \
		double start = now_us();                                                           \
                                                                                                   \
		kinds[index].run(kinds[index].node);                                               \
		took_us[index][round] = now_us() - start;                                          \
		usleep(100);                                                                       \
	} while (0)

static void run(int round)
{
	CALL(0);
	CALL(1);
	CALL(2);
	CALL(3);
	CALL(4);
	CALL(5);
	CALL(6);
	if (!setjmp(thrown))
		CALL(7);
	CALL(8);
}

int main(int argc, char **argv)
{
	FILE *truth;

	wait_for_go();
	for (int round = 0; round < ROUNDS; round++)
		run(round);
	truth = open_truth(argv);
	fprintf(truth, "{\"sleep_us\": %d, \"took_us\": {", SLEEP_US);
	for (size_t i = 0; i < KINDS; i++) {
		fprintf(truth, "%s\"%s\": [", i ? ", " : "", kinds[i].name);
		for (int round = 0; round < ROUNDS; round++)
			fprintf(truth, "%s%.3f", round ? ", " : "", took_us[i][round]);
		fprintf(truth, "]");
	}
	fprintf(truth, "}}\n");
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
