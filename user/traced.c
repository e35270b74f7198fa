/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "processes.h"
#include "target.h"
#include "traced.h"
#include "uprobes.h"

/* What a burst of children took lies between what stays: the heap alone would keep it. */
#define TRIM_EVERY 256
/* PF_EXITING of the kernel. */
#define TASK_EXITING 4u

struct traced_set {
	struct shared *shared;
	const struct record_output *output;
	VEC(struct traced *) processes;
	VEC(uint32_t) ended_slots;
	uint64_t lost_threads; /* most that were without a slot at once */
	uint32_t forgotten;    /* since the heap was trimmed */
};

struct traced_set *traced_set__new(struct shared *shared, const struct record_output *output)
{
	struct traced_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->shared = shared;
	set->output = output;
	return set;
}

static void free_traced(struct traced *traced)
{
	target_seen__free(traced->seen);
	uprobes__free(traced->uprobes);
	uprobes__free(traced->stale);
	vec_free(&traced->kinds);
	free(traced->previous);
	free(traced);
}

void traced_set__free(struct traced_set *set)
{
	if (!set)
		return;
	vec_for_each (traced, &set->processes)
		free_traced(*traced);
	vec_free(&set->processes);
	vec_free(&set->ended_slots);
	free(set);
}

struct traced *traced_set__find(struct traced_set *set, uint32_t tgid)
{
	vec_for_each (traced, &set->processes) {
		if ((*traced)->tgid == tgid)
			return *traced;
	}
	return NULL;
}

size_t traced_set__count(const struct traced_set *set)
{
	return set->processes.count;
}

struct traced *traced_set__at(struct traced_set *set, size_t index)
{
	return index < set->processes.count ? set->processes.items[index] : NULL;
}

struct traced *traced_set__add(struct traced_set *set, uint32_t tgid)
{
	struct traced *traced = traced_set__find(set, tgid);

	if (traced)
		return traced;
	traced = calloc(1, sizeof(*traced));
	if (!traced)
		return NULL;
	traced->tgid = tgid;
	traced->rescan = true;
	traced->live_threads = 1;
	traced->seen = target_seen__new();
	if (!traced->seen || vec_push(&set->processes, traced)) {
		free_traced(traced);
		return NULL;
	}
	return traced;
}

static int list_threads(uint32_t tgid, uint32_t **tids, size_t *count)
{
	VEC(uint32_t) found = {0};
	char path[32];
	struct dirent *entry;
	DIR *folder;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	folder = opendir(path);
	if (!folder)
		return -ESRCH;
	while (!err && (entry = readdir(folder))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			err = vec_push(&found, (uint32_t)strtoul(entry->d_name, NULL, 10));
	}
	closedir(folder);
	*tids = found.items;
	*count = found.count;
	return err;
}

/* Whether the thread has a slot now and is not ending; *missing counts those that found none. */
static bool take_thread(struct traced_set *set, uint32_t tgid, uint32_t tid, uint64_t now_ns,
			uint32_t *missing)
{
	int slot = slots_take(set->shared, tgid, tid, now_ns);
	struct thread_stat stat;
	bool ends;

	if (!slot)
		return true;
	/* It has begun to end, so that the kernel side may have seen its end already. */
	ends = thread_stat_read(&stat, tgid, tid) || (stat.flags & TASK_EXITING);
	if (slot < 0)
		*missing += !ends;
	else if (ends)
		slots_end(set->shared, tid, now_ns);
	else if (stat.state != 'R')
		slots_mark_blocked(set->shared, (uint32_t)slot);
	return slot > 0 && !ends;
}

static uint64_t count_missing(const struct traced_set *set)
{
	uint64_t missing = 0;

	vec_for_each (traced, &set->processes)
		missing += (*traced)->missing;
	return missing;
}

int traced_set__take_threads(struct traced_set *set, uint32_t tgid, uint64_t now_ns)
{
	struct traced *traced = traced_set__find(set, tgid);
	uint32_t *tids = NULL, missing = 0;
	size_t count = 0;
	int taken = 0, err = list_threads(tgid, &tids, &count);

	for (size_t i = 0; !err && i < count; i++)
		taken += take_thread(set, tgid, tids[i], now_ns, &missing);
	free(tids);
	slots_forget_strangers(set->shared);
	if (traced)
		traced->missing = missing;
	if (count_missing(set) > set->lost_threads)
		set->lost_threads = count_missing(set);
	return err ? err : taken;
}

uint64_t traced_set__lost_threads(const struct traced_set *set)
{
	return set->lost_threads;
}

/* Slots that were ever used. */
static uint32_t used_slots(const struct shared *shared)
{
	uint64_t taken = __atomic_load_n(&shared->control->free_head, __ATOMIC_ACQUIRE) + 1;

	return taken < shared->slot_count ? (uint32_t)taken : shared->slot_count;
}

void traced_set__mark_ended(struct traced_set *set)
{
	uint32_t used = used_slots(set->shared);

	for (uint32_t i = 1; i < used; i++) {
		if (__atomic_load_n(&set->shared->slots[i].state, __ATOMIC_ACQUIRE) ==
			    FBT_SLOT_DEAD &&
		    vec_push(&set->ended_slots, i))
			break;
	}
}

static void count_live(struct traced_set *set)
{
	uint32_t used = used_slots(set->shared);

	vec_for_each (traced, &set->processes) {
		(*traced)->live_threads = 0;
		for (uint32_t i = 1; i < used; i++)
			(*traced)->live_threads += set->shared->tgids[i] == (*traced)->tgid;
	}
}

void traced_set__collect(struct traced_set *set, void (*on_end)(void *ctx, uint32_t tid), void *ctx)
{
	vec_for_each (slot, &set->ended_slots) {
		struct traced *traced = traced_set__find(set, set->shared->slots[*slot].tgid);

		if (traced)
			slots_add(set->shared, *slot, 0, &traced->ended);
		if (on_end)
			on_end(ctx, set->shared->slots[*slot].tid);
		slots_give_back(set->shared, *slot);
	}
	if (set->ended_slots.count)
		count_live(set);
	set->ended_slots.count = 0;
}

void traced_set__end_slots(struct traced_set *set, const struct traced *traced, uint64_t now_ns)
{
	uint32_t used = used_slots(set->shared);

	for (uint32_t i = 1; i < used; i++) {
		struct fbt_slot *slot = &set->shared->slots[i];

		if (slot->tgid != traced->tgid || slot->state != FBT_SLOT_LIVE)
			continue;
		set->shared->tgids[i] = 0;
		slot->died_ns = now_ns;
		__atomic_store_n(&slot->state, FBT_SLOT_DEAD, __ATOMIC_RELEASE);
	}
}

void traced_set__sum(struct traced_set *set, const struct traced *traced, uint64_t now_ns,
		     struct process_sums *sums)
{
	uint32_t used = used_slots(set->shared);

	*sums = traced->ended;
	for (uint32_t i = 1; i < used; i++) {
		if (set->shared->slots[i].tgid == traced->tgid &&
		    set->shared->slots[i].state != FBT_SLOT_FREE)
			slots_add(set->shared, i, now_ns, sums);
	}
}

void traced_set__send_table(struct traced_set *set, const struct traced *traced, uint64_t now_ns)
{
	struct process_sums *sums = malloc(sizeof(*sums));

	if (!sums)
		return;
	traced_set__sum(set, traced, now_ns, sums);
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		struct fbt_table row = {.tgid = traced->tgid,
					.nr = nr,
					.sum = sums->rows[nr],
					.unfinished = sums->unfinished[nr]};

		if (row.sum.calls || row.unfinished)
			record_send(set->output, &row, sizeof(row), FBT_EVENT_TABLE);
	}
	free(sums);
}

void traced_set__forget(struct traced_set *set, struct traced *traced)
{
	for (size_t i = 0; i < set->processes.count; i++) {
		if (set->processes.items[i] == traced) {
			set->processes.items[i] = set->processes.items[--set->processes.count];
			break;
		}
	}
	free_traced(traced);
	if (++set->forgotten < TRIM_EVERY)
		return;
	set->forgotten = 0;
	malloc_trim(0);
}

void traced_set__remove(struct traced_set *set, struct traced *traced, uint64_t now_ns)
{
	struct fbt_target_exit gone = {.end_ns = now_ns, .tgid = traced->tgid};

	traced_set__send_table(set, traced, now_ns);
	record_send(set->output, &gone, sizeof(gone), FBT_EVENT_TARGET_EXIT);
	traced_set__forget(set, traced);
}
