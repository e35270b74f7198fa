/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/woken_table.h"

/* 32 KiB. A step seldom waits for a millisecond more than some times. */
#define WOKENS_MAX 512

static void drop(struct woken_table *table, size_t index)
{
	table->wokens.count--;
	memmove(table->wokens.items + index, table->wokens.items + index + 1,
		(table->wokens.count - index) * sizeof(*table->wokens.items));
}

int woken_table_add(struct woken_table *table, const struct fbt_woken *woken)
{
	/* From the end: the wake-ups of a call come one soon after the other. */
	for (size_t i = table->wokens.count; i > 0; i--) {
		struct fbt_woken *known = &table->wokens.items[i - 1];

		if (known->tid == woken->tid && known->start_ns == woken->start_ns) {
			*known = *woken;
			return 0;
		}
	}
	if (table->wokens.count == WOKENS_MAX)
		drop(table, 0);
	return vec_push(&table->wokens, *woken);
}

void woken_table_join(struct woken_table *table, struct step *step)
{
	const struct fbt_step *record = &step->record;
	size_t kept = 0;

	for (size_t i = 0; i < table->wokens.count; i++) {
		const struct fbt_woken *woken = &table->wokens.items[i];

		if (woken->tgid != record->tgid || woken->tid != record->tid ||
		    woken->start_ns > record->end_ns)
			table->wokens.items[kept++] = *woken;
		/* Without memory it is not known. */
		else if (woken->start_ns >= record->start_ns)
			(void)vec_push(&step->wokens, *woken);
	}
	table->wokens.count = kept;
}

void woken_table_clear(struct woken_table *table)
{
	vec_free(&table->wokens);
}
