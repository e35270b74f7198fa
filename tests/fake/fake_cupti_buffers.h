/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Buffers of activity records. A buffer from the client belongs to CUPTI until it is completed. On
 * completion it is checked that nobody else has written to it. A record of work exists from the
 * launch on, without times. A buffer is returned when all its work is done, or by a forced flush.
 */
#ifndef FBT_TESTS_FAKE_CUPTI_BUFFERS_H
#define FBT_TESTS_FAKE_CUPTI_BUFFERS_H

#include <sys/mman.h>
#include "fake_cupti_records.h"

/* Offsets of the times in records of work. */
#define START_OFFSET 16
#define END_OFFSET   24

#define SHIFT_NS 100000000000000ull

/* A record in a buffer. */
struct slot {
	uint32_t offset;
	uint16_t bytes;
	uint16_t fate; /* enum fake_fate */
	uint64_t sum;
	uint64_t start_ns;
	uint64_t end_ns;     /* 0: the record is already complete */
	uint64_t stamped_ns; /* for a call's record: when the call ended */
};

struct buffer {
	struct buffer *next; /* within cupti.leaving */
	uint8_t *data;
	size_t size;
	size_t used;
	struct slot *slots;
	size_t count;
	size_t capacity;
	uint64_t requested_ns;
	uint64_t due_ns; /* a leaving buffer is not delivered before */
	bool awaited;	 /* a flush waits for the leaving buffer */
};

/* The buffer for the records of a thread, or of all threads. */
struct lane {
	struct lane *next;
	struct buffer *buffer; /* NULL: none was requested yet */
	uint32_t held;	       /* launches whose records are not all there yet */
	bool skipped;	       /* by the last flush */
};

/* size is a multiple of 8. */
static uint64_t sum_words(const void *data, size_t size)
{
	const uint64_t *words = data;
	uint64_t sum = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < size / 8; i++)
		sum = (sum ^ words[i]) * 0x100000001b3ull;
	return sum;
}

static bool is_zero(const uint8_t *data, size_t size)
{
	return size == 0 || (!data[0] && memcmp(data, data + 1, size - 1) == 0);
}

static void *allocate(void *old, size_t size)
{
	void *memory = realloc(old, size);

	if (!memory)
		die("out of memory");
	return memory;
}

static bool overlaps(const struct buffer *buffer, const uint8_t *data, size_t size)
{
	return buffer && data < buffer->data + buffer->size && buffer->data < data + size;
}

static void check_unused(const uint8_t *data, size_t size)
{
	bool used = false;

	for (struct lane *lane = cupti.lanes; lane; lane = lane->next)
		used = used || overlaps(lane->buffer, data, size);
	pthread_mutex_lock(&cupti.mutex);
	for (struct buffer *buffer = cupti.leaving; buffer; buffer = buffer->next)
		used = used || overlaps(buffer, data, size);
	pthread_mutex_unlock(&cupti.mutex);
	if (used)
		die("a buffer was handed out that CUPTI still has");
}

/* Releases before 12.9 crash if a client returns no buffer. */
#define NULL_VERSION 27

/*
 * Requests a buffer from the client. NULL: the client has none. As in CUPTI, the lock is held
 * during the call.
 */
static struct buffer *request_buffer(void)
{
	const char *inside = self.inside;
	struct buffer *buffer;
	size_t size = 0, records = 0;
	uint8_t *data = NULL;

	if (!cupti.request)
		return NULL;
	self.inside = "the callback that requests a buffer";
	cupti.request(&data, &size, &records);
	self.inside = inside;
	if (!data && cupti.config.version >= NULL_VERSION)
		return NULL;
	if (!data)
		die("NULL was handed out as a buffer");
	if ((uintptr_t)data % 8)
		die("a buffer was handed out that is not aligned to 8 bytes");
	if (size < 4096)
		die("a buffer of %zu bytes was handed out", size);
	check_unused(data, size);
	if (!cupti.zeroed)
		memset(data, 0, size);
	else if (!is_zero(data, size))
		die("a buffer was handed out that is not zeroed, as promised");
	buffer = allocate(NULL, sizeof(*buffer));
	*buffer = (struct buffer){.data = data, .size = size, .requested_ns = mono_ns()};
	return buffer;
}

/* From here on the worker owns the buffer. */
static void let_go(struct buffer *buffer, uint64_t due_ns, bool awaited)
{
	struct buffer **end;

	buffer->due_ns = due_ns;
	buffer->awaited = awaited;
	pthread_mutex_lock(&cupti.mutex);
	for (end = &cupti.leaving; *end; end = &(*end)->next)
		;
	*end = buffer;
	cupti.awaited += awaited;
	pthread_cond_signal(&cupti.wake);
	pthread_mutex_unlock(&cupti.mutex);
}

static uint64_t find_latest(const struct buffer *buffer)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < buffer->count; i++)
		if (buffer->slots[i].end_ns > latest)
			latest = buffer->slots[i].end_ns;
	return latest;
}

/* The lock is held. */
static struct lane *get_lane(void)
{
	struct lane **place = cupti.per_thread ? &self.lane : &cupti.common;

	if (!*place) {
		*place = allocate(NULL, sizeof(**place));
		**place = (struct lane){.next = cupti.lanes};
		cupti.lanes = *place;
	}
	return *place;
}

static void put_slot(struct buffer *buffer, const struct slot *slot)
{
	if (buffer->count == buffer->capacity) {
		buffer->capacity = buffer->capacity ? 2 * buffer->capacity : 64;
		buffer->slots = allocate(buffer->slots, buffer->capacity * sizeof(*slot));
	}
	buffer->slots[buffer->count++] = *slot;
}

/* A client may assume that a call ended at most this long before its buffer was requested. */
#define STALL_NS 1000000

/*
 * The thread lost its CPU after its call had ended, so a flush in between could not wait for a
 * buffer that did not exist yet. Logged, so that a test can count such records.
 */
static void note_stall(const struct buffer *buffer, const struct slot *slot)
{
	if (slot->stamped_ns && slot->stamped_ns + STALL_NS <= buffer->requested_ns)
		note(FAKE_OK, "Stalled");
}

/* Puts a record into the thread's buffer. The lock is held. False: there was no buffer. */
static bool put_record(const void *record, struct slot *slot)
{
	struct lane *lane = get_lane();

	if (lane->buffer && lane->buffer->used + slot->bytes > lane->buffer->size) {
		let_go(lane->buffer, find_latest(lane->buffer), false);
		lane->buffer = NULL;
	}
	if (!lane->buffer)
		lane->buffer = request_buffer();
	if (!lane->buffer)
		return false;
	note_stall(lane->buffer, slot);
	slot->offset = (uint32_t)lane->buffer->used;
	memcpy(lane->buffer->data + slot->offset, record, slot->bytes);
	slot->sum = sum_words(record, slot->bytes);
	put_slot(lane->buffer, slot);
	lane->buffer->used += slot->bytes;
	return true;
}

static void check_untouched(const struct buffer *buffer)
{
	uintptr_t at = (uintptr_t)buffer->data & ~4095ul;
	unsigned char pages[1024];

	for (uintptr_t end = (uintptr_t)buffer->data + buffer->size; at < end; at += 4096 * 1024)
		if (mincore((void *)at, end - at < 4096 * 1024 ? end - at : 4096 * 1024, pages) < 0)
			die("a buffer was unmapped that CUPTI still had");
	for (size_t i = 0; i < buffer->count; i++)
		if (sum_words(buffer->data + buffer->slots[i].offset, buffer->slots[i].bytes) !=
		    buffer->slots[i].sum)
			die("a record was overwritten in a buffer that CUPTI still had");
	if (!is_zero(buffer->data + buffer->used, buffer->size - buffer->used))
		die("free room was written to in a buffer that CUPTI still had");
}

static uint64_t to_client_clock(uint64_t time_ns)
{
	if (cupti.config.ticks)
		return time_ns / 2 * 5;
	return cupti.timestamp ? time_ns : time_ns + (uint64_t)cupti.realtime_ns;
}

/* In these releases, kernels have no times once the client has its own clock. */
static bool has_zero_bug(void)
{
	return cupti.timestamp && cupti.config.version >= 24 && cupti.config.version <= 130001;
}

static void put_times(struct buffer *buffer, const struct slot *slot, uint64_t now)
{
	uint8_t *record = buffer->data + slot->offset;
	bool kernel = *(uint32_t *)record == KIND_KERNEL;
	uint64_t start = 0, end = 0;

	if (slot->fate != FAKE_ZERO && !(kernel && has_zero_bug())) {
		start = slot->start_ns <= now ? to_client_clock(slot->start_ns) : 0;
		end = slot->end_ns <= now ? to_client_clock(slot->end_ns) : 0;
		if (kernel && end && cupti.shifted > 0) {
			cupti.shifted--;
			start += SHIFT_NS;
			end += SHIFT_NS;
		}
	}
	memcpy(record + START_OFFSET, &start, sizeof(start));
	memcpy(record + END_OFFSET, &end, sizeof(end));
}

/* CUPTI promises no order. */
static void shuffle(struct buffer *buffer)
{
	uint8_t *copy = allocate(NULL, buffer->used + 1), *to = buffer->data;

	memcpy(copy, buffer->data, buffer->used);
	for (size_t i = buffer->count; i > 1; i--) {
		size_t other = get_random() % i;
		struct slot slot = buffer->slots[i - 1];

		/*
		 * Swaps nearby records only: random distances would be slow in large buffers, and
		 * no worse.
		 */
		if (i - other > 64)
			other = i - 1 - other % 64;
		buffer->slots[i - 1] = buffer->slots[other];
		buffer->slots[other] = slot;
	}
	for (size_t i = 0; i < buffer->count; i++) {
		memcpy(to, copy + buffer->slots[i].offset, buffer->slots[i].bytes);
		to += buffer->slots[i].bytes;
	}
	free(copy);
}

static void deliver(struct buffer *buffer)
{
	uint64_t now = mono_ns();

	check_untouched(buffer);
	if (cupti.timestamp)
		cupti.timestamp();
	for (size_t i = 0; i < buffer->count; i++)
		if (buffer->slots[i].end_ns)
			put_times(buffer, &buffer->slots[i], now);
	if (!cupti.config.in_order)
		shuffle(buffer);
	__atomic_add_fetch(&cupti.delivered, buffer->count, __ATOMIC_RELAXED);
	/* The client's memory is never touched again, as if a record in it were never complete. */
	if (++cupti.returned == cupti.config.swallow)
		return;
	self.inside = "the callback that completes a buffer";
	cupti.completed(NULL, 0, buffer->data, buffer->size, buffer->used);
	self.inside = NULL;
	free(buffer->slots);
	free(buffer);
}

/* The first buffer that is due; or NULL, and *next_ns is when there will be one (0: none waits). */
static struct buffer **find_due(uint64_t now, uint64_t *next_ns)
{
	*next_ns = 0;
	for (struct buffer **link = &cupti.leaving; *link; link = &(*link)->next) {
		if ((*link)->due_ns <= now)
			return link;
		if (!*next_ns || (*link)->due_ns < *next_ns)
			*next_ns = (*link)->due_ns;
	}
	return NULL;
}

static void *run_worker(void *unused)
{
	struct buffer **link, *buffer;
	struct timespec until;
	uint64_t next_ns;
	bool awaited;

	pthread_setname_np(pthread_self(), "fake-cupti");
	pthread_mutex_lock(&cupti.mutex);
	for (;;) {
		link = find_due(mono_ns(), &next_ns);
		if (link) {
			buffer = *link;
			*link = buffer->next;
			awaited = buffer->awaited;
			pthread_mutex_unlock(&cupti.mutex);
			deliver(buffer);
			pthread_mutex_lock(&cupti.mutex);
			cupti.awaited -= awaited;
			pthread_cond_broadcast(&cupti.done);
			continue;
		}
		until = (struct timespec){(time_t)(next_ns / 1000000000),
					  (long)(next_ns % 1000000000)};
		if (next_ns)
			pthread_cond_timedwait(&cupti.wake, &cupti.mutex, &until);
		else
			pthread_cond_wait(&cupti.wake, &cupti.mutex);
	}
	return unused;
}

static bool is_due_by_percent(uint64_t percent)
{
	return percent > 0 && get_random() % 100 < percent;
}

static void flush_lane(struct lane *lane, bool forced, uint64_t now)
{
	struct buffer *buffer = lane->buffer;
	bool late = !forced && is_due_by_percent(cupti.config.late_percent);

	if (!buffer || (!forced && (lane->held || !buffer->count || find_latest(buffer) > now)))
		return;
	lane->skipped = !forced && !lane->skipped && is_due_by_percent(cupti.config.skip_percent);
	if (lane->skipped)
		return;
	lane->buffer = NULL;
	let_go(buffer, late ? now + cupti.config.late_ms * 1000000 : 0, !late);
}

static void flush_all(bool forced)
{
	uint64_t now = mono_ns();

	lock_state();
	for (struct lane *lane = cupti.lanes; lane; lane = lane->next)
		flush_lane(lane, forced, now);
	unlock_state();
	pthread_mutex_lock(&cupti.mutex);
	for (struct buffer *buffer = cupti.leaving; forced && buffer; buffer = buffer->next) {
		cupti.awaited += !buffer->awaited;
		buffer->awaited = true;
		buffer->due_ns = 0;
	}
	pthread_cond_signal(&cupti.wake);
	while (cupti.awaited)
		pthread_cond_wait(&cupti.done, &cupti.mutex);
	pthread_mutex_unlock(&cupti.mutex);
}

#endif
