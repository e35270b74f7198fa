/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/traced.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "kernel/uprobes.h"
#include "proc/cgroup.h"
#include "proc/cpus.h"
#include "proc/open.h"
#include "proc/process.h"
#include "proc/status.h"
#include "proc/thread_use.h"
#include "steps/find.h"

/* A try takes 1 to 2 us. Even a thread that makes calls continuously leaves gaps of that length. */
#define READ_TRIES 64

/*
 * After a burst of child processes the freed memory lies between blocks in use. Only malloc_trim()
 * returns it to the system.
 */
#define TRIM_EVERY 256

/* The slots. */

void slots_init(struct shared *shared)
{
	for (uint32_t i = 1; i < shared->slot_count; i++)
		shared->free_slots[i - 1] = i;
	shared->control->free_head = 0;
	__atomic_store_n(&shared->control->free_tail, shared->slot_count - 1, __ATOMIC_RELEASE);
}

uint32_t slots_used(const struct shared *shared)
{
	uint64_t taken = __atomic_load_n(&shared->control->free_head, __ATOMIC_ACQUIRE) + 1;

	return taken < shared->slot_count ? (uint32_t)taken : shared->slot_count;
}

static uint16_t *slot_id(const struct shared *shared, uint32_t tid)
{
	uint32_t chunk = tid / FBT_IDS;

	return chunk < shared->id_chunks ? &shared->ids[chunk].slot[tid % FBT_IDS] : NULL;
}

static uint32_t pop_free(struct shared *shared)
{
	struct fbt_control *control = shared->control;
	__u64 head = __atomic_load_n(&control->free_head, __ATOMIC_ACQUIRE);

	while (head != control->free_tail) {
		uint32_t slot = shared->free_slots[head & (shared->slot_count - 1)];

		if (__atomic_compare_exchange_n(&control->free_head, &head, head + 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return slot;
	}
	return 0;
}

int slots_take(struct shared *shared, uint32_t tgid, uint32_t tid, uint64_t now_ns)
{
	uint16_t *id = slot_id(shared, tid);
	uint16_t none = 0;
	uint32_t index;
	struct fbt_slot *slot;

	if (!id)
		return -ENOSPC;
	if (__atomic_load_n(id, __ATOMIC_ACQUIRE))
		return 0;
	index = pop_free(shared);
	if (!index)
		return -ENOSPC;
	slot = &shared->slots[index];
	slot->tgid = tgid;
	slot->tid = tid;
	slot->born_ns = now_ns;
	slot->taken_ns = now_ns;
	slot->born_cpu_ns = FBT_USE_UNKNOWN;
	slot->state = FBT_SLOT_LIVE;
	shared->tgids[index] = tgid;
	if (__atomic_compare_exchange_n(id, &none, (uint16_t)index, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return (int)index;
	slots_give_back(shared, index);
	return 0;
}

void slots_forget_stacks(struct shared *shared)
{
	memset(shared->thread_stacks, 0, FBT_THREAD_STACKS * sizeof(*shared->thread_stacks));
}

void slots_mark_blocked(struct shared *shared, uint32_t slot)
{
	shared->slots[slot].born_ns = UINT64_MAX;
}

/* A later thread of that number gets a slot of its own. */
static void clear_id(const struct shared *shared, uint32_t index)
{
	uint16_t *id = slot_id(shared, shared->slots[index].tid);
	uint16_t ours = (uint16_t)index;

	if (id)
		__atomic_compare_exchange_n(id, &ours, 0, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
}

static void end_slot(struct shared *shared, uint32_t index, uint64_t now_ns)
{
	clear_id(shared, index);
	shared->tgids[index] = 0;
	shared->slots[index].died_ns = now_ns;
	shared->slots[index].died_cpu_ns = FBT_USE_UNKNOWN;
	__atomic_store_n(&shared->slots[index].state, FBT_SLOT_DEAD, __ATOMIC_RELEASE);
}

void slots_end(struct shared *shared, uint32_t tid, uint64_t now_ns)
{
	uint16_t *id = slot_id(shared, tid);
	uint32_t index = id ? __atomic_exchange_n(id, 0, __ATOMIC_ACQ_REL) : 0;

	if (index)
		end_slot(shared, index, now_ns);
}

static uint64_t copy_rows(const struct shared *shared, uint32_t slot, struct fbt_sum *rows)
{
	uint64_t ns = 0;

	memcpy(rows, shared->rows + (size_t)slot * FBT_NR_COUNT, sizeof(*rows) * FBT_NR_COUNT);
	for (int nr = 0; nr < FBT_NR_COUNT; nr++)
		ns += rows[nr].ns;
	return ns;
}

static void add_rows(struct process_sums *sums, const struct fbt_sum *rows)
{
	for (int nr = 0; nr < FBT_NR_COUNT; nr++) {
		struct fbt_sum *to = &sums->rows[nr];

		to->ns += rows[nr].ns;
		to->calls += rows[nr].calls;
		to->errors += rows[nr].errors;
		if (rows[nr].max_ns > to->max_ns)
			to->max_ns = rows[nr].max_ns;
	}
}

/*
 * The longest collection is taken: it counts once. An open one counts in each interval by then. A
 * thread with steps keeps its own.
 */
static void add_stalls(struct process_sums *sums, struct fbt_slot *slot, uint64_t now_ns)
{
	uint64_t gc_start_ns = __atomic_load_n(&slot->gc_start_ns, __ATOMIC_RELAXED), longest = 0;
	uint64_t start_ns = __atomic_load_n(&slot->start_ns, __ATOMIC_RELAXED);
	bool is_live = slot->state == FBT_SLOT_LIVE;

	sums->stalls.gil_ns += slot->stalls.gil_ns;
	sums->stalls.gil_waits += slot->stalls.gil_waits;
	sums->stalls.gc_ns += slot->stalls.gc_ns;
	sums->stalls.gc_count += slot->stalls.gc_count;
	if (is_live && start_ns && start_ns < now_ns && slot->call_gil)
		sums->stalls.gil_ns += now_ns - start_ns;
	if (!slot->step_start_ns)
		longest = __atomic_exchange_n(&slot->gc_longest, 0, __ATOMIC_RELAXED);
	if (is_live && gc_start_ns && gc_start_ns < now_ns) {
		sums->stalls.gc_ns += now_ns - gc_start_ns;
		longest = max_u64(longest,
				  (now_ns - gc_start_ns) << FBT_GC_SHIFT | slot->gc_generation);
	}
	sums->gc_longest = max_u64(sums->gc_longest, longest);
}

bool slots_add(const struct shared *shared, uint32_t index, uint64_t now_ns,
	       struct process_sums *sums)
{
	const volatile struct fbt_slot *slot = &shared->slots[index];
	struct fbt_sum rows[FBT_NR_COUNT];
	bool consistent = false;
	uint64_t start = 0, busy, ns;
	uint32_t nr = 0;

	for (int i = 0; i < READ_TRIES && !consistent; i++) {
		busy = slot->busy;
		start = slot->start_ns;
		nr = slot->nr;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		ns = copy_rows(shared, index, rows);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		consistent = slot->busy == busy && !!start == (busy & 1) &&
			     ns == fbt_busy_ns(busy, start);
	}
	add_rows(sums, rows);
	add_stalls(sums, &shared->slots[index], now_ns);
	if (start) {
		nr = nr < FBT_NR_COUNT ? nr : FBT_NR_COUNT - 1;
		sums->unfinished[nr]++;
		if (now_ns > start && slot->state == FBT_SLOT_LIVE)
			sums->open_ns[nr] += now_ns - start;
	}
	if (slot->state == FBT_SLOT_DEAD)
		now_ns = slot->died_ns;
	/*
	 * The thread was marked as in a call when it got its slot. If it is in another call now,
	 * its time counts from now on; else it is still in the first one, and no time counts yet.
	 */
	if (slot->born_ns == UINT64_MAX && (start || ns))
		shared->slots[index].born_ns = now_ns;
	ns = now_ns;
	if (ns > slot->born_ns)
		sums->thread_ns += ns - slot->born_ns;
	if (slot->state == FBT_SLOT_LIVE)
		sums->threads++;
	return consistent;
}

void slots_give_back(struct shared *shared, uint32_t index)
{
	struct fbt_control *control = shared->control;

	shared->tgids[index] = 0;
	memset(&shared->slots[index], 0, sizeof(shared->slots[index]));
	memset(shared->rows + (size_t)index * FBT_NR_COUNT, 0,
	       sizeof(*shared->rows) * FBT_NR_COUNT);
	shared->free_slots[control->free_tail & (shared->slot_count - 1)] = index;
	__atomic_store_n(&control->free_tail, control->free_tail + 1, __ATOMIC_RELEASE);
}

/* The processes. */

struct traced_set {
	struct shared *shared;
	const struct record_output *output;
	VEC(struct traced *) processes;
	VEC(uint32_t) ended_slots;
	uint64_t lost_threads; /* see traced_set__count_missing */
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

void traced_set__give_probes(struct traced_set *set, struct uprobes *to)
{
	vec_for_each (traced, &set->processes) {
		uprobes__merge(to, (*traced)->uprobes);
		uprobes__merge(to, (*traced)->stale);
		(*traced)->uprobes = NULL;
		(*traced)->stale = NULL;
	}
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

/* The place of a process that is not traced any more has no probes. */
uint64_t traced_set__only(struct traced_set *set, uint32_t tgid)
{
	__u32 *tgids = set->shared->control->only_tgids;
	uint64_t place = 0;

	for (uint32_t i = 1; i < FBT_ONLY_COUNT; i++) {
		if (tgids[i] == tgid)
			return (uint64_t)i << FBT_PROBE_ONLY_SHIFT;
		if (!place && (!tgids[i] || !traced_set__find(set, tgids[i])))
			place = i;
	}
	if (place)
		__atomic_store_n(&tgids[place], tgid, __ATOMIC_SEQ_CST);
	return place << FBT_PROBE_ONLY_SHIFT;
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
	struct thread_stat stat;

	if (traced)
		return traced;
	traced = calloc(1, sizeof(*traced));
	if (!traced)
		return NULL;
	traced->tgid = tgid;
	if (!thread_stat_read(&stat, (struct proc_ref){.tgid = tgid}))
		traced->start_ticks = stat.start_ticks;
	traced->rescan = true;
	traced->live_threads = 1;
	traced->seen = target_seen__new();
	if (!traced->seen || vec_push(&set->processes, traced)) {
		free_traced(traced);
		return NULL;
	}
	return traced;
}

bool traced_is_there(const struct traced *traced)
{
	struct thread_stat stat;
	int err = thread_stat_read(&stat, (struct proc_ref){.tgid = traced->tgid});

	if (err)
		return err != -ESRCH;
	return !traced->start_ticks || stat.start_ticks == traced->start_ticks;
}

/* Sets the counters at the beginning, for a thread that already exists. */
static void note_use(struct fbt_slot *slot, uint32_t tgid, uint32_t tid)
{
	struct thread_use use;

	if (thread_use_read_one(&use, (struct proc_ref){tgid, tid}))
		return;
	slot->born_delay_ns = use.wait_ns;
	/* The kernel side takes this one for a sign that both are there. */
	__atomic_store_n(&slot->born_cpu_ns, use.cpu_ns, __ATOMIC_RELEASE);
}

/*
 * Gives a slot to a thread. Returns whether it has one and is not ending; adds to *missing if no
 * slot was free.
 */
static bool take_thread(struct traced_set *set, uint32_t tgid, uint32_t tid, uint64_t now_ns,
			uint32_t *missing)
{
	int slot = slots_take(set->shared, tgid, tid, now_ns);
	struct thread_stat stat = {0};
	bool ends;
	int err;

	if (!slot)
		return true;
	/*
	 * If the thread is ending, its exit probe may have run before it got its slot. That it
	 * cannot be read, without a descriptor say, does not mean that it has ended.
	 */
	err = thread_stat_read(&stat, (struct proc_ref){tgid, tid});
	ends = err == -ESRCH || (stat.flags & THREAD_EXITING);
	if (slot < 0)
		*missing += !ends;
	else if (ends)
		slots_end(set->shared, tid, now_ns);
	else if (!err && stat.state != 'R')
		slots_mark_blocked(set->shared, (uint32_t)slot);
	if (slot > 0 && !ends)
		note_use(&set->shared->slots[slot], tgid, tid);
	return slot > 0 && !ends;
}

/*
 * Finds the CPUs of a process by the affinity of its live threads, if there are any, and by the
 * limit of their cgroups. Where that limit is not known, neither are the CPUs.
 */
static void find_cpus(const struct traced_set *set, struct traced *traced)
{
	struct fbt_cpus record = {.tgid = traced->tgid};
	struct cgroup_limits limits;
	struct cpus cpus = {{0}};

	for (uint32_t i = 1; i < slots_used(set->shared); i++) {
		const struct fbt_slot *slot = &set->shared->slots[i];

		if (slot->tgid == traced->tgid && slot->state == FBT_SLOT_LIVE)
			cpus_add(&cpus, slot->tid);
	}
	record.cpus = cpus_count(&cpus);
	if (!record.cpus)
		return;
	cgroup_limits_read(&limits, (struct proc_ref){.tgid = traced->tgid});
	if (limits.hidden)
		return;
	if (limits.period_us) {
		record.quota_ns = limits.quota_us * NS_PER_US;
		record.period_ns = limits.period_us * NS_PER_US;
	}
	traced->cpus = record;
}

uint64_t traced_set__counted(const struct traced_set *set)
{
	return __atomic_load_n(&set->shared->control->lost[FBT_LOST_THREADS], __ATOMIC_RELAXED);
}

int traced_set__take_threads(struct traced_set *set, uint32_t tgid, uint64_t now_ns)
{
	struct traced *traced = traced_set__find(set, tgid);
	int taken = 0, err;
	uint32_t missing = 0;
	pid_vec tids = {0};

	err = threads_list(tgid, &tids);
	if (traced)
		traced->counted = traced_set__counted(set);
	vec_for_each (tid, &tids) {
		if (!err)
			taken += take_thread(set, tgid, *tid, now_ns, &missing);
	}
	vec_free(&tids);
	slots_forget_stacks(set->shared);
	if (traced)
		traced->missing = missing;
	/*
	 * Found now, because the process may end before the window. For processes that nobody named
	 * it would cost too much.
	 */
	if (traced && traced->wanted && !traced->cpus.cpus)
		find_cpus(set, traced);
	return err ? err : taken;
}

void traced_set__count_missing(struct traced_set *set, const struct traced *traced,
			       uint64_t counted)
{
	/* Those that began while the list was read are in it as well. */
	set->lost_threads +=
		sub_saturating(traced->missing, sub_saturating(traced->counted, counted));
}

uint64_t traced_set__lost_threads(const struct traced_set *set)
{
	return set->lost_threads;
}

void traced_set__mark_ended(struct traced_set *set)
{
	uint32_t used = slots_used(set->shared);

	set->ended_slots.count = 0;
	for (uint32_t i = 1; i < used; i++) {
		if (__atomic_load_n(&set->shared->slots[i].state, __ATOMIC_ACQUIRE) ==
			    FBT_SLOT_DEAD &&
		    vec_push(&set->ended_slots, i))
			break;
	}
}

static void count_live(struct traced_set *set)
{
	uint32_t used = slots_used(set->shared);

	vec_for_each (traced, &set->processes) {
		(*traced)->live_threads = 0;
		for (uint32_t i = 1; i < used; i++)
			(*traced)->live_threads += set->shared->tgids[i] == (*traced)->tgid;
	}
}

/* Fills in a thread's name and what it used; of a thread that lives, as of now_ns. */
static void find_use(const struct fbt_slot *slot, uint64_t now_ns, struct fbt_thread_use *use)
{
	struct proc_ref ref = {slot->tgid, slot->tid};
	struct thread_use now = {.cpu_ns = slot->died_cpu_ns, .wait_ns = slot->died_delay_ns};
	int err = 0;

	use->tgid = slot->tgid;
	use->tid = slot->tid;
	if (slot->step_end_ns || slot->step_start_ns)
		use->header.flags |= FBT_USE_STEPS;
	if (slot->state == FBT_SLOT_DEAD) {
		use->header.flags |= FBT_USE_ENDED;
		memcpy(use->comm, slot->died_comm, sizeof(use->comm) - 1);
		now_ns = slot->died_ns;
	} else {
		err = thread_use_read_one(&now, ref);
		proc_comm(ref, use->comm, sizeof(use->comm));
	}
	use->traced_ns = sub_saturating(now_ns, slot->taken_ns);
	if (err || slot->born_cpu_ns == FBT_USE_UNKNOWN || now.cpu_ns == FBT_USE_UNKNOWN)
		return;
	use->header.flags |= FBT_USE_CPU_KNOWN;
	use->cpu_ns = sub_saturating(now.cpu_ns, slot->born_cpu_ns);
	use->delay_ns = sub_saturating(now.wait_ns, slot->born_delay_ns);
}

/* Sends what the thread of a slot used, as of now_ns if it lives. */
static void send_use(struct traced_set *set, uint32_t index, uint64_t now_ns)
{
	struct process_sums own = {.threads = 0};
	struct fbt_thread_use use = {.tid = 0};

	slots_add(set->shared, index, now_ns, &own);
	for (int nr = 0; nr < FBT_NR_COUNT; nr++) {
		use.calls += own.rows[nr].calls;
		use.call_ns += own.rows[nr].ns + own.open_ns[nr];
	}
	find_use(&set->shared->slots[index], now_ns, &use);
	/*
	 * The thread was already ending when it got its slot, and perhaps had another slot before.
	 */
	if (use.header.flags == FBT_USE_ENDED && !use.calls)
		return;
	record_send(set->output, &use, sizeof(use), FBT_EVENT_THREAD_USE);
}

void traced_set__collect(struct traced_set *set, void (*on_end)(void *ctx, uint32_t tid), void *ctx)
{
	vec_for_each (slot, &set->ended_slots) {
		struct traced *traced = traced_set__find(set, set->shared->slots[*slot].tgid);

		if (traced) {
			slots_add(set->shared, *slot, 0, &traced->ended);
			send_use(set, *slot, 0);
		}
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
	uint32_t used = slots_used(set->shared);

	for (uint32_t i = 1; i < used; i++) {
		const struct fbt_slot *slot = &set->shared->slots[i];

		if (slot->tgid == traced->tgid && slot->state == FBT_SLOT_LIVE)
			end_slot(set->shared, i, now_ns);
	}
}

void traced_set__end_gone(struct traced_set *set, const struct traced *traced, uint64_t now_ns)
{
	uint32_t used = slots_used(set->shared);

	for (uint32_t i = 1; i < used; i++) {
		const struct fbt_slot *slot = &set->shared->slots[i];
		struct thread_stat stat = {0};
		int err;

		if (slot->tgid != traced->tgid || slot->state != FBT_SLOT_LIVE)
			continue;
		err = thread_stat_read(&stat, (struct proc_ref){slot->tgid, slot->tid});
		if (err != -ESRCH && stat.state != 'Z' && stat.state != 'X')
			continue;
		/* The exit program would have run before the thread is seen as ended. */
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == FBT_SLOT_LIVE)
			end_slot(set->shared, i, now_ns);
	}
}

void traced_set__sum(struct traced_set *set, const struct traced *traced, uint64_t now_ns,
		     struct process_sums *sums)
{
	uint32_t used = slots_used(set->shared);

	*sums = traced->ended;
	for (uint32_t i = 1; i < used; i++) {
		if (set->shared->slots[i].tgid == traced->tgid &&
		    set->shared->slots[i].state != FBT_SLOT_FREE)
			slots_add(set->shared, i, now_ns, sums);
	}
}

void traced_set__send_table(struct traced_set *set, struct traced *traced, uint64_t now_ns)
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
	for (uint32_t i = 1; i < slots_used(set->shared); i++) {
		if (set->shared->slots[i].tgid == traced->tgid &&
		    set->shared->slots[i].state != FBT_SLOT_FREE)
			send_use(set, i, now_ns);
	}
	find_cpus(set, traced);
	if (traced->cpus.cpus)
		record_send(set->output, &traced->cpus, sizeof(traced->cpus), FBT_EVENT_CPUS);
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
