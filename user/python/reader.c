/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

#define WAIT_MS 50
/* A list of threads serves for so long: a look asks for many threads of a process. */
#define LOOK_NS	    (10 * NS_PER_MS)
#define STACK_BYTES (256u << 10)

/*
 * The order and its answer belong to the thread from the byte in the first pipe up to that in the
 * second, and to the caller otherwise. A thread that has not answered by the end is left, and frees
 * all of it.
 */
struct python_reader {
	bool is_started;
	bool is_left;
	bool is_busy;	/* a reading has timed out */
	int orders[2];	/* a byte asks the thread to read */
	int answers[2]; /* a byte tells that it has */
	pthread_t thread;

	uint32_t tgid;
	struct python_place place;
	uint32_t tid;
	bool wants_holder;
	int err;
	uint32_t holder;
	struct python_stack stack;

	/* Of the thread alone. */
	uint32_t look_tgid;
	uint64_t look_ns;
	struct python_memory memory;
	struct python_look *look;
};

struct python_reader *python_reader__new(void)
{
	return calloc(1, sizeof(struct python_reader));
}

static void end_look(struct python_reader *reader)
{
	python_look__end(reader->look);
	python_memory_close(&reader->memory);
	reader->look = NULL;
}

static int begin_look(struct python_reader *reader)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	int err;

	if (reader->look && reader->look_tgid == reader->tgid && now_ns < reader->look_ns + LOOK_NS)
		return 0;
	end_look(reader);
	err = python_memory_open(&reader->memory, reader->tgid);
	if (err)
		return err;
	reader->look_tgid = reader->tgid;
	reader->look_ns = now_ns;
	err = python_look__begin(&reader->look, &reader->memory, &reader->place);
	if (err)
		end_look(reader);
	return err;
}

static void answer(struct python_reader *reader)
{
	reader->holder = 0;
	reader->err = begin_look(reader);
	if (reader->err)
		return;
	if (reader->wants_holder)
		reader->holder = python_look__holder(reader->look, reader->tid);
	else
		reader->err = python_look__stack(reader->look, reader->tid, &reader->stack);
}

static void close_pipe(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

/* Ends when the other end of the first pipe is closed. */
static void *serve(void *ctx)
{
	struct python_reader *reader = ctx;
	char byte;

	while (read(reader->orders[0], &byte, 1) == 1) {
		answer(reader);
		if (write(reader->answers[1], &byte, 1) != 1)
			break;
	}
	if (__atomic_load_n(&reader->is_left, __ATOMIC_ACQUIRE)) {
		close(reader->orders[0]);
		close_pipe(reader->answers);
		end_look(reader);
		free(reader);
	}
	return NULL;
}

static int start_thread(struct python_reader *reader)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int err = -pthread_attr_init(&attributes);

	if (err)
		return err;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* Signals are for the loop. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = -pthread_create(&reader->thread, &attributes, serve, reader);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return err;
}

static int start(struct python_reader *reader)
{
	int err;

	if (pipe2(reader->orders, O_CLOEXEC))
		return -errno;
	if (pipe2(reader->answers, O_CLOEXEC)) {
		err = -errno;
		close_pipe(reader->orders);
		return err;
	}
	err = start_thread(reader);
	if (err) {
		close_pipe(reader->orders);
		close_pipe(reader->answers);
	}
	reader->is_started = !err;
	return err;
}

/* Whether the thread has answered within that time. */
static bool await_answer(struct python_reader *reader, int wait_ms)
{
	struct pollfd end = {.fd = reader->answers[0], .events = POLLIN};
	char byte;
	int ready;

	do
		ready = poll(&end, 1, wait_ms);
	while (ready < 0 && errno == EINTR);
	reader->is_busy = ready <= 0 || read(reader->answers[0], &byte, 1) != 1;
	return !reader->is_busy;
}

void python_reader__free(struct python_reader *reader)
{
	if (!reader)
		return;
	if (reader->is_started && reader->is_busy && !await_answer(reader, 0)) {
		int orders = reader->orders[1];

		pthread_detach(reader->thread);
		__atomic_store_n(&reader->is_left, true, __ATOMIC_RELEASE);
		close(orders);
		return;
	}
	if (reader->is_started) {
		close(reader->orders[1]);
		pthread_join(reader->thread, NULL);
		close(reader->orders[0]);
		close_pipe(reader->answers);
	}
	end_look(reader);
	free(reader);
}

static int ask(struct python_reader *reader, uint32_t tgid, const struct python_place *place,
	       uint32_t tid, bool wants_holder)
{
	int err = reader->is_started ? 0 : start(reader);

	if (err)
		return err;
	if (reader->is_busy && !await_answer(reader, 0))
		return -EBUSY;
	reader->tgid = tgid;
	reader->place = *place;
	reader->tid = tid;
	reader->wants_holder = wants_holder;
	if (write(reader->orders[1], "", 1) != 1)
		return -errno;
	return await_answer(reader, WAIT_MS) ? reader->err : -ETIMEDOUT;
}

int python_reader__stack(struct python_reader *reader, uint32_t tgid,
			 const struct python_place *place, uint32_t tid,
			 const struct python_stack **stack)
{
	int err = ask(reader, tgid, place, tid, false);

	*stack = err ? NULL : &reader->stack;
	return err;
}

uint32_t python_reader__holder(struct python_reader *reader, uint32_t tgid,
			       const struct python_place *place, uint32_t waiter)
{
	return ask(reader, tgid, place, waiter, true) ? 0 : reader->holder;
}
