/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The memory shared with the kernel side, filled with the input: the rings of calls, and the file
 * records, whose names the target chooses.
 */
#include "stream/call_ring.h"
#include "model/event.h"
#include "fuzz.h"
#include "kernel/shared.h"

#define CPUS  2
#define SHIFT 4
#define SLOTS 4

struct memory {
	struct shared shared;
	struct fbt_slot slots[SLOTS];
	struct fbt_ring_heads heads[CPUS];
	struct fbt_ring_call calls[CPUS << SHIFT];
};

static void take_call(void *ctx, const struct fbt_call *call)
{
	const struct fbt_header *event;
	uint64_t *count = ctx;

	fuzz_check(call->header.size == sizeof(*call));
	decode_event(call, sizeof(*call), &event);
	++*count;
}

static size_t fill(void *to, size_t room, const uint8_t *data, size_t size)
{
	memcpy(to, data, size < room ? size : room);
	return size < room ? size : room;
}

static void drain_calls(const uint8_t *data, size_t size)
{
	struct memory *memory = aligned_alloc(64, (sizeof(*memory) + 63) & ~(size_t)63);
	uint64_t count = 0, drained;
	struct call_ring *ring;
	size_t used;

	fuzz_check(memory);
	memset(memory, 0, sizeof(*memory));
	used = fill(memory->heads, sizeof(memory->heads), data, size);
	used += fill(memory->calls, sizeof(memory->calls), data + used, size - used);
	fill(memory->slots, sizeof(memory->slots), data + used, size - used);
	memory->shared.slots = memory->slots;
	memory->shared.slot_count = SLOTS;
	memory->shared.heads = memory->heads;
	memory->shared.calls = memory->calls;
	memory->shared.cpu_count = CPUS;
	memory->shared.ring_shift = SHIFT;
	ring = call_ring__new(&memory->shared);
	fuzz_check(ring);
	drained = call_ring__drain(ring, 1000, take_call, &count);
	drained += call_ring__drain(ring, UINT64_MAX, take_call, &count);
	fuzz_check(drained == count);
	call_ring__lost(ring);
	call_ring__free(ring);
	free(memory);
}

static void check_file(void *ctx, const void *data, size_t size)
{
	const struct fbt_header *event;

	(void)ctx;
	fuzz_check(decode_event(data, size, &event) == (long)size);
	fuzz_check(strlen(decode_string(event, 0)) < FILE_PATH_BYTES);
}

static void send_file(const uint8_t *data, size_t size)
{
	const struct record_output output = {.emit = check_file};
	struct file_names *names = file_names__new();
	struct fbt_header *event;

	if (size < sizeof(struct fbt_file)) {
		file_names__free(names);
		return;
	}
	event = fuzz_copy(data, size);
	/* The kernel side sets these two, so they are valid. */
	event->size = (uint32_t)size;
	((struct fbt_file *)event)->id %= 100000;
	fuzz_check(names);
	file_names__send(names, event, &output);
	file_names__free(names);
	free(event);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	drain_calls(data, size);
	send_file(data, size);
	return 0;
}
