/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "look/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define WAIT_MS	    50
#define PAGE_BYTES  4096u
#define PAGES_MAX   (MEMORY_BYTES / PAGE_BYTES)
#define STACK_BYTES (64u << 10)

/*
 * What is read belongs to the thread from the byte in the first pipe up to that in the second, and
 * to the caller otherwise. One that never answers keeps it.
 */
struct memory {
	bool is_started;
	bool is_busy;	/* a read has timed out */
	int orders[2];	/* a byte asks the thread to read */
	int answers[2]; /* a byte tells that it has */
	pthread_t thread;
	uint32_t tgid;
	int err;
	size_t count;
	struct memory_part parts[MEMORY_PARTS];
	size_t used; /* of data */
	struct iovec pages[PAGES_MAX];
	uint8_t data[MEMORY_BYTES];
};

struct memory *memory__new(void)
{
	return calloc(1, sizeof(struct memory));
}

/* A read that fails within an element returns what came before that element: so one per page. */
static void read_part(struct memory *memory, struct memory_part *part)
{
	struct iovec local = {(void *)part->data, part->size};
	unsigned long count = 0;
	ssize_t got;

	for (uint32_t at = 0; at < part->size && count < PAGES_MAX; count++) {
		uint64_t address = part->address + at;
		uint32_t size = PAGE_BYTES - address % PAGE_BYTES;

		size = size < part->size - at ? size : part->size - at;
		memory->pages[count] = (struct iovec){(void *)(uintptr_t)address, size};
		at += size;
	}
	got = process_vm_readv((pid_t)memory->tgid, &local, 1, memory->pages, count, 0);
	part->got = got > 0 ? (uint32_t)got : 0;
	if (got < 0 && errno != EFAULT)
		memory->err = -errno;
}

static void *serve(void *ctx)
{
	struct memory *memory = ctx;
	char byte;

	while (read(memory->orders[0], &byte, 1) == 1) {
		for (size_t i = 0; i < memory->count && !memory->err; i++)
			if (memory->parts[i].size)
				read_part(memory, &memory->parts[i]);
		if (write(memory->answers[1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

static void close_pipe(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
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
		/* It reads still: what it writes to must stay. */
		pthread_detach(memory->thread);
		return;
	}
	if (memory->is_started) {
		close(memory->orders[1]);
		pthread_join(memory->thread, NULL);
		close(memory->orders[0]);
		close_pipe(memory->answers);
	}
	memory__wipe(memory);
	free(memory);
}

void memory__wipe(struct memory *memory)
{
	if (!memory->is_busy)
		explicit_bzero(memory->data, memory->used);
	memory->used = memory->is_busy ? memory->used : 0;
}

static void lay_out(struct memory *memory, const struct memory_part *parts, size_t count)
{
	memory->count = count < MEMORY_PARTS ? count : MEMORY_PARTS;
	memory->err = 0;
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

int memory__read(struct memory *memory, uint32_t tgid, struct memory_part *parts, size_t count)
{
	int err = memory->is_started ? 0 : start(memory);

	for (size_t i = 0; i < count; i++)
		parts[i].got = 0;
	if (err)
		return err;
	if (memory->is_busy && !await_answer(memory, 0))
		return -EBUSY;
	memory__wipe(memory);
	memory->tgid = tgid;
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
