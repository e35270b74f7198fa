/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/cause.h"

#include <errno.h>
#include <string.h>

#include "base/arith.h"
#include "base/stats.h"
#include "judge/between.h"
#include "judge/calls.h"
#include "judge/peers.h"
#include "judge/scope.h"
#include "judge/short_calls.h"
#include "judge/look.h"
#include "judge/woken.h"
#include "model/gpu.h"

#define STORM_SIGNALS	10
#define STORM_FACTOR	4
#define TINY_WRITES_MIN 32
#define TINY_BYTES	512
/* Writes that take so many times as long as all do on average had to wait. */
#define TINY_FACTOR 8
/* The kernel charges memory in batches of 64 pages: half of the batches found the limit reached. */
#define FAULTS_PER_HIT 128
/* Such a call has a stack only by chance. */
#define SHORT_NS 1000000
/* The most that a page fault takes on a CPU, with the kernel freeing memory in it. */
#define FAULT_MOST_NS 200000

/*
 * Moves what new threads cost besides their clone to THREAD_CHURN, but no more than the other parts
 * have grown: the usual times were not moved.
 */
static void claim(const struct window *window, const struct step *step,
		  const struct cause_times *usual, struct cause_times *times)
{
	struct call_walk walk;

	call_walk_begin(&walk, window, step, true);
	while (call_walk_next(&walk)) {
		uint64_t *from = &times->ns[walk.part];
		uint64_t growth = sub_saturating(*from, usual->ns[walk.part]);
		uint64_t moved = walk.ns < growth ? walk.ns : growth;

		if (walk.part == walk.cause)
			continue;
		*from -= moved;
		times->ns[walk.cause] += moved;
	}
}

static enum cause_kind find_largest(const struct cause_times *times)
{
	enum cause_kind largest = CAUSE_COMPUTE;

	for (int i = 0; i < CAUSE_COUNT; i++) {
		if (times->ns[i] > times->ns[largest])
			largest = (enum cause_kind)i;
	}
	return largest;
}

static enum cause_kind find_winner(const struct cause_times *times, const struct cause_times *usual)
{
	struct cause_times growth = {0};
	enum cause_kind winner = 0;

	for (int i = 0; i < CAUSE_COUNT; i++) {
		growth.ns[i] = sub_saturating(times->ns[i], usual->ns[i]);
		/* Compute is last: it wins only if it has grown more than any other part. */
		if (growth.ns[i] > growth.ns[winner])
			winner = (enum cause_kind)i;
	}
	return growth.ns[winner] ? winner : find_largest(times);
}

/* Bytes that a call moved, mapped or gave back. end: of the heap, 0 if it is not known yet. */
static uint64_t bytes_of(const struct call_walk *walk, uint64_t *end)
{
	const struct fbt_call *call = walk->call;
	uint64_t before = *end;

	if (call->header.flags & FBT_CALL_UNFINISHED || (call->ret < 0 && call->ret >= -4095))
		return 0;
	if (walk->rule->traits & CALL_MOVES)
		return call->ret > 0 ? (uint64_t)call->ret : 0;
	if (walk->rule->traits & CALL_SPANS && call->header.flags & FBT_CALL_ARGS)
		return call->args[1];
	if (!(walk->rule->traits & CALL_BREAK))
		return 0;
	*end = (uint64_t)call->ret;
	return before ? sub_saturating(*end, before) + sub_saturating(before, *end) : 0;
}

static void count_calls(const struct scope *scope, struct cause *cause)
{
	struct call_walk walk;
	uint64_t end = 0;

	cause->blocked_known = true;
	cause->between_ns = between_sum_ns(scope->window, scope->step, scope->claims, scope->cause);
	scope_begin(scope, &walk);
	while (scope_next(scope, &walk)) {
		cause->calls = add_saturating(cause->calls, call_count(walk.call));
		cause->blocked_known &=
			(walk.call->header.flags & (FBT_CALL_ARGS | FBT_CALL_RUN)) != 0;
		cause->blocked += (walk.call->header.flags & FBT_CALL_BLOCKED) != 0;
		cause->bytes = add_saturating(cause->bytes, bytes_of(&walk, &end));
	}
}

/* Who held another lock, and for how long, says nothing of this one. */
static void name_lock(struct scope *scope, struct cause *cause)
{
	struct top_key share = scope_share(scope, BY_LOCK);

	cause->lock = share.key;
	scope->has_lock = cause->kind == CAUSE_LOCK_CONTENTION && share.calls;
	scope->lock = share.key;
}

static void name_shares(struct scope *scope, struct cause *cause)
{
	struct top_key share = scope_share(scope, BY_NUMBER);

	cause->nr = (uint32_t)share.key;
	cause->nr_calls = share.calls;
	cause->nr_ns = share.ns;
	if (cause->kind == CAUSE_LOCK_CONTENTION || cause->kind == CAUSE_LATE_THREAD)
		name_lock(scope, cause);
	if (cause->kind == CAUSE_DRIVER_CALLS) {
		share = scope_share(scope, BY_COMMAND);
		cause->command = share.key;
		cause->command_calls = share.calls;
		cause->command_ns = share.ns;
		scope->has_command = share.calls != 0;
		scope->command = cause->command;
	}
	share = scope_share(scope, BY_FILE);
	cause->file = (uint32_t)share.key;
	cause->file_calls = share.calls;
	cause->file_ns = share.ns;
}

/*
 * Turns file or socket I/O into TINY_WRITES if they take most of its time: many of them, not a few
 * that had to wait.
 */
static void find_tiny_writes(struct scope *scope, struct cause *cause)
{
	uint64_t calls = 0, bytes = 0, ns = 0, all_ns = 0, even_ns = 0, end = 0;
	struct call_walk walk;

	scope_begin(scope, &walk);
	while (scope_next(scope, &walk))
		all_ns = add_saturating(all_ns, walk.ns);
	scope->writes = true;
	scope_begin(scope, &walk);
	while (scope_next(scope, &walk)) {
		calls++;
		bytes = add_saturating(bytes, bytes_of(&walk, &end));
		ns = add_saturating(ns, walk.ns);
	}
	scope->writes = calls >= TINY_WRITES_MIN && bytes / calls < TINY_BYTES;
	if (!scope->writes)
		return;
	scope_begin(scope, &walk);
	while (scope_next(scope, &walk)) {
		if (walk.ns / TINY_FACTOR <= ns / calls)
			even_ns = add_saturating(even_ns, walk.ns);
	}
	scope->writes = even_ns >= all_ns / 2 + all_ns % 2;
	if (!scope->writes)
		return;
	cause->kind = CAUSE_TINY_WRITES;
	cause->writes_ns = ns < all_ns && ns < cause->time_ns ? ns : cause->time_ns;
}

/* How much of a wait belongs to a part of the step. */
static uint64_t waited_ns(const struct call_walk *walk, enum cause_kind part)
{
	if (part == CAUSE_COMPUTE)
		return walk->worker_ns;
	if (part == CAUSE_RUN_QUEUE)
		return walk->delay_ns;
	if (part == CAUSE_STOPPED)
		return walk->stopped_ns;
	if (part == CAUSE_PAGE_FAULTS)
		return walk->fault_ns;
	if (part == CAUSE_OFF_CPU)
		return walk->off_ns;
	return walk->cause == part ? walk->ns : 0;
}

/* before_ns: of one for the GIL, what its row had waited before the call that was ended. */
static void add_wait(struct cause *cause, const struct call_walk *walk, uint64_t ns,
		     uint64_t before_ns, uint64_t *longest_ns)
{
	const struct fbt_wake *wake = walk->wake;
	uint64_t ended_ns = sub_saturating(wake->wake_ns, wake->start_ns);

	cause->waker.ns = add_saturating(cause->waker.ns, ns);
	cause->waker.cpu_ns = add_saturating(cause->waker.cpu_ns, wake->cpu_ns);
	cause->waker.delay_ns = add_saturating(cause->waker.delay_ns, wake->delay_ns);
	cause->waker.stopped_ns = add_saturating(cause->waker.stopped_ns, wake->stopped_ns);
	cause->waker.fault_ns = add_saturating(cause->waker.fault_ns, wake->fault_wait_ns);
	cause->waker.off_ns = add_saturating(cause->waker.off_ns, wake->off_ns);
	if (call_walk_is_futex(walk, wake->nr))
		cause->waker.futex_ns = add_saturating(cause->waker.futex_ns, wake->nr_ns);
	if (ns < *longest_ns)
		return;
	*longest_ns = ns;
	cause->waker.flags = wake->flags;
	cause->waker.start_ns = wake->start_ns;
	cause->waker.after_ns =
		add_saturating(before_ns, min_u64(ended_ns, walk->call->duration_ns));
}

/*
 * The same, of a wait that another thread ended. One for the GIL times out every 5 ms and is made
 * again until somebody gives the GIL back: *row has those before.
 */
static uint64_t ended_ns(const struct call_walk *walk, enum cause_kind part, uint64_t *row)
{
	uint64_t ns = waited_ns(walk, part), row_ns = *row;

	if (!walk->is_gil)
		return walk->wake ? ns : 0;
	*row = walk->call->ret == -ETIMEDOUT ? add_saturating(row_ns, ns) : 0;
	return walk->wake && ns ? add_saturating(row_ns, ns) : 0;
}

/*
 * The thread for which the step waited longest in the part that is the cause. The part, not the
 * kind: a limit that explains the part is not what the thread did.
 */
static void find_waker(const struct scope *scope, struct cause *cause)
{
	const struct step *step = scope->step;
	struct top_keys top;
	struct call_walk walk;
	uint64_t longest_ns = 0, row = 0, all_ns = 0, ns;

	/* What page faults took of COMPUTE is inferred from those of the step's own thread. */
	if (!step->wakes.count ||
	    (cause->kind == CAUSE_MEMORY_LIMIT && scope->cause == CAUSE_COMPUTE))
		return;
	top_keys_clear(&top);
	scope_begin(scope, &walk);
	while (call_walk_next(&walk)) {
		ns = ended_ns(&walk, scope->cause, &row);
		if (ns && !scope_has_other_lock(scope, &walk))
			top_keys_add(&top, walk.wake->waker_tid, ns);
		all_ns = add_saturating(all_ns, ns);
	}
	/* Who ended short waits says nothing of a longer one that ended without a wake. */
	if (cause->kind == CAUSE_LOCK_CONTENTION && all_ns < cause->time_ns / 2)
		return;
	cause->waker.tid = (uint32_t)top_keys_largest(&top).key;
	row = 0;
	top_keys_clear(&top);
	scope_begin(scope, &walk);
	while (call_walk_next(&walk)) {
		uint64_t before_ns = walk.is_gil ? row : 0;

		ns = ended_ns(&walk, scope->cause, &row);
		if (!ns || walk.wake->waker_tid != cause->waker.tid ||
		    scope_has_other_lock(scope, &walk))
			continue;
		add_wait(cause, &walk, ns, before_ns, &longest_ns);
		/* What is compared with it is the sum over all waits too. */
		if (walk.wake->nr_ns)
			top_keys_add(&top, walk.wake->nr, walk.wake->nr_ns);
	}
	cause->waker.nr = (uint32_t)top_keys_largest(&top).key;
	cause->waker.call_ns = top_keys_largest(&top).ns;
}

/* A wait of the part that is the cause: one call, or a row that spins. */
struct wait {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t ns;
	bool spins;
	bool is_shared;	 /* a futex that threads of other processes may wake */
	uint16_t traits; /* CALL_* of its first call */
};

static uint64_t end_of_call(const struct fbt_call *call)
{
	return add_saturating(call->start_ns, call->duration_ns);
}

/* Of the thread that ended a call; NULL: none was taken. */
static const struct fbt_stack *waker_stack_of(const struct step *step, const struct fbt_call *call,
					      const struct fbt_wake *wake)
{
	vec_for_each (stack, &step->stacks) {
		if (!(stack->header.flags & FBT_STACK_SAMPLED) &&
		    stack->start_ns == call->start_ns && stack->header.flags & FBT_STACK_WAKER &&
		    stack->owner == wake->waker_tid)
			return stack;
	}
	return NULL;
}

static void set_peer(const struct window *window, const struct step_peer *peer, uint64_t wait_ns,
		     struct cause *cause)
{
	cause->peer = *peer;
	if (!peer_waited_too(peer, (enum fbt_arch)window->record.arch))
		cause->peer.beyond = (struct fbt_peer){0};
	cause->peer_ns = min_u64(wait_ns, cause->time_ns);
}

/* The process for which the last of the holders waited. */
static void set_holders_peer(const struct step *step, const struct window *window, uint64_t end_ns,
			     struct cause *cause)
{
	const struct fbt_look_thread *last;
	const struct step_peer *peer;

	cause->peer = (struct step_peer){.record = {.tgid = 0}};
	if (!cause->holder_count)
		return;
	last = &cause->holders[cause->holder_count - 1];
	peer = peer_find_of(step, last->owner, last->start_ns, end_ns);
	if (peer)
		set_peer(window, peer, end_ns - last->start_ns, cause);
}

/*
 * Whether a record of a look continues those that are kept, count with this first one. A wait is
 * looked at again if not all was seen: the last look counts. A step that waits for the GIL several
 * times is looked at each time: the first wait counts.
 */
static bool goes_on(const struct fbt_look_thread *look, uint32_t number,
		    const struct fbt_look_thread *first, uint32_t *count)
{
	if (!number && *count && look->start_ns == first->start_ns &&
	    look->time_ns > first->time_ns && (look->count || !first->count))
		*count = 0;
	return number == *count && (!number || look->time_ns == first->time_ns);
}

static void add_other(const struct fbt_look_thread *look, struct cause *cause)
{
	if (look->depth < FBT_LOOK_OTHERS &&
	    goes_on(look, look->depth, &cause->others[0], &cause->other_count))
		cause->others[cause->other_count++] = *look;
}

/* A row began shortly before it was seen to. */
static bool is_of_wait(const struct fbt_look_thread *look, const struct wait *wait,
		       enum cause_kind kind)
{
	if (kind == CAUSE_GIL)
		return look->header.flags & FBT_LOOK_GIL;
	if (wait->spins)
		return look->header.flags & FBT_LOOK_SPIN && look->time_ns >= wait->start_ns &&
		       look->time_ns <= wait->end_ns;
	return look->start_ns == wait->start_ns && !(look->header.flags & FBT_LOOK_SPIN);
}

/* What was seen during the wait. The stack then stands in for one at its end. */
static void set_looks(const struct step *step, const struct window *window, const struct wait *wait,
		      struct cause *cause)
{
	cause->holder_count = 0;
	cause->other_count = 0;
	vec_for_each (look, &step->looks) {
		if (!is_of_wait(look, wait, cause->kind))
			continue;
		if (look->header.flags & FBT_LOOK_GROUP) {
			add_other(look, cause);
			continue;
		}
		/*
		 * A copy of the end of the call does not have the functions of scripts. One that
		 * spins is looked at again if it was not in its call.
		 */
		if (!look->depth && look->count &&
		    (!cause->stack.count || wait->spins || look_has_script(look, window)))
			look_stack(look, &cause->stack);
		if (look->depth && look->depth <= FBT_LOOK_HOLDERS &&
		    goes_on(look, look->depth - 1, &cause->holders[0], &cause->holder_count))
			cause->holders[cause->holder_count++] = *look;
	}
	set_holders_peer(step, window, wait->end_ns, cause);
}

static void set_stacks(const struct scope *scope, const struct call_walk *walk, struct cause *cause)
{
	const struct step *step = scope->step;
	const struct fbt_stack *waker = NULL;
	const struct wait wait = {.start_ns = walk->call->start_ns,
				  .end_ns = end_of_call(walk->call)};

	if (walk->wake)
		waker = waker_stack_of(step, walk->call, walk->wake);
	look_call_stack(step, scope->window, walk->call, &cause->stack);
	cause->waker_stack = waker ? *waker : (struct fbt_stack){0};
	set_looks(step, scope->window, &wait, cause);
}

/* Of the call that took longest: the waker of another one would not explain it. */
static void find_woken(const struct scope *scope, struct cause *cause)
{
	struct call_walk walk;
	uint64_t longest_ns = 0;

	scope_begin(scope, &walk);
	while (scope_next(scope, &walk)) {
		if (walk.ns <= longest_ns)
			continue;
		longest_ns = walk.ns;
		cause->wants_waker = woken_find(&walk, walk.ns, &cause->woken);
	}
}

/*
 * Of the call that took longest: the stack of another one would not explain it. If no call took
 * half of the time, that of many short ones.
 */
static void find_stack(const struct scope *scope, struct cause *cause)
{
	struct call_walk walk;
	uint64_t longest_ns = 0, short_ns = 0;

	if (!scope->step->stacks.count && !scope->step->looks.count)
		return;
	call_walk_begin(&walk, scope->window, scope->step, scope->claims);
	while (call_walk_next(&walk)) {
		uint64_t ns = waited_ns(&walk, scope->cause);

		if (call_longest_ns(walk.call) < SHORT_NS)
			short_ns = add_saturating(short_ns, ns);
		if (ns <= longest_ns || scope_has_other_lock(scope, &walk))
			continue;
		longest_ns = ns;
		set_stacks(scope, &walk, cause);
	}
	/* Waits in several long pieces are none of these. */
	if (longest_ns < cause->nr_ns / 2 &&
	    (!cause->stack.count || (short_ns >= cause->nr_ns / 2 && !scope->has_lock)) &&
	    short_calls_stack(scope->window, scope->step, scope->claims, scope->cause, cause->nr,
			      &cause->stack))
		cause->waker_stack = (struct fbt_stack){0};
}

static void add_spin(struct cause *cause, const struct spin *spin, const struct wait *longest)
{
	if (!longest->spins || spin->ns > longest->ns)
		cause->spin.nr = spin->nr;
	cause->spin.ns = add_saturating(cause->spin.ns, spin->ns);
	cause->spin.calls = add_saturating(cause->spin.calls, spin->calls);
	cause->spin.waits++;
	cause->spin.partial |= spin->partial;
}

/* Sums up the waits of the part that spin, and finds the longest wait of all. */
static struct wait find_waits(const struct scope *scope, struct cause *cause)
{
	struct wait longest = {0};
	struct between between;
	struct call_walk walk;

	between_begin(&between, scope->window, scope->step);
	scope_begin(scope, &walk);
	while (call_walk_next(&walk)) {
		const struct spin *spin = &between.spin;
		struct wait wait = {.start_ns = walk.call->start_ns, .traits = walk.rule->traits};

		between_next(&between, walk.call);
		if (walk.cause != scope->cause || between.is_inside)
			continue;
		wait.spins = between.is_first;
		wait.is_shared = call_is_shared_futex(walk.call);
		if (wait.spins)
			add_spin(cause, spin, &longest);
		wait.end_ns = wait.spins ? spin->end_ns : end_of_call(walk.call);
		wait.ns = wait.spins ? spin->ns : walk.ns;
		if (wait.ns > longest.ns)
			longest = wait;
	}
	return longest;
}

/* Of a wait that spins, the stack of one of its calls is that of the loop. */
static void set_spin_looks(const struct scope *scope, const struct wait *wait, struct cause *cause)
{
	bool was_seen = false;

	vec_for_each (look, &scope->step->looks)
		was_seen |= wait->spins && is_of_wait(look, wait, cause->kind);
	if (was_seen)
		set_looks(scope->step, scope->window, wait, cause);
}

/* A single sleep waits for nobody. One that polls may as well look at memory. */
static const struct step_peer *peer_of(const struct step *step, const struct wait *wait)
{
	bool is_futex = wait->traits & CALL_FUTEX, is_read = wait->traits & CALL_ANSWERED;
	const struct step_peer *peer = NULL;

	if (is_read)
		peer = peer_find(step, false, false, wait->start_ns, wait->end_ns);
	if (!peer && (is_futex || wait->spins))
		peer = peer_find(step, true, wait->is_shared || !is_futex, wait->start_ns,
				 wait->end_ns);
	return peer;
}

/*
 * Whether a thread of its own came late, for half of the wait at least. If the step looks at memory
 * meanwhile, that explains more than a process that sleeps and shares some memory.
 */
static bool was_own_late(const struct cause_times *times, const struct wait *wait)
{
	uint64_t late_ns = max_u64(max_u64(times->starved_ns, times->held_ns), times->late_ns);

	return late_ns && late_ns >= wait->ns / 2;
}

/* The step waited for another process, unless a thread of its own ended the wait. */
static void find_peer(const struct window *window, const struct step *step,
		      const struct cause_times *times, const struct wait *wait, struct cause *cause)
{
	uint64_t grown_ns = sub_saturating(cause->time_ns, cause->usual_ns);
	const struct step_peer *peer;

	if (!step->peers.count || wait->ns < grown_ns / 2 || cause->waker.ns > grown_ns / 2)
		return;
	peer = peer_of(step, wait);
	if (!peer)
		return;
	if (peer->record.way == FBT_PEER_MEMORY && peer_did(&peer->record) == PEER_ASLEEP &&
	    was_own_late(times, wait))
		return;
	cause->kind = CAUSE_PEER_PROCESS;
	set_peer(window, peer, wait->ns, cause);
}

/*
 * Names the thread that had no CPU, was stopped, or was in a call. That the step waited for it no
 * call shows: that is inferred. Where more of the time was measured, that is the cause alone.
 */
static void name_spun_for(const struct step *step, const struct cause_times *times,
			  struct cause *cause)
{
	bool is_stop = cause->kind == CAUSE_STOPPED, is_late = cause->kind == CAUSE_LATE_THREAD;
	uint64_t spun_ns = is_stop   ? times->held_spun_ns
			   : is_late ? times->late_spun_ns
				     : times->spun_ns;

	if (spun_ns > cause->waker.ns && spun_ns < cause->time_ns / 2) {
		cause->time_ns -= spun_ns;
		return;
	}
	cause->inferred_ns = spun_ns;
	if (spun_ns <= cause->waker.ns)
		return;
	cause->estimated = true;
	memset(&cause->waker, 0, sizeof(cause->waker));
	cause->waker.ns = spun_ns;
	if (is_stop) {
		cause->waker.tid = step->stop.tid;
		cause->waker.stopped_ns = times->held_ns;
	} else if (is_late) {
		cause->waker.tid = step->record.late_tid;
		cause->waker.call_ns = times->late_ns;
		cause->waker.nr = step->record.late_nr;
	} else {
		cause->waker.tid = step->record.starved_tid;
		cause->waker.delay_ns = times->starved_ns;
	}
}

/* Where the time of signal handlers was not measured it is compute: their number shows them. */
static void find_storm(const struct step *step, const struct cause_times *times,
		       const struct cause_times *usual, struct cause *cause)
{
	uint64_t many = (uint64_t)usual->signals * STORM_FACTOR;

	if (times->signals <= (many > STORM_SIGNALS ? many : STORM_SIGNALS))
		return;
	if (are_handlers_timed(&step->record) && !step->record.handlers_left)
		return;
	if (cause->kind == CAUSE_COMPUTE) {
		cause->estimated = true;
		cause->time_ns = add_saturating(times->ns[CAUSE_SIGNAL_STORM],
						sub_saturating(cause->time_ns, cause->usual_ns));
		cause->usual_ns = usual->ns[CAUSE_SIGNAL_STORM];
	}
	cause->kind = CAUSE_SIGNAL_STORM;
}

/* Who had the CPU of the thread that mostly lacked it. */
static void find_taken(const struct step *step, struct cause *cause)
{
	if (!cause_is_of_other(cause)) {
		cause->taken = step->taken;
		return;
	}
	vec_for_each (taken, &step->takens) {
		if (taken->tid == cause->waker.tid)
			cause->taken = *taken;
	}
	/* It may have waited for a CPU while the step did not wait for it. */
	if (cause->waker.ns != cause->inferred_ns)
		taken_cut(&cause->taken, cause->waker.ns);
}

/*
 * Page faults of those that lacked the memory: the step's own, and those of threads for which it
 * waited while they waited for a disk in some of them.
 */
static uint64_t all_faults(const struct cause *cause)
{
	return (uint64_t)cause->minor_faults + cause->major_faults + cause->worker_faults +
	       cause->worker_minor_faults;
}

bool cause_is_memory_limit(const struct fbt_step_limits *limits, uint64_t faults)
{
	return limits->memory_hits && faults &&
	       (uint64_t)limits->memory_hits * FAULTS_PER_HIT >= faults;
}

/* Whether page faults may be half of what the step computed too long. */
static bool may_be_faults(const struct cause *cause, uint64_t grown_ns)
{
	uint64_t most_ns = add_saturating(cause->fault_wait_ns, all_faults(cause) * FAULT_MOST_NS);

	return most_ns >= (cause->is_usual ? cause->over_ns : grown_ns) / 2;
}

/* Else all of the part is to be explained, as of a step that is over its budget as usual. */
static bool has_grown(const struct cause *cause)
{
	return !cause->is_usual && cause->time_ns > cause->usual_ns;
}

/* Half of what is to be explained. */
static uint64_t half_of(const struct cause *cause)
{
	uint64_t ns = cause->time_ns - (has_grown(cause) ? cause->usual_ns : 0);

	return ns / 2 + ns % 2;
}

/* A host that always takes some of the CPU explains only what it took beyond that. */
static bool is_steal(const struct cause *cause, uint64_t usual_ns)
{
	uint64_t ns = sub_saturating(cause->steal_ns, has_grown(cause) ? usual_ns : 0);

	return cause->kind == CAUSE_OFF_CPU && ns && ns >= half_of(cause);
}

/* Limits explain why there was no CPU, or why memory had to be fetched again; a host, the rest. */
static void find_limit(const struct step *step, const struct cause_times *times,
		       const struct cause_times *usual, struct cause *cause)
{
	const struct fbt_step_limits *limits = &step->record.limits;
	uint64_t grown_ns = sub_saturating(cause->time_ns, cause->usual_ns);
	bool other = cause->kind != CAUSE_PAGE_FAULTS;
	bool faulted = cause->kind == CAUSE_PAGE_FAULTS || cause->kind == CAUSE_OFF_CPU ||
		       (cause->kind == CAUSE_COMPUTE && cause->major_faults &&
			may_be_faults(cause, grown_ns));

	cause->limits = *limits;
	cause->steal_ns = times->steal_ns;
	if (cause->kind == CAUSE_RUN_QUEUE && limits->throttled_ns &&
	    step_throttled_ns(limits) >= half_of(cause))
		cause->kind = CAUSE_CPU_LIMIT;
	else if (faulted && cause_is_memory_limit(limits, all_faults(cause)))
		cause->kind = CAUSE_MEMORY_LIMIT;
	else if (is_steal(cause, usual->steal_ns))
		cause->kind = CAUSE_STEAL;
	if (cause->kind == CAUSE_MEMORY_LIMIT && other)
		cause->estimated = cause->fault_wait_ns < cause->time_ns / 2;
}

/* The counts of an interval may differ: they are not read at one instant for all threads. */
static bool has_all_calls(const struct step *step)
{
	if (step->calls_truncated || step->record.lost_calls)
		return false;
	if (!step->record.kind && step->calls.count)
		return true;
	return step_recorded_calls(step) >= step_calls(step);
}

static void add_counts(const struct step *step, const struct cause_times *times,
		       struct cause *cause)
{
	cause->calls_known = step_calls_known(step) && (has_all_calls(step) || step->calls.count);
	cause->calls_partial = cause->calls_known && !has_all_calls(step);
	cause->signals = times->signals;
	cause->threads_made = times->threads_made;
	cause->worker_faults = times->worker_faults;
	cause->worker_minor_faults = times->worker_minor_faults;
	if (step->record.header.flags & FBT_STEP_SCHED_UNKNOWN)
		return;
	cause->minor_faults = step->record.minor_faults;
	cause->major_faults = step->record.major_faults;
}

static bool is_estimated(const struct cause_times *times, const struct cause *cause)
{
	if (cause->kind == CAUSE_SIGNAL_STORM)
		return times->blamed;
	return cause->kind == CAUSE_PAGE_FAULTS &&
	       (times->blamed ||
		(!cause->faults_timed && cause->fault_wait_ns < cause->time_ns / 2));
}

/* Names what most of the page fault time was for. */
static void name_mapping(const struct step *step, struct cause *cause)
{
	const struct fbt_step_faults *faults = &step->record.faults;
	uint64_t all_ns = 0;

	cause->faults_timed = step_faults_known(step);
	if (!cause->faults_timed)
		return;
	for (int i = 0; i < FBT_MAPPING_COUNT; i++) {
		all_ns = add_saturating(all_ns, faults->ns[i]);
		if (faults->ns[i] > faults->ns[cause->mapping])
			cause->mapping = (enum fbt_mapping)i;
	}
	cause->mapping_is_all = faults->ns[cause->mapping] >= all_ns - all_ns / 10;
	if (cause->mapping == FBT_MAPPING_FILE &&
	    faults->file_ns >= faults->ns[FBT_MAPPING_FILE] / 2)
		cause->fault_file = faults->file;
}

/* Causes of which a wait may be all that there is to it. */
static bool is_wait(enum cause_kind kind)
{
	return kind == CAUSE_LOCK_CONTENTION || kind == CAUSE_DRIVER_CALLS ||
	       kind == CAUSE_FILE_IO || kind == CAUSE_SOCKET_IO || kind == CAUSE_SLEEP ||
	       kind == CAUSE_OTHER_CALLS;
}

/* What others computed for the step. */
static void add_elsewhere(const struct cause_times *times, const struct cause_times *usual,
			  struct cause *cause)
{
	if (cause->kind != CAUSE_COMPUTE)
		return;
	cause->elsewhere_ns = add_saturating(times->covered_ns, times->worker_ns);
	cause->elsewhere_usual_ns = add_saturating(usual->covered_ns, usual->worker_ns);
}

/* over_ns: of a step that takes as long as is usual; else 0. */
static void find(const struct window *window, const struct step *step,
		 const struct cause_times *times, const struct cause_times *usual, uint64_t over_ns,
		 struct cause *cause)
{
	static const struct cause_times nothing;
	struct scope scope = {.window = window, .step = step};
	struct cause_times own = *times;
	struct step_parts parts;

	step_split(step, &parts);
	*cause = (struct cause){
		.usual_known = usual != NULL, .is_usual = over_ns != 0, .over_ns = over_ns};
	usual = usual ? usual : &nothing;
	scope.claims = times->threads_made > usual->threads_made;
	if (scope.claims)
		claim(window, step, usual, &own);
	cause->kind = scope.cause = over_ns ? find_largest(&own) : find_winner(&own, usual);
	cause->time_ns = own.ns[cause->kind];
	cause->usual_ns = usual->ns[cause->kind];
	cause->fault_wait_ns =
		add_saturating(step_disk_wait_ns(step, &parts), times->worker_fault_ns);
	name_mapping(step, cause);
	cause->estimated = is_estimated(times, cause);
	cause->stop = step->stop;
	cause->stop_sender = step->stop_sender;
	cause->stalls = step->stalls.record;
	cause->step_tid = step->record.tid;
	cause->covered_ns = cause->kind == CAUSE_COMPUTE ? times->covered_ns : 0;
	add_counts(step, times, cause);
	if (cause->kind == CAUSE_COMPUTE && !step_calls_known(step))
		cause->kind = CAUSE_UNKNOWN;
	find_limit(step, times, usual, cause);
	if (cause->kind == CAUSE_COMPUTE || cause->kind == CAUSE_SIGNAL_STORM)
		find_storm(step, &own, usual, cause);
	if (cause->kind == CAUSE_SIGNAL_STORM)
		scope.cause = CAUSE_SIGNAL_STORM;
	if (cause->kind == CAUSE_FILE_IO || cause->kind == CAUSE_SOCKET_IO)
		find_tiny_writes(&scope, cause);
	if (cause->calls_known && scope.cause < CAUSE_RUN_QUEUE) {
		count_calls(&scope, cause);
		name_shares(&scope, cause);
	}
	if (cause->calls_known && is_wait(cause->kind))
		find_woken(&scope, cause);
	find_waker(&scope, cause);
	find_stack(&scope, cause);
	if (cause->calls_known && (cause->kind == CAUSE_SLEEP || cause->kind == CAUSE_SOCKET_IO ||
				   cause->kind == CAUSE_LOCK_CONTENTION)) {
		struct wait longest = find_waits(&scope, cause);

		set_spin_looks(&scope, &longest, cause);
		find_peer(window, step, times, &longest, cause);
	}
	if (cause->kind == CAUSE_RUN_QUEUE || cause->kind == CAUSE_CPU_LIMIT ||
	    cause->kind == CAUSE_STOPPED || cause->kind == CAUSE_LATE_THREAD)
		name_spun_for(step, times, cause);
	if (cause->kind == CAUSE_PAGE_FAULTS || cause->kind == CAUSE_MEMORY_LIMIT)
		cause->fault_sites = step->fault_sites;
	add_elsewhere(times, usual, cause);
	if (cause->kind == CAUSE_RUN_QUEUE)
		find_taken(step, cause);
}

void cause_find(const struct window *window, const struct step *step,
		const struct cause_times *times, const struct cause_times *usual,
		struct cause *cause)
{
	find(window, step, times, usual, 0, cause);
}

void cause_find_largest(const struct window *window, const struct step *step,
			const struct cause_times *times, const struct cause_times *usual,
			uint64_t over_ns, struct cause *cause)
{
	find(window, step, times, usual, over_ns, cause);
}

uint64_t cause_extra_ns(const struct cause *cause)
{
	if (!cause->usual_known)
		return 0;
	if (cause->is_usual)
		return min_u64(cause->over_ns, cause->time_ns);
	return sub_saturating(cause->time_ns, cause->usual_ns);
}

uint64_t cause_ended_after_ns(const struct cause *cause)
{
	const struct fbt_stack *stack = &cause->waker_stack;

	/* That stack is of the longest call, which another thread may have ended. */
	return stack->count && stack->owner == cause->waker.tid &&
			       stack->start_ns == cause->waker.start_ns
		       ? cause->waker.after_ns
		       : 0;
}

bool cause_has_stop(const struct cause *cause)
{
	return cause->stop.header.type == FBT_EVENT_STOP &&
	       (cause->kind == CAUSE_STOPPED || cause->waker.stopped_ns);
}

/* Of a step that takes as long as is usual, all of it counts. */
static bool has_grown_elsewhere(const struct cause *cause)
{
	bool grown = has_grown(cause);
	uint64_t grown_ns = cause->time_ns - (grown ? cause->usual_ns : 0);
	uint64_t other_ns =
		sub_saturating(cause->elsewhere_ns, grown ? cause->elsewhere_usual_ns : 0);

	return other_ns && other_ns >= grown_ns / 2;
}

bool cause_is_of_other(const struct cause *cause)
{
	uint64_t ns = add_saturating(cause->waker.ns, cause->covered_ns);

	return (ns && ns >= cause->time_ns / 2) || has_grown_elsewhere(cause);
}

void cause_set_transfer(const struct step *step, struct cause *cause)
{
	const struct gpu_figures *all = &step->gpu->all;

	*cause = (struct cause){
		.kind = CAUSE_GPU_TRANSFER,
		.time_ns = all->transfer_ns,
		.total_ns = step_total_ns(step),
		.h2d_bytes = all->h2d_bytes,
		.d2h_bytes = all->d2h_bytes,
		.p2p_bytes = all->p2p_bytes,
		.copies = all->memcpys,
		.pageable = all->pageable,
	};
}
