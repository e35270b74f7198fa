/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * async TRUTH: futures like those that Rust's compiler makes, written without Rust. The poll
 * function below is like that of an async function: a byte of the future selects the code to
 * continue with. Futures are polled in turns, by several threads, within each other, and dropped.
 * The row of each future says what a tracer must find.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include "program.h"

#define STATE "300"

enum {
	FUTURES_MAX = 1000,
	NAP_US = 1500,
};

enum state { NEW = 0, READY = 1, AWAITS = 3 };

struct future {
	uint64_t id;
	uint64_t polls_left;
	struct future *inner; /* is polled within the polls of this future, until it is ready */
	char other[300 - 24];
	uint8_t state;
};
_Static_assert(offsetof(struct future, state) == 300, "where the code below looks");

struct row {
	uint64_t polls, calls, await_ns, total_ns, first_ns, last_ns;
	long tid;
	const char *end; /* NULL: the future is no step */
};

static struct row rows[FUTURES_MAX];

/* 0: ready, 1: pending; returned like Poll<()>. */
int poll_double(struct future *future, void *context);
__asm__(".pushsection .text\n"
	".type \"_ZN6double4work28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE\", @function\n"
	"poll_double:\n"
	"\"_ZN6double4work28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE\":\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbx, -16\n"
	"	mov %rdi, %rbx\n"
	"	movzbl " STATE "(%rdi), %eax\n"
	"	lea places_of_double(%rip), %rcx\n"
	"	movslq (%rcx,%rax,4), %rax\n"
	"	add %rcx, %rax\n"
	"	jmp *%rax\n"
	"1:	call go_on\n"
	"	test %eax, %eax\n"
	"	je 2f\n"
	"	movb $3, " STATE "(%rbx)\n"
	"	mov $1, %eax\n"
	"	jmp 3f\n"
	"2:	movb $1, " STATE "(%rbx)\n"
	"	xor %eax, %eax\n"
	"3:	pop %rbx\n"
	"	ret\n"
	"4:	lea place_of_double(%rip), %rdi\n"
	"	call was_ready\n"
	"	ud2\n"
	"5:	lea place_of_double(%rip), %rdi\n"
	"	call was_ready\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	"	.size \"_ZN6double4work28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE\", "
	".-poll_double\n"
	".popsection\n"
	".pushsection .rodata\n"
	"	.balign 4\n"
	"places_of_double:\n"
	"	.long 1b-places_of_double, 4b-places_of_double, 5b-places_of_double\n"
	"	.long 1b-places_of_double\n"
	"place_of_double: .quad 0\n"
	".popsection\n");

_Noreturn void was_ready(const void *place);

_Noreturn void was_ready(const void *place)
{
	fprintf(stderr, "async: resumed after completion, %p\n", place);
	abort();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t calls_of(uint64_t id)
{
	return id % 5 + 1;
}

static void call(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		syscall(SYS_getppid);
}

/* The work of one poll. No row is written here, because that would take time within the poll. */
int go_on(struct future *future, void *context);

int go_on(struct future *future, void *context)
{
	call(calls_of(future->id));
	if (future->inner && future->inner->state != READY)
		poll_double(future->inner, context);
	return --future->polls_left != 0;
}

/* Returns whether the future is ready. */
static bool poll(struct future *future)
{
	struct row *row = &rows[future->id];
	uint64_t begin_ns = now_ns(), end_ns;
	struct future *inner = future->inner;
	bool polls_inner = inner && inner->state != READY;
	bool is_ready;

	if (!row->polls) {
		row->tid = syscall(SYS_gettid);
		row->first_ns = begin_ns;
	} else {
		row->await_ns += begin_ns - row->last_ns;
	}
	is_ready = !poll_double(future, NULL);
	end_ns = now_ns();
	row->polls++;
	row->calls += calls_of(future->id) + (polls_inner ? calls_of(inner->id) : 0);
	row->total_ns = end_ns - row->first_ns;
	row->last_ns = end_ns;
	return is_ready;
}

static void nap(void)
{
	const struct timespec time = {.tv_nsec = NAP_US * 1000L};

	nanosleep(&time, NULL);
}

static struct future future_new(uint64_t polls, const char *end)
{
	static uint64_t ids = 1;
	struct future future = {.id = ids++, .polls_left = polls};

	if (future.id >= FUTURES_MAX)
		abort();
	rows[future.id].end = end;
	return future;
}

/* Four futures at a time on one thread, each ready after 1 to 4 polls. */
static void poll_in_turns(void)
{
	for (int round = 0; round < 20; round++) {
		struct future futures[4];

		for (uint64_t i = 0; i < 4; i++)
			futures[i] = future_new(1 + (i + (uint64_t)round) % 4, "return");
		for (int left = 4; left;) {
			for (int i = 0; i < 4; i++) {
				if (futures[i].polls_left && poll(&futures[i]))
					left--;
			}
			nap();
		}
	}
}

struct hand {
	sem_t ask, answer;
	struct future *future;
};

static void *poll_for_other(void *ctx)
{
	struct hand *hand = ctx;

	for (;;) {
		sem_wait(&hand->ask);
		if (!hand->future)
			return NULL;
		poll(hand->future);
		sem_post(&hand->answer);
	}
}

/*
 * Another thread makes the first poll of every other future, and every other poll of each future.
 */
static void poll_by_two(void)
{
	struct hand hand = {0};
	pthread_t thread;

	sem_init(&hand.ask, 0, 0);
	sem_init(&hand.answer, 0, 0);
	pthread_create(&thread, NULL, poll_for_other, &hand);
	for (int i = 0; i < 30; i++) {
		struct future future = future_new(5, "return");

		for (int turn = i; future.polls_left; turn++) {
			if (turn % 2) {
				hand.future = &future;
				sem_post(&hand.ask);
				sem_wait(&hand.answer);
			} else {
				poll(&future);
			}
			call(2);
		}
	}
	hand.future = NULL;
	sem_post(&hand.ask);
	pthread_join(thread, NULL);
}

/*
 * Futures are dropped after some polls, and the next one uses the same memory. The last one becomes
 * ready.
 */
static void drop(void)
{
	struct future future;

	for (uint64_t i = 0; i < 10; i++) {
		bool is_last = i == 9;

		future = future_new(is_last ? 2 : 100, is_last ? "return" : "unwound");
		poll(&future);
		nap();
		poll(&future);
		nap();
	}
}

static void poll_within(void)
{
	for (int i = 0; i < 20; i++) {
		struct future inner = future_new(2, NULL);
		struct future outer = future_new(3, "return");

		outer.inner = &inner;
		while (!poll(&outer))
			nap();
	}
}

static void write_truth(FILE *truth)
{
	const char *comma = "";

	fprintf(truth, "[\n");
	for (int id = 1; id < FUTURES_MAX; id++) {
		const struct row *row = &rows[id];

		if (!row->end)
			continue;
		fprintf(truth,
			"%s{\"id\": %d, \"polls\": %lu, \"calls\": %lu, \"await_ns\": %lu, "
			"\"total_ns\": %lu, \"tid\": %ld, \"end\": \"%s\"}\n",
			comma, id, (unsigned long)row->polls, (unsigned long)row->calls,
			(unsigned long)row->await_ns, (unsigned long)row->total_ns, row->tid,
			row->end);
		comma = ",";
	}
	fprintf(truth, "]\n");
	fclose(truth);
}

int main(int argc, char **argv)
{
	FILE *truth = open_truth(argv);
	struct future early[3], late;

	(void)argc;
	for (int i = 0; i < 3; i++) {
		early[i] = future_new(3, NULL);
		poll(&early[i]);
	}
	wait_for_go();
	for (int i = 0; i < 3; i++) {
		poll(&early[i]);
		poll(&early[i]);
	}
	poll_in_turns();
	poll_by_two();
	drop();
	poll_within();
	late = future_new(100, "exited");
	poll(&late);
	poll(&late);
	write_truth(truth);
	return 0;
}
