/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which thread waits for which, by the words of their locks. Pure. */
#ifndef FBT_LOOK_CHAIN_H
#define FBT_LOOK_CHAIN_H

#include <stdbool.h>
#include "fbt_look.h"
#include "look/owner.h"
#include "look/task.h"

/* What a thread does, and whether it is in a call, whose number is seen.nr. */
enum fbt_look_doing look_doing(const struct look_task *task);
bool look_in_call(const struct look_task *task);

/* The first arguments of the call that it is in, three at most. */
void look_arguments(const struct look_task *task, uint64_t *arguments, size_t count);

/* Whether it is asleep in futex; sets the address and the arguments, not the words. */
bool look_at_lock(const struct look_task *task, uint64_t *address, struct lock_wait *wait);

/*
 * A thread of the process has the lock of its memory map, or waits for it: reading its memory might
 * have to wait too.
 */
bool look_map_is_locked(const look_task_vec *tasks);

/* The index of a thread; tasks->count: there is none. */
size_t look_find(const look_task_vec *tasks, uint32_t tid);

struct chain {
	size_t tasks[1 + FBT_LOOK_HOLDERS]; /* their indices */
	size_t count;
	bool is_cycle; /* the last one waits for one of these */
};

/*
 * Follows the owners from a thread on. locks has the wait of each task, with words, and callers
 * what its stack has told; NULL: any lock is believed.
 */
void chain_follow(const look_task_vec *tasks, const struct lock_wait *locks,
		  const enum lock_caller *callers, size_t first, struct chain *chain);

/* Cuts off what no longer follows, now that more is known. */
void chain_shorten(const look_task_vec *tasks, const struct lock_wait *locks,
		   const enum lock_caller *callers, struct chain *chain);

#endif
