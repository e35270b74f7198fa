/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "look/group.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const struct fbt_look_thread *a, const struct fbt_look_thread *b)
{
	return a->header.flags == b->header.flags && a->doing == b->doing && a->nr == b->nr &&
	       a->count == b->count && !memcmp(a->codes, b->codes, a->count * sizeof(a->codes[0]));
}

static void add(struct fbt_look_thread *group, const struct fbt_look_thread *thread)
{
	if (group->threads < FBT_LOOK_TIDS)
		group->tids[group->threads] = thread->owner;
	group->threads++;
	if (group->lock != thread->lock)
		group->lock = 0;
	if (thread->call_ns > group->call_ns)
		group->call_ns = thread->call_ns;
	if (thread->depth > group->depth)
		group->depth = thread->depth;
}

static int compare(const void *left, const void *right)
{
	const struct fbt_look_thread *a = left, *b = right;

	if (a->depth != b->depth)
		return a->depth > b->depth ? -1 : 1;
	if (a->threads != b->threads)
		return a->threads > b->threads ? -1 : 1;
	return a->owner < b->owner ? -1 : a->owner > b->owner;
}

size_t look_group(struct fbt_look_thread *threads, size_t count)
{
	size_t groups = 0;

	for (size_t i = 0; i < count; i++) {
		struct fbt_look_thread thread = threads[i];
		size_t at = 0;

		while (at < groups && !is_same(&threads[at], &thread))
			at++;
		if (at < groups) {
			add(&threads[at], &thread);
			continue;
		}
		memset(thread.tids, 0, sizeof(thread.tids));
		thread.tids[0] = thread.owner;
		thread.threads = 1;
		threads[groups++] = thread;
	}
	qsort(threads, groups, sizeof(*threads), compare);
	for (size_t i = 0; i < groups; i++) {
		threads[i].header.flags |= FBT_LOOK_GROUP;
		threads[i].depth = (uint32_t)i;
	}
	return groups;
}
