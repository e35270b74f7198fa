/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/step_sums.h"

#include <stdlib.h>
#include <string.h>

/* Memory for so many records is kept when there are fewer. */
#define SPARE 16

struct step_sums {
	size_t size;
	size_t max;
	size_t count;
	size_t capacity;
	char *records; /* the oldest first */
};

struct step_sums *step_sums__new(size_t size, size_t max)
{
	struct step_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return NULL;
	sums->size = size;
	sums->max = max;
	return sums;
}

void step_sums__free(struct step_sums *sums)
{
	if (!sums)
		return;
	free(sums->records);
	free(sums);
}

static void *record_at(struct step_sums *sums, size_t index)
{
	return sums->records + index * sums->size;
}

static int resize(struct step_sums *sums, size_t capacity)
{
	char *records = realloc(sums->records, capacity * sums->size);

	if (!records)
		return -1;
	sums->records = records;
	sums->capacity = capacity;
	return 0;
}

void *step_sums__find(struct step_sums *sums, uint32_t tid, uint64_t start_ns)
{
	for (size_t i = 0; i < sums->count; i++) {
		const struct step_sum *key = record_at(sums, i);

		if (key->tid == tid && key->start_ns == start_ns)
			return record_at(sums, i);
	}
	return NULL;
}

void *step_sums__get(struct step_sums *sums, const struct step_sum *key)
{
	void *record = step_sums__find(sums, key->tid, key->start_ns);

	if (record)
		return record;
	if (sums->count == sums->max)
		step_sums__drop(sums, record_at(sums, 0));
	if (sums->count == sums->capacity &&
	    resize(sums, sums->capacity ? sums->capacity * 2 : SPARE))
		return NULL;
	record = record_at(sums, sums->count++);
	memset(record, 0, sums->size);
	memcpy(record, key, sizeof(*key));
	return record;
}

void step_sums__drop(struct step_sums *sums, void *record)
{
	size_t index = (size_t)((char *)record - sums->records) / sums->size;

	sums->count--;
	memmove(record_at(sums, index), record_at(sums, index + 1),
		(sums->count - index) * sums->size);
	/* Without memory for the copy it just stays as large as it is. */
	if (sums->capacity > SPARE && sums->count < sums->capacity / 4)
		(void)resize(sums, sums->capacity / 2);
}
