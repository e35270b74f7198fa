/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS	    100
#define STACK_BYTES (64u << 10)

/*
 * What is read belongs to the thread from the byte in the first pipe up to that in the second, and
 * to the caller otherwise. A thread that has not answered by the end is left, and frees it.
 */
struct memory {
	bool is_started;
	bool is_left;
	bool is_busy;	/* a read has timed out */
	int orders[2];	/* a byte asks the thread to read */
	int answers[2]; /* a byte tells that it has */
	pthread_t thread;
	struct proc_ref ref;
	int err;
	size_t count;
	struct memory_part parts[MEMORY_PARTS];
	size_t used; /* of data */
	uint8_t data[MEMORY_BYTES];
};

struct memory *memory__new(void)
{
	return calloc(1, sizeof(struct memory));
}

/* A read ends before the first page that is not there. */
static void read_part(int fd, struct memory_part *part)
{
	while (part->got < part->size) {
		ssize_t got = pread(fd, (void *)(part->data + part->got), part->size - part->got,
				    (off_t)(part->address + part->got));

		if (got <= 0)
			return;
		part->got += (uint32_t)got;
	}
}

static void read_parts(struct memory *memory)
{
	int fd = proc_open(memory->ref, "mem", O_RDONLY | O_CLOEXEC);

	memory->err = fd < 0 ? fd : 0;
	if (fd < 0)
		return;
	for (size_t i = 0; i < memory->count; i++)
		read_part(fd, &memory->parts[i]);
	close(fd);
}

static void close_pipe(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static void wipe(struct memory *memory)
{
	explicit_bzero(memory->data, memory->used);
	memory->used = 0;
}

/* Ends when the other end of the first pipe is closed. */
static void *serve(void *ctx)
{
	struct memory *memory = ctx;
	char byte;

	while (read(memory->orders[0], &byte, 1) == 1) {
		read_parts(memory);
		if (write(memory->answers[1], &byte, 1) != 1)
			break;
	}
	if (__atomic_load_n(&memory->is_left, __ATOMIC_ACQUIRE)) {
		close(memory->orders[0]);
		close_pipe(memory->answers);
		wipe(memory);
		free(memory);
	}
	return NULL;
}

static int start_thread(struct memory *memory)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int err;

	if (pthread_attr_init(&attributes))
		return -ENOMEM;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* Signals are for the loop. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = -pthread_create(&memory->thread, &attributes, serve, memory);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return err;
}

static int start(struct memory *memory)
{
	int err;

	if (pipe2(memory->orders, O_CLOEXEC))
		return -errno;
	if (pipe2(memory->answers, O_CLOEXEC)) {
		err = -errno;
		close_pipe(memory->orders);
		return err;
	}
	err = start_thread(memory);
	if (err) {
		close_pipe(memory->orders);
		close_pipe(memory->answers);
	}
	memory->is_started = !err;
	return err;
}

/* Whether the thread has answered within that time. */
static bool await_answer(struct memory *memory, int wait_ms)
{
	struct pollfd answer = {.fd = memory->answers[0], .events = POLLIN};
	char byte;
	int ready;

	do
		ready = poll(&answer, 1, wait_ms);
	while (ready < 0 && errno == EINTR);
	memory->is_busy = ready <= 0 || read(memory->answers[0], &byte, 1) != 1;
	return !memory->is_busy;
}

void memory__free(struct memory *memory)
{
	if (!memory)
		return;
	if (memory->is_started && memory->is_busy && !await_answer(memory, 0)) {
		int orders = memory->orders[1];

		pthread_detach(memory->thread);
		__atomic_store_n(&memory->is_left, true, __ATOMIC_RELEASE);
		close(orders);
		return;
	}
	if (memory->is_started) {
		close(memory->orders[1]);
		pthread_join(memory->thread, NULL);
		close(memory->orders[0]);
		close_pipe(memory->answers);
	}
	wipe(memory);
	free(memory);
}

void memory__wipe(struct memory *memory)
{
	if (!memory->is_busy)
		wipe(memory);
}

static void lay_out(struct memory *memory, const struct memory_part *parts, size_t count)
{
	memory->count = count < MEMORY_PARTS ? count : MEMORY_PARTS;
	for (size_t i = 0; i < memory->count; i++) {
		struct memory_part *part = &memory->parts[i];

		*part = parts[i];
		part->got = 0;
		part->data = memory->data + memory->used;
		if (part->size > MEMORY_BYTES - memory->used ||
		    part->address + part->size < part->address)
			part->size = 0;
		memory->used += part->size;
	}
}

int memory__read(struct memory *memory, struct proc_ref ref, struct memory_part *parts,
		 size_t count)
{
	int err = memory->is_started ? 0 : start(memory);

	for (size_t i = 0; i < count; i++)
		parts[i].got = 0;
	if (err)
		return err;
	if (memory->is_busy && !await_answer(memory, 0))
		return -EBUSY;
	memory__wipe(memory);
	memory->ref = ref;
	lay_out(memory, parts, count);
	if (write(memory->orders[1], "", 1) != 1)
		return -errno;
	if (!await_answer(memory, WAIT_MS))
		return -ETIMEDOUT;
	if (memory->err)
		return memory->err;
	for (size_t i = 0; i < memory->count; i++) {
		parts[i].got = memory->parts[i].got;
		parts[i].data = memory->parts[i].data;
	}
	return 0;
}
