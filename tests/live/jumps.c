/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * jumps TRUTH FROM NAME CALLS [OTHERS [PAUSE]]: calls a function that ends in a jump CALLS times,
 * with pauses of PAUSE microseconds. FROM is "nowhere": from code that is in no file; "shared":
 * from a call site that calls other functions too, twenty times as often; or "forked": as nowhere,
 * then once in each of 20 children. OTHERS: calls a second that another thread makes of the
 * function that by_hot jumps to; 0: as many as it can; -1: none. The account has the minimum and
 * maximum length of each call, by the clock read within it and around it.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "program.h"

#define CALLS_MAX 20000
#define SLEEP_US  100
#define SPIN_NS	  20000
#define CHILDREN  20

struct node {
	const struct node *next;
	int (*run)(const struct node *node);
	int ways; /* which of its returns leaf takes */
};

typedef int function(const struct node *node);

function leaf, brief, by_jump, by_plt, by_got, by_two, by_branch, by_register, by_memory, by_even,
	by_odd, by_deep, by_throw, by_hot, by_late;
int dispatch(function *run, const struct node *node);

/* usleep in libc: through the PLT and, by its other declaration, through the GOT alone. */
extern int usleep_by_got(useconds_t us) __asm__("usleep") __attribute__((noplt));

static uint64_t begun_ns, ended_ns;
static jmp_buf thrown;
static volatile bool done;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Several returns with no code in common. */
STEP int leaf(const struct node *node)
{
	uint64_t until;

	if (!node)
		return 0;
	begun_ns = begun_ns ? begun_ns : now_ns();
	until = now_ns() + SPIN_NS;
	if (node->ways) {
		syscall(SYS_getppid);
		while ((ended_ns = now_ns()) < until)
			;
		return 1;
	}
	while ((ended_ns = now_ns()) < until)
		;
	syscall(SYS_getuid);
	ended_ns = now_ns();
	return 2;
}

STEP int brief(const struct node *node)
{
	STAY();
	return node != NULL;
}

STEP int by_jump(const struct node *node)
{
	return leaf(node);
}

STEP int by_plt(const struct node *node)
{
	return usleep(SLEEP_US);
}

STEP int by_got(const struct node *node)
{
	return usleep_by_got(SLEEP_US);
}

/*
 * From its 1,000th call on it jumps to another function of libc, which the linker binds at that
 * moment.
 */
STEP int by_late(const struct node *node)
{
	static int calls;

	return ++calls < 1000 ? usleep(SLEEP_US) : sched_yield();
}

STEP int by_two(const struct node *node)
{
	return by_jump(node);
}

STEP int by_branch(const struct node *node)
{
	return node->ways ? leaf(node) : by_jump(node);
}

STEP int by_register(const struct node *node)
{
	int (*run)(const struct node *node) = node->run;

	__asm__("" : "+a"(run));
	return run(node);
}

STEP int by_memory(const struct node *node)
{
	return node->run(node);
}

/* The two functions jump to each other, and finally to leaf. */
STEP int by_even(const struct node *node)
{
	syscall(SYS_getppid);
	return node->next ? by_odd(node->next) : leaf(node);
}

STEP int by_odd(const struct node *node)
{
	syscall(SYS_getppid);
	return node->next ? by_even(node->next) : leaf(node);
}

/* The function that it jumps to calls it again, and is called by it. */
STEP int by_deep(const struct node *node)
{
	if (node->next) {
		leaf(node);
		by_deep(node->next);
	}
	return leaf(node);
}

/* Every third call is left by longjmp. */
STEP int by_throw(const struct node *node)
{
	static int calls;

	if (++calls % 3 == 0)
		longjmp(thrown, 1);
	return leaf(node);
}

STEP int by_hot(const struct node *node)
{
	syscall(SYS_getppid);
	return brief(node);
}

STEP int dispatch(function *run, const struct node *node)
{
	int result = run(node);

	STAY();
	return result;
}

static const struct node last = {NULL, leaf, 0};
static const struct node fourth = {&last, leaf, 1};
static const struct node third = {&fourth, leaf, 0};
static const struct node second = {&third, leaf, 1};

static const struct {
	const char *name;
	function *run;
	const struct node *nodes[2];
} kinds[] = {
	{"by_jump", by_jump, {&last, &fourth}},		{"by_plt", by_plt, {&last, &fourth}},
	{"by_got", by_got, {&last, &fourth}},		{"by_two", by_two, {&last, &fourth}},
	{"by_late", by_late, {&last, &fourth}},		{"by_branch", by_branch, {&last, &fourth}},
	{"by_register", by_register, {&last, &fourth}}, {"by_memory", by_memory, {&last, &fourth}},
	{"by_even", by_even, {&third, &second}},	{"by_deep", by_deep, {&third, &second}},
	{"by_throw", by_throw, {&last, &fourth}},	{"by_hot", by_hot, {&last, &fourth}},
};

/* int call(function *run, node), which calls run. */
static int (*make_call(void))(function *run, const struct node *node)
{
	static const unsigned char code[] = {
		0x48, 0x83, 0xec, 0x08, /* sub $8,%rsp */
		0x48, 0x89, 0xf8,	/* mov %rdi,%rax */
		0x48, 0x89, 0xf7,	/* mov %rsi,%rdi */
		0xff, 0xd0,		/* call *%rax */
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
	return (int (*)(function *, const struct node *))page;
}

static uint64_t least_ns[CALLS_MAX], most_ns[CALLS_MAX];
static long calls, others;

static void call_once(int (*call)(function *run, const struct node *node), function *run,
		      const struct node *node)
{
	uint64_t start;

	begun_ns = ended_ns = 0;
	start = now_ns();
	if (!setjmp(thrown))
		call(run, node);
	most_ns[calls] = now_ns() - start;
	least_ns[calls] = ended_ns - begun_ns;
	calls++;
}

/* Calls the function in which the other thread's steps end. */
static void *call_others(void *rate)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const long at_once = *(const long *)rate ? *(const long *)rate / 1000 : 1000;

	while (!done) {
		for (long i = 0; i < at_once && !done; i++)
			others += brief(&last);
		if (*(const long *)rate)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

static void run_all(const char *from, size_t kind, long count, long pause_us)
{
	const struct timespec pause = {.tv_nsec = pause_us * 1000};
	int (*call)(function * run, const struct node *node) =
		*from == 's' ? dispatch : make_call();

	for (long i = 0; i < count && i < CALLS_MAX; i++) {
		call_once(call, kinds[kind].run, kinds[kind].nodes[i & 1]);
		for (int j = 0; *from == 's' && j < 20; j++)
			dispatch(brief, &last);
		nanosleep(&pause, NULL);
	}
	for (int i = 0; *from == 'f' && i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child) {
			call(kinds[kind].run, kinds[kind].nodes[i & 1]);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static void write_truth(char **argv)
{
	FILE *truth = open_truth(argv);

	fprintf(truth, "{\"calls\": %ld, \"others\": %ld, \"sleep_us\": %d, \"took_us\": [", calls,
		others, SLEEP_US);
	for (long i = 0; i < calls; i++)
		fprintf(truth, "%s[%.3f, %.3f]", i ? ", " : "", (double)least_ns[i] / 1e3,
			(double)most_ns[i] / 1e3);
	fprintf(truth, "]}\n");
	if (fclose(truth))
		exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	long rate = number_at(argv, 5, -1);
	pthread_t thread;
	size_t kind = 0;

	while (kind < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kinds[kind].name, argv[3]))
		kind++;
	if (kind == sizeof(kinds) / sizeof(kinds[0]))
		return EXIT_FAILURE;
	wait_for_go();
	if (rate >= 0 && pthread_create(&thread, NULL, call_others, &rate))
		return EXIT_FAILURE;
	run_all(argv[2], kind, number_at(argv, 4, 100), number_at(argv, 6, 50));
	done = true;
	if (rate >= 0)
		pthread_join(thread, NULL);
	write_truth(argv);
	return EXIT_SUCCESS;
}
