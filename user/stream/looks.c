/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/looks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/traced.h"
#include "look/look.h"
#include "model/spins.h"
#include "model/syscalls.h"
#include "stream/peers.h"
#include "stream/spin_row.h"

#define OPEN_NS	      (20 * NS_PER_MS)
#define LOOKS_PER_S   10
#define HANG_PAUSE_NS (NS_PER_S / 2)
/* A look is followed by a pause of so many times its own length. */
#define PAUSE_FACTOR 19
#define TRIES	     3

/* Until the next look at a wait of which the last one has not told all: by then it may be known. */
static const uint64_t pauses_ns[TRIES] = {50 * NS_PER_MS, 200 * NS_PER_MS};

/* The looks at one wait. */
struct tries {
	uint64_t start_ns; /* of the wait */
	uint64_t next_ns;  /* earliest time of the next one */
	uint32_t made;	   /* TRIES: no more are needed */
	__u64 *counter;	   /* in fbt_looks, of the one that counts the wait; NULL: none yet */
};

/*
 * A wait for the lock of an interpreter: a row of calls that each time out after 5 ms. As far as
 * they take up most of the time, it is one wait.
 */
struct gil_row {
	uint64_t step_ns; /* when its step began; 0: there is no wait */
	uint64_t start_ns;
	uint64_t before_ns; /* what the thread had waited until then */
};

struct looks {
	const struct shared *shared;
	struct task_list *list;
	const struct record_output *output;
	struct looks_options options;
	struct look *look;
	struct fbt_looks sent;
	task_vec tasks;
	uint64_t second;  /* the present one, … */
	uint32_t taken;	  /* … and the looks in it */
	uint64_t next_ns; /* earliest time of the next look */
	uint64_t hang_ns; /* the latest look at a hang */
	struct seen {
		struct tries call;
		struct gil_row gil;
		struct tries gil_tries;
		struct spin_row spin;
		struct tries spin_tries;
	} seen[]; /* of each slot */
};

static void know_call(const struct looks *looks, struct look_task *task)
{
	const volatile struct fbt_slot *slot = NULL;

	if (looks->options.calls_known)
		slot = shared_slot_of(looks->shared, task->seen.tid);
	if (!slot)
		return;
	task->call_ns = slot->start_ns;
	task->step_sp = slot->step_start_ns ? slot->step_sp : 0;
	if (task->call_ns)
		task->seen.nr = slot->nr;
}

static int list(void *ctx, uint32_t tgid, look_task_vec *tasks)
{
	struct looks *looks = ctx;
	int err = task_list__read(looks->list, tgid, &looks->tasks, FBT_SLOTS_MAX);

	tasks->count = 0;
	for (size_t i = 0; i < looks->tasks.count && !err; i++) {
		struct look_task task = {.seen = looks->tasks.items[i]};

		task.was_called = task.seen.nr >= 0;
		know_call(looks, &task);
		err = vec_push(tasks, task);
	}
	if (looks->tasks.count)
		explicit_bzero(looks->tasks.items,
			       looks->tasks.count * sizeof(*looks->tasks.items));
	return err;
}

static bool is_open(void *ctx, const struct look_wait *wait)
{
	const struct looks *looks = ctx;
	const volatile struct fbt_slot *slot = shared_slot_of(looks->shared, wait->tid);

	if (slot && wait->is_spin && !spin_may_have(syscalls_arch(), slot->nr))
		return false;
	if (slot && (wait->is_gil || wait->is_spin))
		return slot->step_start_ns == wait->step_ns;
	return slot && (wait->is_hang ? slot->step_start_ns : slot->start_ns) == wait->start_ns;
}

static void name(void *ctx, uint32_t tgid, uint32_t tid)
{
	const struct looks *looks = ctx;

	looks->options.name(looks->options.ctx, tgid, tid);
}

static void held(void *ctx, const struct look_wait *wait, const struct look_held *seen)
{
	const struct looks *looks = ctx;
	const struct peer_wait call = {.tgid = wait->tgid,
				       .tid = seen->tid,
				       .call_ns = seen->call_ns,
				       .nr = seen->nr,
				       .args = {seen->args[0], seen->args[1]}};

	peers__know_holder(looks->options.peers, wait->tid, &call);
}

struct looks *looks__new(const struct shared *shared, struct task_list *tasks,
			 struct stacks *stacks, const struct record_output *output,
			 const struct looks_options *options)
{
	struct looks *looks =
		calloc(1, sizeof(*looks) + shared->slot_count * sizeof(looks->seen[0]));
	struct look_source source = {list, is_open, name, held, looks};

	if (!looks)
		return NULL;
	looks->shared = shared;
	looks->list = tasks;
	looks->output = output;
	looks->options = *options;
	looks->look = look__new(stacks, output, &source);
	if (!looks->look) {
		looks__free(looks);
		return NULL;
	}
	return looks;
}

void looks__free(struct looks *looks)
{
	if (!looks)
		return;
	look__free(looks->look);
	vec_free(&looks->tasks);
	free(looks);
}

/* A wait counts once, as what the latest look at it has come to, or as one that was seen. */
static void count_as(struct looks *looks, struct tries *tries, __u64 *counter)
{
	if (tries->counter == &looks->sent.taken)
		return;
	if (tries->counter)
		--*tries->counter;
	tries->counter = counter;
	++*counter;
}

/* Whether all is known that there will be. */
static bool take(struct looks *looks, const struct look_wait *wait, struct tries *tries)
{
	uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), took_ns;
	int err = look__take(looks->look, wait);

	/* Of all threads of the tool: another one reads memory. */
	took_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	looks->sent.cost_ns += took_ns;
	looks->next_ns = clock_ns(CLOCK_MONOTONIC) + PAUSE_FACTOR * took_ns;
	if (!err || err == LOOK_IS_PARTIAL) {
		count_as(looks, tries, &looks->sent.taken);
	} else if (err == -EAGAIN || err == -ESRCH) {
		count_as(looks, tries, &looks->sent.stale);
	} else {
		count_as(looks, tries, &looks->sent.blind);
		log_debug("process %u: look from outside: %s", wait->tgid, strerror(-err));
	}
	return !err || err == -EPERM || err == -EACCES;
}

static bool is_over_limit(const struct shared *shared, const volatile struct fbt_slot *slot,
			  uint64_t open_ns)
{
	uint32_t at =
		(slot->step_kind & (FBT_KIND_COUNT - 1)) * FBT_LIMITS + slot->nr % FBT_NR_COUNT;

	return open_ns >= OPEN_NS && open_ns >= shared->call_limits[at] << FBT_LIMIT_SHIFT;
}

/* Whether there may be one more look in this second. */
static bool has_room(struct looks *looks, uint64_t now_ns)
{
	if (looks->second != now_ns / NS_PER_S) {
		looks->second = now_ns / NS_PER_S;
		looks->taken = 0;
	}
	if (looks->taken == LOOKS_PER_S)
		return false;
	looks->taken++;
	return true;
}

/* The wait is long enough. If there is no room, there may be some at a later turn. */
static void look_at(struct looks *looks, struct tries *tries, const struct look_wait *wait)
{
	if (tries->start_ns != wait->start_ns)
		*tries = (struct tries){.start_ns = wait->start_ns};
	if (tries->made == TRIES || wait->now_ns < tries->next_ns)
		return;
	if (!has_room(looks, wait->now_ns)) {
		if (!tries->counter)
			count_as(looks, tries, &looks->sent.skipped);
		return;
	}
	tries->next_ns = wait->now_ns + pauses_ns[tries->made];
	tries->made = take(looks, wait, tries) ? TRIES : tries->made + 1;
}

/* The thread writes its slot meanwhile: is_open() tells whether it was the same to the end. */
static void look_at_slot(struct looks *looks, uint32_t index, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &looks->shared->slots[index];
	uint64_t start_ns = slot->start_ns;
	struct look_wait wait = {
		.tgid = slot->tgid, .tid = slot->tid, .start_ns = start_ns, .now_ns = now_ns};

	if (!start_ns || start_ns >= now_ns || !slot->step_start_ns ||
	    slot->state != FBT_SLOT_LIVE || start_ns < slot->step_start_ns ||
	    !is_over_limit(looks->shared, slot, now_ns - start_ns))
		return;
	look_at(looks, &looks->seen[index].call, &wait);
}

static void look_at_gil(struct looks *looks, uint32_t index, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &looks->shared->slots[index];
	struct gil_row *row = &looks->seen[index].gil;
	uint64_t start_ns = slot->start_ns, waited_ns = slot->stalls.gil_ns;
	struct look_wait wait = {.tgid = slot->tgid,
				 .tid = slot->tid,
				 .now_ns = now_ns,
				 .is_gil = true,
				 .step_ns = slot->step_start_ns,
				 .lock = slot->call_args[0]};

	if (!wait.step_ns || slot->state != FBT_SLOT_LIVE || !slot->call_gil ||
	    start_ns < wait.step_ns || start_ns >= now_ns)
		return;
	waited_ns += now_ns - start_ns;
	if (row->step_ns != wait.step_ns || waited_ns < row->before_ns ||
	    (waited_ns - row->before_ns) * 2 < now_ns - row->start_ns)
		*row = (struct gil_row){wait.step_ns, start_ns, slot->stalls.gil_ns};
	if (now_ns - row->start_ns < OPEN_NS)
		return;
	wait.start_ns = row->start_ns;
	look_at(looks, &looks->seen[index].gil_tries, &wait);
}

static void look_at_spin(struct looks *looks, uint32_t index, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &looks->shared->slots[index];
	const struct spin_row *row = &looks->seen[index].spin;
	const struct look_wait wait = {.tgid = slot->tgid,
				       .tid = slot->tid,
				       .start_ns = row->start_ns,
				       .now_ns = now_ns,
				       .is_spin = true,
				       .step_ns = row->step_ns};

	if (spin_row_is_long(row, OPEN_NS, now_ns))
		look_at(looks, &looks->seen[index].spin_tries, &wait);
}

void looks__turn(struct looks *looks, uint64_t now_ns)
{
	uint32_t used = slots_used(looks->shared);

	if (!looks->list || !looks->options.at_calls)
		return;
	/* What is open long enough stays so until the next turn. */
	for (uint32_t i = 1; i < used; i++) {
		const volatile struct fbt_slot *slot = &looks->shared->slots[i];

		if (slot->state == FBT_SLOT_LIVE)
			spin_row_turn(&looks->seen[i].spin, slot, syscalls_arch(), now_ns);
		if (now_ns >= looks->next_ns)
			look_at_slot(looks, i, now_ns);
		if (now_ns >= looks->next_ns)
			look_at_gil(looks, i, now_ns);
		if (now_ns >= looks->next_ns && slot->state == FBT_SLOT_LIVE)
			look_at_spin(looks, i, now_ns);
	}
}

bool looks__must_wait(const struct looks *looks, uint64_t now_ns)
{
	return looks->list && looks->hang_ns && now_ns < looks->hang_ns + HANG_PAUSE_NS;
}

void looks__at_hang(struct looks *looks, const struct fbt_hang *hang)
{
	struct look_wait wait = {.tgid = hang->tgid,
				 .tid = hang->tid,
				 .start_ns = hang->step_start_ns,
				 .now_ns = hang->time_ns,
				 .is_hang = true};
	struct tries tries = {.made = 0};

	if (!looks->list)
		return;
	if (looks__must_wait(looks, hang->time_ns)) {
		looks->sent.skipped++;
		return;
	}
	looks->hang_ns = hang->time_ns;
	take(looks, &wait, &tries);
}

void looks__send_counts(struct looks *looks)
{
	const struct fbt_looks *sent = &looks->sent;

	if (sent->taken || sent->skipped || sent->stale || sent->blind)
		record_send(looks->output, &looks->sent, sizeof(looks->sent), FBT_EVENT_LOOKS);
}
