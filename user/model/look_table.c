/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/look_table.h"

#include <string.h>

/* 315 KiB. There are ten looks a second at most, each of a few threads. */
#define THREADS_MAX 512

bool look_table_takes(uint32_t type)
{
	return type == FBT_EVENT_LOOK || type == FBT_EVENT_LOOK_THREAD || type == FBT_EVENT_LOOKS;
}

static void drop(struct look_table *table, size_t index)
{
	table->threads.count--;
	memmove(table->threads.items + index, table->threads.items + index + 1,
		(table->threads.count - index) * sizeof(*table->threads.items));
}

static bool is_of(const struct fbt_look_thread *thread, const struct fbt_look *look)
{
	return thread->header.flags & FBT_LOOK_HANG && thread->tgid == look->tgid &&
	       thread->tid == look->tid && thread->start_ns == look->start_ns;
}

static int finish_look(struct look_table *table, const struct fbt_look *record)
{
	struct hang_look look = {.record = *record};
	int err = 0;

	for (size_t i = 0; i < table->threads.count && !err;) {
		if (!is_of(&table->threads.items[i], record)) {
			i++;
			continue;
		}
		err = vec_push(&look.threads, table->threads.items[i]);
		drop(table, i);
	}
	if (!err)
		err = window__add_hang_look(table->window, &look);
	if (err)
		vec_free(&look.threads);
	return err;
}

int look_table_add(struct look_table *table, const struct fbt_header *event)
{
	const struct fbt_look_thread *thread = (const struct fbt_look_thread *)event;

	if (event->type == FBT_EVENT_LOOKS) {
		table->window->looks = *(const struct fbt_looks *)event;
		return 0;
	}
	if (event->type == FBT_EVENT_LOOK)
		return finish_look(table, (const struct fbt_look *)event);
	window__note_codes(table->window, thread->codes, thread->count);
	/* The oldest is of a step whose record was lost, or which goes on and on. */
	if (table->threads.count == THREADS_MAX)
		drop(table, 0);
	return vec_push(&table->threads, *thread);
}

void look_table_join(struct look_table *table, struct step *step)
{
	const struct fbt_step *record = &step->record;

	for (size_t i = 0; i < table->threads.count;) {
		const struct fbt_look_thread *thread = &table->threads.items[i];

		if (thread->tgid != record->tgid || thread->tid != record->tid ||
		    thread->start_ns > record->end_ns) {
			i++;
			continue;
		}
		/* Without memory the step has no look. */
		if (thread->start_ns >= record->start_ns && !(thread->header.flags & FBT_LOOK_HANG))
			(void)vec_push(&step->looks, *thread);
		drop(table, i);
	}
}

void look_table_clear(struct look_table *table)
{
	vec_free(&table->threads);
}
