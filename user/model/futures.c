/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/futures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/arith.h"
#include "base/id_map.h"
#include "base/log.h"

/* A future that awaits. Its step reaches up to the end of its last poll. */
struct future {
	struct step step;
	uint64_t address;
	uint64_t longest_stop_ns; /* that of step.stop alone, which may have the sum of several */
	uint32_t turn;
	uint8_t state;
	TAILQ_ENTRY(future) in_all;
	struct future *next; /* the future of another process at the same address */
};

TAILQ_HEAD(future_list, future);

struct futures {
	int (*on_step)(void *ctx, struct step *step);
	void *ctx;
	struct tid_map *by_address; /* to the first struct future */
	struct future_list all;	    /* least recently polled first */
	size_t count;
	size_t calls;
	size_t beside; /* all else of which a step has many, see FUTURES_BESIDE_MAX */
};

struct futures *futures__new(int (*on_step)(void *ctx, struct step *step), void *ctx)
{
	struct futures *futures = calloc(1, sizeof(*futures));

	if (!futures)
		return NULL;
	futures->on_step = on_step;
	futures->ctx = ctx;
	TAILQ_INIT(&futures->all);
	futures->by_address = tid_map__new();
	if (futures->by_address)
		return futures;
	free(futures);
	return NULL;
}

size_t futures__count(const struct futures *futures)
{
	return futures->count;
}

static struct future *find(const struct futures *futures, const struct fbt_step *poll)
{
	struct future *future = tid_map__get(futures->by_address, poll->future);

	while (future && future->step.record.tgid != poll->tgid)
		future = future->next;
	return future;
}

static size_t beside_of(const struct step *step)
{
	return step->wakes.count + step->stacks.count + step->peers.count + step->looks.count +
	       step->wokens.count;
}

static int add(struct futures *futures, struct future *future)
{
	int err;

	future->next = tid_map__get(futures->by_address, future->address);
	err = tid_map__set(futures->by_address, future->address, future);
	if (err)
		return err;
	TAILQ_INSERT_TAIL(&futures->all, future, in_all);
	futures->count++;
	futures->calls += future->step.calls.count;
	futures->beside += beside_of(&future->step);
	return 0;
}

/* The address is in the map already, so setting it takes no memory. */
static void take_out(struct futures *futures, struct future *future)
{
	struct future *first = tid_map__get(futures->by_address, future->address);

	if (first != future) {
		while (first->next != future)
			first = first->next;
		first->next = future->next;
	} else if (future->next) {
		(void)tid_map__set(futures->by_address, future->address, future->next);
	} else {
		tid_map__remove(futures->by_address, future->address);
	}
	TAILQ_REMOVE(&futures->all, future, in_all);
	futures->count--;
	futures->calls -= future->step.calls.count;
	futures->beside -= beside_of(&future->step);
}

static void future_free(struct future *future)
{
	step_clear(&future->step);
	free(future);
}

void futures__free(struct futures *futures)
{
	struct future *future;

	if (!futures)
		return;
	while ((future = TAILQ_FIRST(&futures->all))) {
		take_out(futures, future);
		future_free(future);
	}
	tid_map__free(futures->by_address);
	free(futures);
}

static int pass(struct futures *futures, struct step *step, enum fbt_step_end end)
{
	struct fbt_step *record = &step->record;

	record->end = end;
	record->header.flags &= (uint16_t)~FBT_STEP_POLL;
	record->future = 0;
	record->turn = 0;
	record->state_before = record->state_after = 0;
	return futures->on_step(futures->ctx, step);
}

static int end_future(struct futures *futures, struct future *future, enum fbt_step_end end)
{
	int err;

	take_out(futures, future);
	err = pass(futures, &future->step, end);
	future_free(future);
	return err;
}

/*
 * Ends a step at time_ns. The future awaited until then; if its probes were off for a time, perhaps
 * it did not.
 */
static int end_at(struct futures *futures, struct future *future, uint64_t time_ns,
		  enum fbt_step_end end)
{
	struct fbt_step *record = &future->step.record;
	uint64_t awaited_ns = sub_saturating(time_ns, record->end_ns);

	if (record->header.flags & FBT_STEP_SAMPLED)
		awaited_ns = 0;
	record->await_ns += awaited_ns;
	record->end_ns += awaited_ns;
	record->thread_ns = record->end_ns - record->start_ns;
	return end_future(futures, future, end);
}

static void add_sums(struct fbt_step *to, const struct fbt_step *from)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		to->sums[i].ns = add_saturating(to->sums[i].ns, from->sums[i].ns);
		to->sums[i].calls += from->sums[i].calls;
		to->sums[i].errors += from->sums[i].errors;
		to->sums[i].max_ns = max_u64(to->sums[i].max_ns, from->sums[i].max_ns);
		to->call_delay_ns[i] = add_saturating(to->call_delay_ns[i], from->call_delay_ns[i]);
	}
}

static void add_limits(struct fbt_step_limits *to, const struct fbt_step_limits *from)
{
	if (!to->throttled_ns) {
		to->quota_ns = from->quota_ns;
		to->period_ns = from->period_ns;
	}
	to->throttled_ns = add_saturating(to->throttled_ns, from->throttled_ns);
	to->throttled_periods += from->throttled_periods;
	to->memory_hits += from->memory_hits;
}

static void add_faults(struct fbt_step_faults *to, const struct fbt_step_faults *from)
{
	for (int i = 0; i < FBT_MAPPING_COUNT; i++) {
		to->ns[i] = add_saturating(to->ns[i], from->ns[i]);
		to->count[i] += from->count[i];
	}
	to->cpu_ns = add_saturating(to->cpu_ns, from->cpu_ns);
	to->asleep_ns = add_saturating(to->asleep_ns, from->asleep_ns);
	to->major_ns = add_saturating(to->major_ns, from->major_ns);
	to->major_count += from->major_count;
	to->mean_ps = from->mean_ps ? from->mean_ps : to->mean_ps;
	if (from->file_ns > to->file_ns) {
		to->file = from->file;
		to->file_ns = from->file_ns;
	}
}

/*
 * A figure of the step is known if it was measured in all its polls. starved_ns and late_ns
 * are the longest of any poll. One poll under PyTorch's profiler may make the step slow.
 */
static void add_flags(struct fbt_step *to, const struct fbt_step *from)
{
	const uint16_t all = FBT_STEP_CPU_KNOWN | FBT_STEP_HANDLERS_TIMED | FBT_STEP_TEAM_TIMED |
			     FBT_STEP_FAULTS_TIMED;
	const uint16_t any = FBT_STEP_OTHER_UNKNOWN | FBT_STEP_SCHED_UNKNOWN | FBT_STEP_SAMPLED |
			     FBT_STEP_CALLS_UNKNOWN | FBT_STEP_TEAM_KNOWN | FBT_STEP_PROFILED;

	to->header.flags = (uint16_t)((to->header.flags & (from->header.flags | ~all)) |
				      (from->header.flags & any));
}

static void add_figures(struct fbt_step *to, const struct fbt_step *from)
{
	to->other_syscall_ns = add_saturating(to->other_syscall_ns, from->other_syscall_ns);
	to->lost_calls += from->lost_calls;
	to->threads = from->threads;
	to->run_delay_ns = add_saturating(to->run_delay_ns, from->run_delay_ns);
	to->minor_faults += from->minor_faults;
	to->major_faults += from->major_faults;
	to->cpu_ns += from->cpu_ns; /* one that is less than 0 takes from the others */
	to->asleep_ns = add_saturating(to->asleep_ns, from->asleep_ns);
	to->fault_wait_ns = add_saturating(to->fault_wait_ns, from->fault_wait_ns);
	add_sums(to, from);
	add_limits(&to->limits, &from->limits);
	to->steal_us += from->steal_us;
	add_faults(&to->faults, &from->faults);
	to->team_ns = add_saturating(to->team_ns, from->team_ns);
	to->team_cpu_ns = add_saturating(to->team_cpu_ns, from->team_cpu_ns);
	to->team_delay_ns = add_saturating(to->team_delay_ns, from->team_delay_ns);
	if (from->starved_ns > to->starved_ns) {
		to->starved_ns = from->starved_ns;
		to->starved_tid = from->starved_tid;
	}
	if (from->late_ns > to->late_ns) {
		to->late_ns = from->late_ns;
		to->late_tid = from->late_tid;
		to->late_nr = from->late_nr;
	}
	to->handlers_ns = add_saturating(to->handlers_ns, from->handlers_ns);
	to->handlers += from->handlers;
	to->handlers_left += from->handlers_left;
	add_flags(to, from);
	to->await_ns = add_saturating(to->await_ns, sub_saturating(from->start_ns, to->end_ns));
	to->end_ns = max_u64(from->end_ns, to->end_ns);
	to->thread_ns = to->end_ns - to->start_ns;
	to->polls++;
}

/*
 * Adds what one poll has beside its calls, as far as there is room: a future may await for days.
 * member is a vec of both.
 */
#define add_beside(futures, step, poll, member)                                                    \
	({                                                                                         \
		size_t added = 0;                                                                  \
		while ((step)->member.count < FUTURE_BESIDE_MAX && added < (poll)->member.count && \
		       !vec_push(&(step)->member, (poll)->member.items[added]))                    \
			added++;                                                                   \
		(futures)->beside += added;                                                        \
		(step)->calls_truncated |= added < (poll)->member.count;                           \
	})

static void add_calls(struct futures *futures, struct future *future, struct step *poll)
{
	struct step *step = &future->step;

	step->calls_truncated |= poll->calls_truncated;
	vec_for_each (call, &poll->calls) {
		if (step->calls.count >= STEP_CALLS_MAX || vec_push(&step->calls, *call)) {
			step->calls_truncated = true;
			break;
		}
		futures->calls++;
	}
	add_beside(futures, step, poll, wakes);
	add_beside(futures, step, poll, stacks);
	add_beside(futures, step, poll, peers);
	add_beside(futures, step, poll, looks);
	add_beside(futures, step, poll, wokens);
}

static size_t calls_of(const struct step *step)
{
	return step->calls.count;
}

static struct step *find_most(const struct futures *futures, size_t (*size_of)(const struct step *))
{
	struct step *most = NULL;
	struct future *future;

	TAILQ_FOREACH(future, &futures->all, in_all)
	{
		if (!most || size_of(&future->step) > size_of(most))
			most = &future->step;
	}
	return most;
}

/* The first half of a vec stays. Returns how many are dropped. */
static size_t drop_half(void **items, size_t *count, size_t *capacity, size_t size)
{
	size_t kept = *count / 2, dropped = *count - kept;
	void *moved = kept ? reallocarray(*items, kept, size) : NULL;

	if (!kept)
		free(*items);
	*count = kept;
	if (!kept || moved) {
		*items = moved;
		*capacity = kept;
	}
	return dropped;
}

#define halve(vec)                                                                                 \
	drop_half((void **)&(vec)->items, &(vec)->count, &(vec)->capacity, sizeof(*(vec)->items))

/*
 * The future that has most gives way, as long as there is too much: those that never end must not
 * keep others from having anything. Each drop of many is worth the walk over all futures.
 */
static void make_room(struct futures *futures)
{
	struct step *step;

	while (futures->calls > FUTURES_CALLS_MAX) {
		step = find_most(futures, calls_of);
		futures->calls -= halve(&step->calls);
		step->calls_truncated = true;
	}
	while (futures->beside > FUTURES_BESIDE_MAX) {
		step = find_most(futures, beside_of);
		futures->beside -= halve(&step->wakes) + halve(&step->stacks) +
				   halve(&step->peers) + halve(&step->looks) + halve(&step->wokens);
		step->calls_truncated = true;
	}
}

static bool has_own_stop(const struct step *step)
{
	return step->stop.header.type == FBT_EVENT_STOP && step->stop.tid == step->record.tid;
}

static void take_stop(struct future *future, const struct step *poll)
{
	future->step.stop = poll->stop;
	future->step.stop_sender = poll->stop_sender;
	future->longest_stop_ns = poll->stop.stopped_ns;
}

/*
 * Polls may run on any thread. A stop of the polling thread counts as one of the step's thread, and
 * all of them add up, with the sender of the longest; that of another thread is kept only while
 * there is none, the longest of them.
 */
static void add_stop(struct future *future, const struct step *poll)
{
	struct step *step = &future->step;
	uint64_t sum_ns = add_saturating(step->stop.stopped_ns, poll->stop.stopped_ns);
	bool is_longer = !step->stop.header.type || poll->stop.stopped_ns > future->longest_stop_ns;

	if (poll->stop.header.type != FBT_EVENT_STOP)
		return;
	if (has_own_stop(poll)) {
		bool had_own = has_own_stop(step);

		if (!had_own || is_longer)
			take_stop(future, poll);
		step->stop.tid = step->record.tid;
		if (had_own)
			step->stop.stopped_ns = sum_ns;
		return;
	}
	/* By its tid that of the thread of the first poll would look like one of the step's own. */
	if (is_longer && !has_own_stop(step) && poll->stop.tid != step->record.tid)
		take_stop(future, poll);
}

/*
 * Whether a poll was lost. The state changes only in polls, so each poll begins with the state that
 * the previous one left.
 */
static bool misses_poll(const struct future *future, const struct fbt_step *poll)
{
	return poll->state_before != FBT_FUTURE_UNKNOWN && future->state != poll->state_before;
}

static void join(struct futures *futures, struct future *future, struct step *poll)
{
	if (misses_poll(future, &poll->record))
		future->step.calls_truncated = true;
	add_figures(&future->step.record, &poll->record);
	add_calls(futures, future, poll);
	add_stop(future, poll);
	future->turn = poll->record.turn;
	future->state = poll->record.state_after;
	TAILQ_REMOVE(&futures->all, future, in_all);
	TAILQ_INSERT_TAIL(&futures->all, future, in_all);
}

/* Begins a step with its first poll, whose calls are taken. */
static int park(struct futures *futures, struct step *poll)
{
	struct future *future = calloc(1, sizeof(*future));
	int err = 0, result;

	if (!future)
		return -ENOMEM;
	future->step = *poll;
	future->longest_stop_ns = poll->stop.stopped_ns;
	future->address = poll->record.future;
	future->turn = poll->record.turn;
	future->state = poll->record.state_after;
	step_hand_over(poll);
	if (futures->count >= FUTURES_MAX)
		err = end_future(futures, TAILQ_FIRST(&futures->all), FBT_END_UNWOUND);
	result = add(futures, future);
	if (result)
		future_free(future);
	else
		make_room(futures);
	return err ? err : result;
}

/* False: the future goes on. */
static bool has_ended(const struct fbt_step *poll, enum fbt_step_end *end)
{
	*end = (enum fbt_step_end)poll->end;
	if (poll->end != FBT_END_RETURN)
		return true;
	if (poll->state_after == FBT_FUTURE_PANICKED)
		*end = FBT_END_UNWOUND;
	if (poll->state_after == FBT_FUTURE_UNKNOWN)
		*end = FBT_END_TRUNCATED;
	return poll->state_after < FBT_FUTURE_AWAITS || poll->state_after == FBT_FUTURE_UNKNOWN;
}

/* Whether the probes were off for a time, in which the future may have been polled. */
static bool was_unwatched(const struct future *future, const struct fbt_step *poll)
{
	return poll->header.flags & FBT_STEP_SAMPLED && future->turn != poll->turn;
}

/*
 * Finds the future that this poll continues, if any. Ends a future that this poll shows to be over.
 */
static int find_begun(struct futures *futures, const struct fbt_step *poll, uint64_t *cut,
		      struct future **begun)
{
	struct future *future = find(futures, poll);

	*begun = NULL;
	if (!future)
		return 0;
	/* It may have become ready meanwhile, also if another one begins at its address. */
	if (was_unwatched(future, poll)) {
		cut[future->step.record.kind]++;
		return end_future(futures, future, FBT_END_TRUNCATED);
	}
	if (poll->state_before < FBT_FUTURE_AWAITS)
		return end_future(futures, future, FBT_END_UNWOUND);
	*begun = future;
	return 0;
}

int futures__take(struct futures *futures, struct step *poll, uint64_t *late, uint64_t *cut)
{
	struct fbt_step *record = &poll->record;
	enum fbt_step_end end;
	bool is_over = has_ended(record, &end);
	struct future *future;
	int err = find_begun(futures, record, cut, &future), result = 0;

	if (!future && record->state_before >= FBT_FUTURE_AWAITS) {
		++*late;
		return err;
	}
	if (!future) {
		record->await_ns = 0;
		record->polls = 1;
		result = is_over ? pass(futures, poll, end) : park(futures, poll);
	} else {
		join(futures, future, poll);
		if (is_over)
			result = end_future(futures, future, end);
		else
			make_room(futures);
	}
	return err ? err : result;
}

int futures__end_process(struct futures *futures, uint32_t tgid, uint64_t time_ns)
{
	struct future *future = TAILQ_FIRST(&futures->all), *next;
	int err = 0;

	for (; future; future = next) {
		next = TAILQ_NEXT(future, in_all);
		if (future->step.record.tgid == tgid)
			keep_first(&err, end_at(futures, future, time_ns, FBT_END_EXITED));
	}
	return err;
}

int futures__flush(struct futures *futures, uint64_t time_ns)
{
	struct future *future = TAILQ_FIRST(&futures->all), *next;
	int err = 0;

	for (; future; future = next) {
		next = TAILQ_NEXT(future, in_all);
		keep_first(&err, end_at(futures, future, time_ns, FBT_END_TRUNCATED));
	}
	return err;
}
