/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/call_ring.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Some versions of linux/magic.h do not have these. */
#define PID_FS_MAGIC_6_9 0x50494446
#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif
#ifndef SOCKFS_MAGIC
#define SOCKFS_MAGIC 0x534f434b
#endif

/* Places are freed in batches during a drain, so that the ring of a busy CPU does not fill up. */
#define GIVE_BACK 1024

#define IDS_PER_WORD 64 /* of file_names */

/* One CPU's ring during a drain. The heap orders CPUs by the time of return of their next call. */
struct cursor {
	uint64_t end_ns;
	uint64_t tail;
	uint32_t cpu;
};

struct call_ring {
	struct shared *shared;
	struct cursor *heap;
	uint32_t count;
};

struct call_ring *call_ring__new(struct shared *shared)
{
	struct call_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->shared = shared;
	ring->heap = calloc(shared->cpu_count, sizeof(*ring->heap));
	if (!ring->heap) {
		free(ring);
		return NULL;
	}
	return ring;
}

void call_ring__free(struct call_ring *ring)
{
	if (!ring)
		return;
	free(ring->heap);
	free(ring);
}

static const struct fbt_ring_call *call_at(const struct call_ring *ring,
					   const struct cursor *cursor)
{
	uint32_t shift = ring->shared->ring_shift;
	uint64_t place = cursor->tail & ((1ull << shift) - 1);

	return &ring->shared->calls[((uint64_t)cursor->cpu << shift) + place];
}

/* Loads the next call of a cursor. False if there is none that returned up to cutoff_ns. */
static bool cursor_load(const struct call_ring *ring, struct cursor *cursor, uint64_t cutoff_ns)
{
	const struct fbt_ring_call *call = call_at(ring, cursor);
	uint32_t lap = (uint32_t)(cursor->tail >> ring->shared->ring_shift) + 1;

	if (__atomic_load_n(&call->lap, __ATOMIC_ACQUIRE) != lap)
		return false;
	cursor->end_ns = call->start_ns + call->duration_ns;
	return cursor->end_ns <= cutoff_ns;
}

static void heap_sink(struct call_ring *ring, uint32_t at)
{
	struct cursor moving = ring->heap[at];

	for (;;) {
		uint32_t child = at * 2 + 1;

		if (child >= ring->count)
			break;
		if (child + 1 < ring->count &&
		    ring->heap[child + 1].end_ns < ring->heap[child].end_ns)
			child++;
		if (ring->heap[child].end_ns >= moving.end_ns)
			break;
		ring->heap[at] = ring->heap[child];
		at = child;
	}
	ring->heap[at] = moving;
}

static void heap_fill(struct call_ring *ring, uint64_t cutoff_ns)
{
	ring->count = 0;
	for (uint32_t cpu = 0; cpu < ring->shared->cpu_count; cpu++) {
		struct cursor cursor = {.cpu = cpu, .tail = ring->shared->heads[cpu].tail};

		if (cursor_load(ring, &cursor, cutoff_ns))
			ring->heap[ring->count++] = cursor;
	}
	for (uint32_t i = ring->count / 2; i-- > 0;)
		heap_sink(ring, i);
}

static void hand_on(const struct call_ring *ring, const struct fbt_ring_call *from, call_fn on_call,
		    void *ctx)
{
	const struct fbt_slot *slot =
		&ring->shared->slots[from->slot & (ring->shared->slot_count - 1)];
	struct fbt_call call = {
		.header = {.type = FBT_EVENT_CALL, .flags = from->flags, .size = sizeof(call)},
		.tgid = slot->tgid,
		.tid = slot->tid,
		.start_ns = from->start_ns,
		.duration_ns = from->duration_ns,
		.ret = from->ret,
		.nr = from->nr,
		.delay_ns = from->delay_ns,
	};

	if (from->flags & (FBT_CALL_ARGS | FBT_CALL_RUN)) {
		call.args[0] = from->args[0];
		call.args[1] = from->args[1];
		call.file = from->file;
	}
	on_call(ctx, &call);
}

uint64_t call_ring__drain(struct call_ring *ring, uint64_t cutoff_ns, call_fn on_call, void *ctx)
{
	uint64_t drained = 0;

	heap_fill(ring, cutoff_ns);
	while (ring->count) {
		struct cursor *first = &ring->heap[0];
		__u64 *tail = &ring->shared->heads[first->cpu].tail;

		hand_on(ring, call_at(ring, first), on_call, ctx);
		drained++;
		first->tail++;
		if (cursor_load(ring, first, cutoff_ns)) {
			if (first->tail - *tail >= GIVE_BACK)
				__atomic_store_n(tail, first->tail, __ATOMIC_RELEASE);
		} else {
			__atomic_store_n(tail, first->tail, __ATOMIC_RELEASE);
			*first = ring->heap[--ring->count];
		}
		if (ring->count)
			heap_sink(ring, 0);
	}
	return drained;
}

uint64_t call_ring__lost(const struct call_ring *ring)
{
	uint64_t lost = 0;

	for (uint32_t cpu = 0; cpu < ring->shared->cpu_count; cpu++)
		lost += __atomic_load_n(&ring->shared->heads[cpu].lost, __ATOMIC_RELAXED);
	return lost;
}

void call_ring__reset_lost(struct call_ring *ring)
{
	for (uint32_t cpu = 0; cpu < ring->shared->cpu_count; cpu++)
		__atomic_store_n(&ring->shared->heads[cpu].lost, 0, __ATOMIC_RELAXED);
}

/* The records of files. */

/* Writes the name that the kernel generates for a file outside of all directories. */
static bool write_made_up(const struct fbt_ring_file *file, const char *name,
			  char path[FILE_PATH_BYTES])
{
	const char *kind = NULL;

	switch (file->magic) {
	case SOCKFS_MAGIC:
		kind = "socket";
		break;
	case PIPEFS_MAGIC:
		kind = "pipe";
		break;
	case NSFS_MAGIC:
		kind = "ns"; /* the kind of namespace is known only to the kernel */
		break;
	case ANON_INODE_FS_MAGIC:
		snprintf(path, FILE_PATH_BYTES, "anon_inode:%s", name);
		return true;
	case PID_FS_MAGIC_6_9:
		snprintf(path, FILE_PATH_BYTES, "anon_inode:[pidfd]");
		return true;
	default:
		return false;
	}
	snprintf(path, FILE_PATH_BYTES, "%s:[%llu]", kind, file->file.ino);
	return true;
}

/* Turns "leaf\0folder\0" into "/folder/leaf". Returns the end of the path. */
static char *write_names(const struct fbt_ring_file *file, char *path)
{
	size_t end = file->length;

	while (end) {
		size_t start = end - 1;

		while (start && file->names[start - 1])
			start--;
		*path++ = '/';
		memcpy(path, file->names + start, end - 1 - start);
		path += end - 1 - start;
		end = start;
	}
	*path = '\0';
	return path;
}

void file_path_write(const struct fbt_ring_file *file, char path[FILE_PATH_BYTES])
{
	bool floating = file->flags & FBT_PATH_FLOATING;
	char *end = path;

	path[0] = '\0';
	if (floating && (write_made_up(file, file->names, path) || !file->names[0]))
		return;
	if (file->flags & FBT_PATH_CUT)
		end = stpcpy(path, "…");
	end = write_names(file, end);
	if (!file->length)
		end = stpcpy(end, "/");
	if (file->flags & FBT_PATH_DELETED)
		stpcpy(end, " (deleted)");
}

struct file_names {
	VEC(uint64_t) sent; /* one bit per id */
};

struct file_names *file_names__new(void)
{
	return calloc(1, sizeof(struct file_names));
}

void file_names__free(struct file_names *names)
{
	if (!names)
		return;
	vec_free(&names->sent);
	free(names);
}

bool file_names__has(const struct file_names *names, uint32_t id)
{
	size_t word = id / IDS_PER_WORD;

	return word < names->sent.count && (names->sent.items[word] >> (id % IDS_PER_WORD) & 1);
}

static int remember(struct file_names *names, uint32_t id)
{
	size_t word = id / IDS_PER_WORD;

	while (names->sent.count <= word) {
		if (vec_push(&names->sent, 0))
			return -ENOMEM;
	}
	names->sent.items[word] |= 1ull << (id % IDS_PER_WORD);
	return 0;
}

/* Whether the names are within the record, and the last one ends with a NUL. */
static bool is_sound(const struct fbt_ring_file *file)
{
	size_t size = file->file.header.size;

	if (size < offsetof(struct fbt_ring_file, names) || !file->file.id)
		return false;
	if (file->length > size - offsetof(struct fbt_ring_file, names))
		return false;
	if (file->length > sizeof(file->names))
		return false;
	return file->length ? !file->names[file->length - 1] : !(file->flags & FBT_PATH_FLOATING);
}

int file_names__send(struct file_names *names, const struct fbt_header *event,
		     const struct record_output *output)
{
	const struct fbt_ring_file *from = (const struct fbt_ring_file *)event;
	struct fbt_file file;
	char path[FILE_PATH_BYTES];
	const char *const strings[] = {path};
	int err;

	if (event->size < sizeof(file) || !is_sound(from))
		return -EBADMSG;
	file = from->file;
	file_path_write(from, path);
	err = record_send_strings(output, &file, sizeof(file), FBT_EVENT_FILE, strings, 1);
	return err ? err : remember(names, file.id);
}
