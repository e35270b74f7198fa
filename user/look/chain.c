/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "look/chain.h"

#include <string.h>
#include <sys/syscall.h>

#include "fbt_look.h"
#include "proc/maps.h"

/* task_struct.__state */
#define STATE_UNINTERRUPTIBLE 0x2u
#define STATE_STOPPED	      (0x4u | 0x8u)
#define STATE_NOLOAD	      0x400u

/* Where the arguments of a call are, in the order of DWARF. */
#ifdef __aarch64__
static const unsigned int argument_registers[] = {0, 1, 2};
#else
static const unsigned int argument_registers[] = {5, 4, 1};
#endif

bool look_in_call(const struct look_task *task)
{
	return task->call_ns || (!task->seen.on_cpu && task->seen.nr >= 0);
}

enum fbt_look_doing look_doing(const struct look_task *task)
{
	if (task->seen.state & STATE_STOPPED)
		return FBT_DOING_STOPPED;
	if (!task->seen.state)
		return task->seen.on_cpu ? FBT_DOING_CPU : FBT_DOING_CPU_WAIT;
	return look_in_call(task) ? FBT_DOING_CALL : FBT_DOING_KERNEL;
}

void look_arguments(const struct look_task *task, uint64_t *arguments, size_t count)
{
	for (size_t i = 0; i < count; i++)
		arguments[i] = task->seen.registers[argument_registers[i]];
}

bool look_at_lock(const struct look_task *task, uint64_t *address, struct lock_wait *wait)
{
	uint64_t arguments[3];

	*wait = (struct lock_wait){.op = 0};
	if (look_doing(task) != FBT_DOING_CALL || task->seen.nr != SYS_futex)
		return false;
	look_arguments(task, arguments, 3);
	*address = arguments[0];
	wait->op = (uint32_t)arguments[1];
	wait->value = (uint32_t)arguments[2];
	return true;
}

bool look_map_is_locked(const look_task_vec *tasks)
{
	vec_for_each (task, tasks)
		if (task->seen.state & STATE_UNINTERRUPTIBLE &&
		    !(task->seen.state & STATE_NOLOAD) && maps_call_locks(task->seen.nr))
			return true;
	return false;
}

size_t look_find(const look_task_vec *tasks, uint32_t tid)
{
	size_t at = 0;

	while (at < tasks->count && tasks->items[at].seen.tid != tid)
		at++;
	return at;
}

/* By what it calls itself. */
static size_t find_own(const look_task_vec *tasks, uint32_t ns_tid)
{
	size_t at = 0;

	while (at < tasks->count && tasks->items[at].seen.ns_tid != ns_tid)
		at++;
	return at;
}

static uint32_t owner_of(const struct lock_wait *lock, const enum lock_caller *caller)
{
	uint32_t owner;

	if (lock->holder)
		return lock->holder;
	if (caller)
		return lock_owner(lock, *caller);
	owner = lock_owner(lock, LOCK_CALLER_MUTEX);
	return owner ? owner : lock_owner(lock, LOCK_CALLER_RWLOCK);
}

void chain_follow(const look_task_vec *tasks, const struct lock_wait *locks,
		  const enum lock_caller *callers, size_t first, struct chain *chain)
{
	*chain = (struct chain){.tasks = {first}, .count = 1};
	for (;;) {
		size_t at = chain->tasks[chain->count - 1];
		uint32_t owner = owner_of(&locks[at], callers ? &callers[at] : NULL);
		size_t next = owner ? find_own(tasks, owner) : tasks->count;

		if (next == tasks->count)
			return;
		for (size_t i = 0; i < chain->count; i++)
			chain->is_cycle |= chain->tasks[i] == next;
		if (chain->is_cycle || chain->count == 1 + FBT_LOOK_HOLDERS)
			return;
		chain->tasks[chain->count++] = next;
	}
}

void chain_shorten(const look_task_vec *tasks, const struct lock_wait *locks,
		   const enum lock_caller *callers, struct chain *chain)
{
	struct chain now;
	size_t same = 0;

	chain_follow(tasks, locks, callers, chain->tasks[0], &now);
	while (same < now.count && same < chain->count && now.tasks[same] == chain->tasks[same])
		same++;
	now.is_cycle &= same == now.count;
	now.count = same;
	*chain = now;
}
