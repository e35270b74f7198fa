/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "step_class.h"

#include <string.h>

/* Of a key: bits of the work or of the argument, and which it is. */
#define KEY_BUCKET	0xffu
#define KEY_BY_ARGUMENT 0x100u
#define KEY_KIND	16
#define KEY_PROCESS	22
_Static_assert(FBT_KIND_COUNT <= 1 << (KEY_PROCESS - KEY_KIND), "a kind has its bits of a key");
_Static_assert(WINDOW_PROCESSES_MAX <= 1 << (32 - KEY_PROCESS), "so have those of one number");
#define BUCKETS 64

static uint64_t bucket_of(uint64_t value)
{
	return value ? BUCKETS - (uint64_t)__builtin_clzll(value) : 0;
}

/* The argument that classes go by, if the step has it. */
static bool find_argument(const struct window *window, const struct fbt_step *record,
			  const char *name, int64_t *value)
{
	const struct kind *kind = &window->kinds[record->kind % FBT_KIND_COUNT];

	for (uint32_t i = 0; name && i < FBT_ARG_COUNT; i++) {
		if (!(record->arg_mask & (1u << i)) || !kind->arg_names[i] ||
		    strcmp(kind->arg_names[i], name) != 0)
			continue;
		*value = record->args[i];
		return true;
	}
	return false;
}

/* How many processes had that number: what was usual of one is not of the next. */
static uint64_t processes_of(const struct window *window, uint32_t tgid)
{
	size_t low = 0, high = window->processes.count;
	uint64_t count = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (window->processes.items[middle]->record.tgid < tgid)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < window->processes.count && window->processes.items[low++]->record.tgid == tgid)
		count++;
	return count % WINDOW_PROCESSES_MAX;
}

uint64_t step_class_key(const struct window *window, const struct fbt_step *record,
			const char *class_by, uint64_t work_ns)
{
	uint64_t bucket = bucket_of(work_ns);
	int64_t value;

	if (find_argument(window, record, class_by, &value))
		bucket = bucket_of(value > 0 ? (uint64_t)value : 0) | KEY_BY_ARGUMENT;
	return (uint64_t)record->tgid << 32 | processes_of(window, record->tgid) << KEY_PROCESS |
	       (uint64_t)(record->kind % FBT_KIND_COUNT) << KEY_KIND | bucket;
}

bool step_class_is_known(const struct class_history *history)
{
	return history && class_history__count(history) >= CLASS_KNOWN_STEPS;
}

struct class_history *step_class_find_known(struct class_table *classes, struct class_history *own,
					    uint64_t key)
{
	uint64_t bucket = key & KEY_BUCKET;

	if (step_class_is_known(own) || key & KEY_BY_ARGUMENT)
		return own;
	for (uint64_t far = 1; far <= BUCKETS; far++) {
		struct class_history *history = NULL;

		if (far <= bucket)
			history = class_table__find(classes, key - far);
		if (!step_class_is_known(history) && bucket + far <= BUCKETS)
			history = class_table__find(classes, key + far);
		if (step_class_is_known(history))
			return history;
	}
	return own;
}
