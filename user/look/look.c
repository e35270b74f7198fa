/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "look/look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "look/chain.h"
#include "look/group.h"
#include "look/readings.h"
#include "proc/memory.h"
#include "stacks/stacks.h"

/* Of all threads, a first part of their stacks; where that is not enough, all that is ever read. */
#define STACK_FIRST  16384u
#define STACK_MOST   FBT_STACK_BYTES
#define FRAMES_ASKED 6
/* Of CPU time for the stacks of all threads, at a hang and at a call. */
#define HANG_NS	  (20 * NS_PER_MS)
#define OTHERS_NS (5 * NS_PER_MS)
/* Of time for them: pages that are swapped out take none of a CPU. The rings are to be read. */
#define SLOW_NS (200 * NS_PER_MS)
/* fbt_look_thread.depth, for look_group() */
#define LISTED_FIRST 1

struct look {
	struct stacks *stacks;
	const struct record_output *output;
	struct look_source source;
	struct memory *memory;
	look_task_vec tasks;
	look_task_vec again; /* the same, listed later */
	struct lock_wait *waits;
	enum lock_caller *callers;
	uint64_t *locks; /* the addresses that they wait at; 0: they do not */
	struct memory_part parts[MEMORY_PARTS];
	size_t part_of[MEMORY_PARTS]; /* the task */
	struct chain chain;
	struct stack_codes stacks_of[1 + FBT_LOOK_HOLDERS]; /* of the chain */
};

struct look *look__new(struct stacks *stacks, const struct record_output *output,
		       const struct look_source *source)
{
	struct look *look = calloc(1, sizeof(*look));

	if (!look)
		return NULL;
	look->stacks = stacks;
	look->output = output;
	look->source = *source;
	look->memory = memory__new();
	if (!look->memory) {
		look__free(look);
		return NULL;
	}
	return look;
}

void look__free(struct look *look)
{
	if (!look)
		return;
	memory__free(look->memory);
	vec_free(&look->tasks);
	vec_free(&look->again);
	free(look->waits);
	free(look->callers);
	free(look->locks);
	free(look);
}

static int make_room(struct look *look)
{
	size_t count = look->tasks.count ? look->tasks.count : 1;

	free(look->waits);
	free(look->callers);
	free(look->locks);
	look->waits = calloc(count, sizeof(*look->waits));
	look->callers = calloc(count, sizeof(*look->callers));
	look->locks = calloc(count, sizeof(*look->locks));
	return look->waits && look->callers && look->locks ? 0 : -ENOMEM;
}

/* The stacks and registers hold what users have sent to the engine. */
static void forget(struct look *look)
{
	memory__wipe(look->memory);
	if (look->tasks.count)
		explicit_bzero(look->tasks.items, look->tasks.count * sizeof(*look->tasks.items));
	if (look->again.count)
		explicit_bzero(look->again.items, look->again.count * sizeof(*look->again.items));
	look->tasks.count = 0;
	look->again.count = 0;
}

/* The thread lives; the first one of its process may have ended. */
static struct proc_ref ref_of(const struct look_wait *wait)
{
	return (struct proc_ref){wait->tgid, wait->tid};
}

static void take_words(struct lock_wait *wait, const struct memory_part *part)
{
	wait->word_count = part->got / sizeof(wait->words[0]);
	memcpy(wait->words, part->data, wait->word_count * sizeof(wait->words[0]));
}

static void add_lock(struct look *look, size_t task, size_t at)
{
	look->parts[at] = (struct memory_part){.address = look->locks[task],
					       .size = sizeof(look->waits[0].words)};
	look->part_of[at] = task;
}

/* The words of all locks that threads wait for, of so many threads as there are parts. */
static int read_locks(struct look *look, const struct look_wait *wait)
{
	size_t count = 0;
	int err;

	for (size_t i = 0; i < look->tasks.count && count < MEMORY_PARTS; i++)
		if (look_at_lock(&look->tasks.items[i], &look->locks[i], &look->waits[i]))
			add_lock(look, i, count++);
	if (!count)
		return 0;
	err = memory__read(look->memory, ref_of(wait), look->parts, count);
	for (size_t i = 0; i < count && !err; i++)
		if (look->parts[i].got)
			take_words(&look->waits[look->part_of[i]], &look->parts[i]);
	return err;
}

static void add_stack(struct look *look, size_t task, uint32_t size, size_t at)
{
	const struct fbt_look_task *seen = &look->tasks.items[task].seen;

	look->parts[at] =
		(struct memory_part){.address = stack_source_sp(seen->registers), .size = size};
	look->part_of[at] = task;
}

/* Of the step's call only up to the step; at a hang all of a thread is wanted. */
static void unwind_part(struct look *look, const struct look_wait *wait, size_t at,
			struct stack_codes *codes)
{
	const struct look_task *task = &look->tasks.items[look->part_of[at]];
	const struct fbt_look_task *seen = &task->seen;
	bool is_to_step = !wait->is_hang && seen->tid == wait->tid;
	const struct memory_part *part = &look->parts[at];
	const struct stack_source source = {.tgid = wait->tgid,
					    .tid = seen->tid,
					    .registers = seen->registers,
					    .stack = part->data,
					    .bytes = part->got,
					    .step_sp = is_to_step ? task->step_sp : 0,
					    .is_present = true};

	codes->count = 0;
	codes->flags = 0;
	if (part->got)
		stacks__unwind(look->stacks, &source, clock_ns(CLOCK_MONOTONIC), codes);
}

/* What the innermost functions of a thread say that it waits for. */
static enum lock_caller find_caller(const struct look *look, const struct stack_codes *codes)
{
	struct lock_frame frames[FRAMES_ASKED];
	size_t count = min_u64(codes->count, FRAMES_ASKED);

	for (size_t i = 0; i < count; i++) {
		struct code_about about;

		stacks__about(look->stacks, codes->codes[i], &about);
		frames[i] = (struct lock_frame){about.function, about.path};
	}
	return lock_caller_of(frames, count);
}

/*
 * Reads the stacks of the chain, and then its locks again. Only locks that are the same, and are
 * waited for in a function that takes such locks, are believed.
 */
static int read_chain(struct look *look, const struct look_wait *wait)
{
	struct chain *chain = &look->chain;
	size_t count = chain->count;
	int err;

	for (size_t i = 0; i < count; i++) {
		add_stack(look, chain->tasks[i], STACK_MOST, i);
		add_lock(look, chain->tasks[i], count + i);
	}
	err = memory__read(look->memory, ref_of(wait), look->parts, 2 * count);
	for (size_t i = 0; i < count && !err; i++) {
		size_t task = chain->tasks[i];
		struct lock_wait again = look->waits[task];

		unwind_part(look, wait, i, &look->stacks_of[i]);
		look->callers[task] = find_caller(look, &look->stacks_of[i]);
		take_words(&again, &look->parts[count + i]);
		if (memcmp(&again, &look->waits[task], sizeof(again)) != 0)
			look->waits[task].word_count = 0;
	}
	if (!err)
		chain_shorten(&look->tasks, look->waits, look->callers, chain);
	return err;
}

/* A thread that spins runs on while its stack is read, so it is read several times. */
static int read_spinner(struct look *look, const struct look_wait *wait)
{
	struct readings readings = {.count = 0};
	const struct stack_codes *chosen;
	struct stack_codes codes;
	int err = 0;

	look->stacks_of[0].count = 0;
	for (uint32_t i = 0; i < READINGS_MOST && !err; i++) {
		add_stack(look, look->chain.tasks[0], STACK_MOST, 0);
		err = memory__read(look->memory, ref_of(wait), look->parts, 1);
		if (err)
			break;
		unwind_part(look, wait, 0, &codes);
		readings_add(&readings, &codes);
	}
	chosen = readings_choose(&readings);
	if (chosen)
		look->stacks_of[0] = *chosen;
	return err;
}

/* Whether a thread has not run since it was listed first. */
static bool is_unchanged(const struct look *look, const struct look_task *task)
{
	size_t at = look_find(&look->again, task->seen.tid);

	return at < look->again.count && !task->seen.on_cpu &&
	       look->again.items[at].seen.switches == task->seen.switches &&
	       look->again.items[at].seen.state == task->seen.state &&
	       look->again.items[at].seen.on_cpu == task->seen.on_cpu;
}

static void make_thread(const struct look *look, const struct look_wait *wait, size_t index,
			const struct stack_codes *codes, struct fbt_look_thread *thread)
{
	const struct look_task *task = &look->tasks.items[index];
	bool in_call = look_in_call(task);

	*thread = (struct fbt_look_thread){
		.header.flags = codes ? codes->flags : 0,
		.tgid = wait->tgid,
		.tid = wait->tid,
		.start_ns = wait->start_ns,
		.time_ns = wait->now_ns,
		.lock = look->locks[index],
		.owner = task->seen.tid,
		.doing = look_doing(task),
		.threads = 1,
		.count = codes ? codes->count : 0,
	};
	if (wait->is_hang)
		thread->header.flags |= FBT_LOOK_HANG;
	if (wait->is_gil)
		thread->header.flags |= FBT_LOOK_GIL;
	if (wait->is_spin)
		thread->header.flags |= FBT_LOOK_SPIN;
	if (codes && !is_unchanged(look, task))
		thread->header.flags |= FBT_LOOK_SAMPLE;
	/* From where an interrupt has met it, it has run on while its stack was read. */
	if (codes && wait->is_spin && !index && !task->was_called)
		thread->header.flags |= FBT_STACK_RAN;
	if (in_call) {
		thread->header.flags |= FBT_LOOK_IN_CALL;
		thread->nr = (uint32_t)(task->seen.nr >= 0 && task->seen.nr < FBT_NR_COUNT
						? task->seen.nr
						: FBT_NR_COUNT - 1);
		if (task->call_ns)
			thread->call_ns = sub_saturating(wait->now_ns, task->call_ns);
	}
	if (codes)
		memcpy(thread->codes, codes->codes, codes->count * sizeof(codes->codes[0]));
}

/* A thread that slept and has gone on meanwhile: where it was then is not known. */
static bool has_gone_on(const struct look *look, size_t index)
{
	const struct look_task *task = &look->tasks.items[index];

	/* One that waits for its interpreter's lock is woken now and then to ask for it. */
	return task->seen.state && !look->waits[index].holder && !is_unchanged(look, task);
}

static void send_thread(const struct look *look, struct fbt_look_thread *thread)
{
	look->source.name(look->source.ctx, thread->tgid, thread->owner);
	record_send(look->output, thread, sizeof(*thread), FBT_EVENT_LOOK_THREAD);
}

/* Of the last thread of a chain, which has not gone on. */
static void tell_held(struct look *look, const struct look_wait *wait, size_t index)
{
	const struct look_task *task = &look->tasks.items[index];
	struct look_held held = {
		.tid = task->seen.tid, .nr = (uint32_t)task->seen.nr, .call_ns = task->call_ns};

	if (look_doing(task) != FBT_DOING_CALL || !task->call_ns)
		return;
	look_arguments(task, held.args, sizeof(held.args) / sizeof(held.args[0]));
	look->source.held(look->source.ctx, wait, &held);
}

/*
 * Each link holds only if those before it do. What a holder did is left out if it has gone on
 * meanwhile: that it holds the lock is known all the same. Whether nothing was left out.
 */
static bool send_chain(struct look *look, const struct look_wait *wait)
{
	const struct chain *chain = &look->chain;

	for (size_t i = 0; i < chain->count; i++) {
		bool is_spinner = wait->is_spin && !i;
		bool is_over = !is_spinner && has_gone_on(look, chain->tasks[i]);
		struct fbt_look_thread thread;

		make_thread(look, wait, chain->tasks[i], is_over ? NULL : &look->stacks_of[i],
			    &thread);
		thread.depth = (uint32_t)i;
		if (is_over) {
			thread.doing = FBT_DOING_UNKNOWN;
			thread.header.flags &= ~(FBT_LOOK_IN_CALL | FBT_LOOK_SAMPLE);
			thread.lock = 0;
		} else if (chain->is_cycle && i + 1 == chain->count) {
			thread.header.flags |= FBT_LOOK_CYCLE;
		}
		send_thread(look, &thread);
		if (is_over)
			return false;
	}
	if (chain->count > 1 && !chain->is_cycle)
		tell_held(look, wait, chain->tasks[chain->count - 1]);
	/* An interrupt has found it between two calls. */
	return !wait->is_spin || (look->stacks_of[0].count && look->tasks.items[0].was_called);
}

/* Unwinds the stacks of count threads from first on, whose size is read, into threads. */
static int read_some(struct look *look, const struct look_wait *wait, const size_t *indices,
		     size_t count, uint32_t size, struct fbt_look_thread *threads)
{
	struct stack_codes codes;
	int err;

	for (size_t i = 0; i < count; i++)
		add_stack(look, indices[i], size, i);
	err = memory__read(look->memory, ref_of(wait), look->parts, count);
	for (size_t i = 0; i < count && !err; i++) {
		unwind_part(look, wait, i, &codes);
		make_thread(look, wait, indices[i], &codes, &threads[indices[i]]);
	}
	return err;
}

static bool is_short(const struct fbt_look_thread *thread)
{
	return !thread->count || thread->header.flags & FBT_STACK_CUT;
}

/*
 * The stacks of all threads, those of which a small part is enough first, as long as there is time.
 */
static int read_all(struct look *look, const struct look_wait *wait, size_t count,
		    struct fbt_look_thread *threads)
{
	static const uint32_t sizes[] = {STACK_FIRST, STACK_MOST};
	uint64_t end_ns =
		clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (wait->is_hang ? HANG_NS : OTHERS_NS);
	uint64_t late_ns = clock_ns(CLOCK_MONOTONIC) + SLOW_NS;
	size_t indices[MEMORY_BYTES / STACK_FIRST];
	int err = 0;

	for (size_t turn = 0; turn < 2; turn++) {
		for (size_t at = 0; at < count && !err;) {
			size_t some = 0;

			for (; at < count && some < MEMORY_BYTES / sizes[turn]; at++)
				if (is_short(&threads[at]))
					indices[some++] = at;
			if (clock_ns(CLOCK_PROCESS_CPUTIME_ID) > end_ns ||
			    clock_ns(CLOCK_MONOTONIC) > late_ns)
				return 0;
			if (some)
				err = read_some(look, wait, indices, some, sizes[turn], threads);
		}
	}
	return err;
}

/*
 * Of threads that slept and have run meanwhile the stacks may be a mixture: they are not shown. Of
 * others they are samples.
 */
static size_t check_all(const struct look *look, const struct look_wait *wait, size_t count,
			struct fbt_look_thread *threads)
{
	size_t stackless = 0;

	for (size_t i = 0; i < count; i++) {
		if (has_gone_on(look, i))
			make_thread(look, wait, i, NULL, &threads[i]);
		else if (threads[i].count && !is_unchanged(look, &look->tasks.items[i]))
			threads[i].header.flags |= FBT_LOOK_SAMPLE;
		stackless += !threads[i].count;
	}
	return stackless;
}

/*
 * The records of all threads, FBT_LOOK_THREADS at most, as far as stacks can be read. The caller
 * frees them.
 */
static int make_threads(struct look *look, const struct look_wait *wait, bool is_blind,
			struct fbt_look_thread **made, size_t *made_count)
{
	size_t count = min_u64(look->tasks.count, FBT_LOOK_THREADS);
	struct fbt_look_thread *threads = calloc(count + 1, sizeof(*threads));
	int err, listed;

	*made = threads;
	*made_count = count;
	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		make_thread(look, wait, i, NULL, &threads[i]);
	if (is_blind)
		return 0;
	err = read_all(look, wait, count, threads);
	/* Stacks that were read before an error are shown too. */
	listed = look->source.list(look->source.ctx, wait->tgid, &look->again);
	return err ? err : listed;
}

static int look_at_all(struct look *look, const struct look_wait *wait, bool is_blind)
{
	struct fbt_look record = {.tgid = wait->tgid,
				  .tid = wait->tid,
				  .start_ns = wait->start_ns,
				  .time_ns = wait->now_ns,
				  .threads = (uint32_t)look->tasks.count};
	struct fbt_look_thread *threads;
	size_t count, groups;
	int err = make_threads(look, wait, is_blind, &threads, &count);

	if (!threads)
		return err;
	record.stackless = (uint32_t)check_all(look, wait, count, threads);
	/* The thread of the step is the first of the list. */
	threads[0].depth = LISTED_FIRST;
	groups = look_group(threads, count);
	for (size_t i = 0; i < groups; i++) {
		if (i < FBT_LOOK_GROUPS)
			send_thread(look, &threads[i]);
		else
			record.left_out += threads[i].threads;
	}
	record.groups = (uint32_t)min_u64(groups, FBT_LOOK_GROUPS);
	record_send(look->output, &record, sizeof(record), FBT_EVENT_LOOK);
	free(threads);
	return err;
}

/* It has done something since the step waits, so it may be what the step waits for. */
static bool is_active(const struct look_wait *wait, const struct fbt_look_thread *thread)
{
	return thread->doing != FBT_DOING_CALL ||
	       (thread->call_ns && thread->call_ns < wait->now_ns - wait->start_ns);
}

/* Threads of which no more is told than their number. */
static void make_rest(struct fbt_look_thread *rest, uint32_t threads)
{
	rest->header.flags = FBT_LOOK_GROUP;
	rest->doing = FBT_DOING_UNKNOWN;
	rest->threads = threads;
	rest->call_ns = 0;
	rest->lock = 0;
	rest->nr = 0;
	rest->count = 0;
}

/* groups has room for one more. unlisted: threads that are in none of them. */
static void send_others(struct look *look, struct fbt_look_thread *groups, size_t count,
			uint32_t unlisted)
{
	if (unlisted) {
		groups[count] = groups[0];
		make_rest(&groups[count++], unlisted);
	}
	if (count > FBT_LOOK_OTHERS) {
		uint32_t rest = 0;

		for (size_t i = FBT_LOOK_OTHERS - 1; i < count; i++)
			rest += groups[i].threads;
		make_rest(&groups[FBT_LOOK_OTHERS - 1], rest);
		count = FBT_LOOK_OTHERS;
	}
	for (size_t i = 0; i < count; i++) {
		groups[i].depth = (uint32_t)i;
		send_thread(look, &groups[i]);
	}
}

/* What the other threads are in: a holder too, and what may matter to it. */
static int look_at_others(struct look *look, const struct look_wait *wait)
{
	struct fbt_look_thread *threads;
	size_t count, groups;
	int err;

	if (look->tasks.count < 2)
		return 0;
	err = make_threads(look, wait, false, &threads, &count);
	if (!err && look->source.is_open(look->source.ctx, wait)) {
		check_all(look, wait, count, threads);
		for (size_t i = 1; i < count; i++)
			threads[i].depth = is_active(wait, &threads[i]) ? LISTED_FIRST : 0;
		groups = look_group(threads + 1, count - 1);
		send_others(look, threads + 1, groups, (uint32_t)(look->tasks.count - count));
	}
	free(threads);
	return err;
}

/*
 * Follows the chain, and where it ends at the lock of an interpreter asks that who has it. The
 * thread that waits for it may be awake just now, between two of its calls.
 */
static void follow_all(struct look *look, const struct look_wait *wait)
{
	for (uint32_t i = 0; i < FBT_LOOK_HOLDERS; i++) {
		uint64_t lock;
		size_t last;

		chain_follow(&look->tasks, look->waits, NULL, 0, &look->chain);
		last = look->chain.tasks[look->chain.count - 1];
		lock = wait->is_gil && !last ? wait->lock : look->locks[last];
		if (!lock || look->waits[last].holder || look->chain.is_cycle)
			return;
		look->waits[last].holder = stacks__script_holder(
			look->stacks, wait->tgid, look->tasks.items[last].seen.tid, lock);
		if (!look->waits[last].holder)
			return;
		look->locks[last] = lock;
	}
	chain_follow(&look->tasks, look->waits, NULL, 0, &look->chain);
}

/* An interpreter's lock may have been given on meanwhile. */
static void check_holders(struct look *look, const struct look_wait *wait)
{
	for (size_t i = 0; i < look->chain.count; i++) {
		size_t task = look->chain.tasks[i];
		struct lock_wait *own = &look->waits[task];

		if (own->holder &&
		    own->holder != stacks__script_holder(look->stacks, wait->tgid,
							 look->tasks.items[task].seen.tid,
							 look->locks[task]))
			own->holder = 0;
	}
	chain_shorten(&look->tasks, look->waits, look->callers, &look->chain);
}

static int find_chain(struct look *look, const struct look_wait *wait)
{
	int err = read_locks(look, wait);

	if (err)
		return err;
	follow_all(look, wait);
	err = read_chain(look, wait);
	if (!err)
		check_holders(look, wait);
	if (!err && wait->is_spin)
		err = read_spinner(look, wait);
	return err ? err : look->source.list(look->source.ctx, wait->tgid, &look->again);
}

/* The threads of the process, that of the step first: of very many, not all are looked at. */
static int list_tasks(struct look *look, const struct look_wait *wait)
{
	int err = look->source.list(look->source.ctx, wait->tgid, &look->tasks);
	size_t first = look_find(&look->tasks, wait->tid);
	struct look_task task;

	if (err)
		return err;
	if (first == look->tasks.count)
		return -EAGAIN;
	task = look->tasks.items[first];
	look->tasks.items[first] = look->tasks.items[0];
	look->tasks.items[0] = task;
	return make_room(look);
}

static int look_once(struct look *look, const struct look_wait *wait)
{
	int err = list_tasks(look, wait), result = 0;
	bool is_whole = true;

	if (err)
		return err;
	err = look_map_is_locked(&look->tasks) ? -EBUSY : find_chain(look, wait);
	if (!look->source.is_open(look->source.ctx, wait))
		return -EAGAIN;
	if (!err)
		is_whole = send_chain(look, wait);
	if (wait->is_hang)
		result = look_at_all(look, wait, err != 0);
	else if (!err)
		result = look_at_others(look, wait);
	if (err || result)
		return err ? err : result;
	return is_whole ? 0 : LOOK_IS_PARTIAL;
}

int look__take(struct look *look, const struct look_wait *wait)
{
	int err = look_once(look, wait);

	forget(look);
	return err;
}
