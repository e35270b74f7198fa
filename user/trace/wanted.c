/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/wanted.h"

#include <string.h>

bool wanted_has(const struct wanted *wanted, uint32_t tid)
{
	for (uint32_t i = 0; i < wanted->count; i++)
		if (wanted->threads[i].tid == tid)
			return true;
	return false;
}

static uint32_t drop(struct wanted *wanted, uint32_t index)
{
	uint32_t tid = wanted->threads[index].tid;

	wanted->count--;
	memmove(&wanted->threads[index], &wanted->threads[index + 1],
		(wanted->count - index) * sizeof(wanted->threads[0]));
	return tid;
}

/* The index of the first one that has ended; count: none has. */
static uint32_t find_ended(const struct wanted *wanted)
{
	uint32_t i = 0;

	while (i < wanted->count && !wanted->threads[i].has_ended)
		i++;
	return i;
}

bool wanted_add(struct wanted *wanted, uint32_t tid, uint64_t now_ns, uint32_t *dropped)
{
	*dropped = 0;
	if (wanted_has(wanted, tid))
		return false;
	if (wanted->count == WANTED_MAX) {
		uint32_t ended = find_ended(wanted);

		if (ended < wanted->count)
			*dropped = drop(wanted, ended);
		else if (now_ns >= wanted->threads[0].since_ns + WANTED_KEEP_NS)
			*dropped = drop(wanted, 0);
		else
			return false;
	}
	wanted->threads[wanted->count++] = (struct wanted_thread){.tid = tid, .since_ns = now_ns};
	return true;
}

uint32_t wanted_drop_ended(struct wanted *wanted, bool (*lives)(void *ctx, uint32_t tid), void *ctx)
{
	uint32_t ended = find_ended(wanted);

	if (ended < wanted->count)
		return drop(wanted, ended);
	for (uint32_t i = 0; i < wanted->count; i++)
		wanted->threads[i].has_ended = !lives(ctx, wanted->threads[i].tid);
	return 0;
}
