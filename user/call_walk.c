/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "call_walk.h"

#include <sys/stat.h>

#include "gpu_interval.h"

/* Calls from the mmap of a thread's stack to its clone: mprotect, rt_sigprocmask. */
#define STACK_DISTANCE 4

void call_walk_begin(struct call_walk *walk, const struct window *window, const struct step *step,
		     bool claims)
{
	*walk = (struct call_walk){.window = window,
				   .step = step,
				   .rules = call_rules((enum fbt_arch)window->record.arch),
				   .claims = claims};
}

static const struct call_rule *rule_of(const struct call_walk *walk, const struct fbt_call *call)
{
	return &walk->rules[call->nr < FBT_NR_COUNT ? call->nr : FBT_NR_COUNT - 1];
}

static bool made_thread(const struct call_rule *rule, const struct fbt_call *call)
{
	return rule->traits & CALL_MAKES_THREAD && call->ret > 0 &&
	       !(call->header.flags & FBT_CALL_UNFINISHED);
}

/* Sockets, pipes, and what has no place in a file system, as eventfds. */
static bool is_socket(const struct window *window, uint32_t id)
{
	const struct file *file = window__file(window, id);

	if (!file)
		return false;
	switch (file->record.mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
	case S_IFCHR:
	case S_IFLNK:
		return false;
	}
	return true;
}

static enum cause_kind find_part(struct call_walk *walk)
{
	const struct fbt_call *call = walk->call;

	if (!(walk->rule->traits & CALL_BY_FILE) || !call->file)
		return (enum cause_kind)walk->rule->cause;
	if (call->file != walk->file) {
		walk->file = call->file;
		walk->file_is_socket = is_socket(walk->window, call->file);
	}
	return walk->file_is_socket ? CAUSE_SOCKET_IO : (enum cause_kind)walk->rule->cause;
}

/* A thread is made soon, and no other call of this kind comes before that. */
static bool is_new_stack(const struct call_walk *walk)
{
	const call_vec *calls = &walk->step->calls;

	for (size_t i = walk->next; i < calls->count && i < walk->next + STACK_DISTANCE; i++) {
		const struct fbt_call *later = &calls->items[i];

		if (made_thread(rule_of(walk, later), later))
			return true;
		if (later->nr == walk->call->nr)
			return false;
	}
	return false;
}

static bool spend(uint32_t *credit)
{
	if (!*credit)
		return false;
	--*credit;
	return true;
}

static bool is_claimed(struct call_walk *walk)
{
	uint16_t traits = walk->rule->traits;

	if (call_walk_made_thread(walk)) {
		walk->joins++;
		walk->stacks++;
		return true;
	}
	if (traits & CALL_FUTEX && walk->call->header.flags & FBT_CALL_BLOCKED)
		return spend(&walk->joins);
	if (traits & CALL_STACK_GONE)
		return spend(&walk->stacks);
	return traits & CALL_STACK_NEW && is_new_stack(walk);
}

uint64_t call_walk_ns(const struct step *step, const struct fbt_call *call)
{
	const struct fbt_step *record = &step->record;
	uint64_t start_ns = call->start_ns, end_ns;

	if (record->kind)
		return call->duration_ns;
	if (__builtin_add_overflow(start_ns, call->duration_ns, &end_ns) || end_ns > record->end_ns)
		end_ns = record->end_ns;
	if (start_ns < record->start_ns)
		start_ns = record->start_ns;
	return end_ns > start_ns ? end_ns - start_ns : 0;
}

static uint64_t covered_ns(struct call_walk *walk)
{
	const struct step_gpu *gpu = walk->step->gpu;
	const struct fbt_call *call = walk->call;
	struct gpu_interval time = {call->start_ns, gpu_ns_add(call->start_ns, call->duration_ns)};
	uint64_t ns;

	/* Of many threads some always wait. */
	if (!gpu || !walk->step->record.kind)
		return 0;
	if (call->header.flags & FBT_CALL_BLOCKED)
		ns = gpu_interval_common_with(&gpu->busy, &walk->busy, time);
	else
		ns = gpu_interval_common_with(&gpu->sync_busy, &walk->sync_busy, time);
	return gpu_ns_min(ns, walk->ns);
}

bool call_walk_next(struct call_walk *walk)
{
	if (walk->next >= walk->step->calls.count)
		return false;
	walk->call = &walk->step->calls.items[walk->next++];
	walk->rule = rule_of(walk, walk->call);
	walk->ns = call_walk_ns(walk->step, walk->call);
	walk->covered_ns = covered_ns(walk);
	walk->ns -= walk->covered_ns;
	walk->part = find_part(walk);
	walk->cause = walk->claims && is_claimed(walk) ? CAUSE_THREAD_CHURN : walk->part;
	return true;
}

bool call_walk_made_thread(const struct call_walk *walk)
{
	return made_thread(walk->rule, walk->call);
}
