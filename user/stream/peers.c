/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/peers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "stream/peer_time.h"
#include "stream/stops.h"
#include "kernel/traced.h"
#include "proc/cgroup.h"
#include "proc/cpus.h"
#include "proc/process.h"
#include "proc/status.h"
#include "proc/thread_use.h"

#define WATCHES_MAX 8
#define LOOK_NS	    (5 * NS_PER_MS)
/* Where it is not known how long steps usually take. */
#define LONG_NS (20 * NS_PER_MS)
/* Of the time between looks, the looks take at most … */
#define SEARCH_SHARE 4	/* … a quarter, while peers are searched, else … */
#define LOOK_SHARE   20 /* … a twentieth. */
#define SEARCH_NS    (2 * NS_PER_MS)
/* So many passes without a look at a peer: the step did not wait for it meanwhile. */
#define PASSES_AWAY 2
/* Processes for which it is remembered that the search has been made ahead. */
#define AHEAD_MAX 64
/* Records of a long wait come less and less often. */
#define SEND_SHARE 16

/* Of a process with more threads only the first one is looked at. */
#define THREADS_MAX 64
/* Reading who has frozen a cgroup takes several files. */
#define FROZEN_TURNS 4

/* What was seen of a peer since the step is watched. */
struct sight {
	uint32_t tgid;
	uint32_t via; /* see struct fbt_peer */
	bool is_gone;
	bool is_idle;	 /* it has done nothing since the last wait, so this one is not for it */
	bool is_chosen;	 /* record.peer_tid is final */
	uint32_t turns;	 /* looks so far */
	uint64_t pass;	 /* of peers, at the latest look */
	char main_state; /* of its first thread at the first look */
	thread_use_vec first;	  /* of its threads at the first look, until one is chosen */
	struct peer_reading last; /* of the chosen one */
	uint64_t throttled;	  /* periods at the first look */
	bool throttle_known;
	uint32_t votes; /* for record.nr, less those for other calls */
	struct fbt_peer record;
};

struct watch {
	uint32_t slot; /* 0: free */
	uint32_t tgid;
	uint32_t tid;
	uint64_t step_start_ns;
	uint64_t sent_ns;
	uint64_t call_ns;	 /* the step's call in which it waits for the holder */
	struct peer_wait holder; /* tid 0: none is known */
	size_t count;
	struct sight sights[PEERS_MAX];
};

struct peers {
	const struct shared *shared;
	const struct record_output *output;
	struct stop_senders *senders;
	struct peer_links *links;
	struct cpus tickless;	   /* CPUs */
	uint64_t next_ns;	   /* of the next look */
	uint64_t pass;		   /* how often late steps were looked at */
	uint32_t ahead[AHEAD_MAX]; /* processes that were searched ahead, a ring */
	uint64_t ahead_count;
	struct watch watches[WATCHES_MAX];
};

struct peers *peers__new(const struct shared *shared, const struct record_output *output,
			 struct stop_senders *senders, bool asks_sockets)
{
	struct peers *peers = calloc(1, sizeof(*peers));

	if (!peers)
		return NULL;
	peers->shared = shared;
	peers->output = output;
	peers->senders = senders;
	(void)cpus_find_tickless(&peers->tickless);
	peers->links = peer_links__new(asks_sockets);
	if (!peers->links) {
		free(peers);
		return NULL;
	}
	return peers;
}

static void clear_watch(struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		vec_free(&watch->sights[i].first);
	*watch = (struct watch){.slot = 0};
}

void peers__free(struct peers *peers)
{
	if (!peers)
		return;
	for (size_t i = 0; i < WATCHES_MAX; i++)
		clear_watch(&peers->watches[i]);
	peer_links__free(peers->links);
	free(peers);
}

/* Whether the thread's step takes so long that it may wait for somebody who is held. */
static bool is_late(const volatile struct fbt_slot *slot, uint64_t now_ns)
{
	uint64_t start_ns = slot->step_start_ns, usual_ns = slot->step_usual_ns;

	if (!start_ns || start_ns > now_ns || slot->state != FBT_SLOT_LIVE)
		return false;
	if (!usual_ns)
		return now_ns - start_ns >= LONG_NS;
	return now_ns - start_ns >= LOOK_NS && now_ns - start_ns > 2 * usual_ns;
}

static struct watch *watch_of(struct peers *peers, uint32_t index, uint64_t step_start_ns)
{
	const struct fbt_slot *slot = &peers->shared->slots[index];
	struct watch *free_watch = NULL;

	for (size_t i = 0; i < WATCHES_MAX; i++) {
		struct watch *watch = &peers->watches[i];

		if (watch->slot == index && watch->step_start_ns == step_start_ns)
			return watch;
		if (!watch->slot)
			free_watch = watch;
	}
	if (free_watch)
		*free_watch = (struct watch){.slot = index,
					     .tgid = slot->tgid,
					     .tid = slot->tid,
					     .step_start_ns = step_start_ns};
	return free_watch;
}

/* The step has ended, or goes on as it should. */
static void drop_watches(struct peers *peers)
{
	for (size_t i = 0; i < WATCHES_MAX; i++) {
		struct watch *watch = &peers->watches[i];
		const volatile struct fbt_slot *slot = &peers->shared->slots[watch->slot];

		if (watch->slot && slot->step_start_ns != watch->step_start_ns)
			clear_watch(watch);
	}
}

/* The slot of the peer's thread that runs steps: in one now, else the one that ended last. */
static uint32_t step_slot_of(const struct peers *peers, uint32_t tgid)
{
	uint32_t used = slots_used(peers->shared), best = 0;
	uint64_t best_ns = 0;

	for (uint32_t i = 1; i < used; i++) {
		const volatile struct fbt_slot *slot = &peers->shared->slots[i];
		uint64_t ns = slot->step_start_ns ? UINT64_MAX : slot->step_end_ns;

		if (slot->tgid != tgid || slot->state != FBT_SLOT_LIVE || ns <= best_ns)
			continue;
		best = i;
		best_ns = ns;
	}
	return best;
}

/* False: these are not all. */
static bool read_threads(uint32_t tgid, thread_use_vec *threads)
{
	struct thread_use one = {.tid = tgid};

	if (processes_count_threads(tgid) <= THREADS_MAX && !thread_use_read(threads, tgid))
		return true;
	threads->count = 0;
	if (!thread_use_read_one(&one, (struct proc_ref){.tgid = tgid}))
		(void)vec_push(threads, one);
	return false;
}

static uint64_t cpu_of(const thread_use_vec *threads)
{
	uint64_t ns = 0;

	vec_for_each (thread, threads)
		ns += thread->cpu_ns;
	return ns;
}

static uint64_t read_throttled(uint32_t tgid, bool *known)
{
	struct cgroup_limits limits;

	cgroup_limits_read(&limits, processes_ref(tgid));
	*known = limits.period_us != 0;
	return limits.throttled;
}

/*
 * From where on the use of the chosen thread counts. One that is not among those that were read at
 * first, of many, counts from now on.
 */
static void use_first(struct sight *sight)
{
	sight->last = (struct peer_reading){
		.use.tid = sight->record.peer_tid,
		.state = sight->record.peer_tid == sight->tgid ? sight->main_state : 0,
	};
	vec_for_each (thread, &sight->first) {
		if (thread->tid != sight->record.peer_tid)
			continue;
		sight->last.use = *thread;
		return;
	}
	(void)thread_use_read_one(&sight->last.use,
				  (struct proc_ref){sight->tgid, sight->record.peer_tid});
}

/*
 * The first look. A process that has not used a CPU since the last step waited has not been needed
 * since: it is stopped or asleep for good.
 */
static void begin_sight(const struct peers *peers, const struct watch *watch, struct sight *sight,
			const struct peer_link *link, uint32_t via, struct peer_process *process,
			uint64_t now_ns)
{
	uint32_t slot = step_slot_of(peers, process->tgid);
	struct thread_stat stat;
	uint64_t cpu_ns;
	bool are_all;

	*sight = (struct sight){
		.tgid = process->tgid,
		.via = via,
		.pass = peers->pass,
		.record = {.tgid = watch->tgid,
			   .tid = watch->tid,
			   .step_start_ns = watch->step_start_ns,
			   .first_ns = now_ns,
			   .time_ns = now_ns,
			   .peer = process->tgid,
			   .peer_tid = process->tgid,
			   .way = link->way,
			   .nr = FBT_PEER_NR_UNKNOWN,
			   .via = via},
	};
	sight->is_gone = thread_stat_read(&stat, processes_ref(process->tgid)) ||
			 stat.start_ticks != process->start_ticks || stat.state == 'Z';
	if (sight->is_gone)
		return;
	sight->main_state = stat.state;
	(void)proc_comm(processes_ref(process->tgid), sight->record.comm,
			sizeof(sight->record.comm));
	are_all = read_threads(process->tgid, &sight->first);
	cpu_ns = cpu_of(&sight->first);
	sight->is_idle = are_all && process->seen_ns && process->seen_ns < watch->step_start_ns &&
			 process->cpu_ns == cpu_ns;
	process->cpu_ns = cpu_ns;
	process->seen_ns = now_ns;
	sight->throttled = read_throttled(process->tgid, &sight->throttle_known);
	if (slot) {
		sight->is_chosen = true;
		sight->record.peer_tid = peers->shared->slots[slot].tid;
	}
	use_first(sight);
}

/* By the second look it is known which thread is busiest. If none is, the first one counts. */
static void choose_thread(struct sight *sight)
{
	thread_use_vec now = {0};

	sight->is_chosen = true;
	(void)read_threads(sight->tgid, &now);
	thread_use_since(&now, &sight->first);
	if (now.count)
		sight->record.peer_tid = now.items[0].tid;
	vec_free(&now);
	use_first(sight);
}

/* The call that the thread is asleep in: "230 0x0 …"; a thread in none has another word. */
static uint32_t read_call(struct proc_ref thread)
{
	FILE *file = proc_fopen(thread, "syscall");
	uint32_t nr = FBT_PEER_NR_UNKNOWN;

	if (!file)
		return nr;
	if (fscanf(file, "%" SCNu32, &nr) != 1)
		nr = FBT_PEER_NR_UNKNOWN;
	fclose(file);
	return nr;
}

/* The majority, if there is one. */
static void vote(struct sight *sight, uint32_t nr)
{
	if (nr == FBT_PEER_NR_UNKNOWN)
		return;
	if (nr == sight->record.nr) {
		sight->votes++;
	} else if (sight->votes) {
		sight->votes--;
	} else {
		sight->record.nr = nr;
		sight->votes = 1;
	}
}

/* It is stopped. Only the freezer of a cgroup does not show in the thread's state. */
static bool is_stopped(struct sight *sight, char state)
{
	struct fbt_stop stop = {.tgid = sight->tgid, .tid = sight->record.peer_tid};
	bool may_be_frozen = state != 'R' && sight->turns % FROZEN_TURNS == 1;

	if ((state != 'T' && state != 't' && !may_be_frozen) || !stop_find_reason(&stop))
		return false;
	sight->record.stop_reason = stop.reason;
	sight->record.tracer = stop.tracer;
	memcpy(sight->record.tracer_comm, stop.comm, sizeof(sight->record.tracer_comm));
	return true;
}

static void know_step(const struct peers *peers, struct sight *sight)
{
	uint32_t slot = step_slot_of(peers, sight->tgid);
	const volatile struct fbt_slot *at = &peers->shared->slots[slot];
	uint64_t start_ns = slot ? at->step_start_ns : 0;

	/* It may end before the step that waits for it. */
	if (!start_ns)
		return;
	sight->record.kind = at->step_kind % FBT_KIND_COUNT;
	sight->record.kind_start_ns = start_ns;
}

static void look_at(const struct peers *peers, struct sight *sight, uint64_t now_ns)
{
	struct proc_ref thread = {sight->tgid, 0};
	bool was_away = peers->pass > sight->pass + PASSES_AWAY;
	struct thread_stat stat;
	struct peer_reading now = {.state = 0};

	if (!sight->is_chosen)
		choose_thread(sight);
	thread.thread = sight->record.peer_tid;
	if (thread_stat_read(&stat, thread) || thread_use_read_one(&now.use, thread)) {
		sight->is_gone = true;
		return;
	}
	sight->turns++;
	sight->pass = peers->pass;
	now.state = stat.state;
	now.is_tickless = cpus_has(&peers->tickless, stat.cpu);
	/* After a pause the step waits again: what the peer did meanwhile is of no matter. */
	if (was_away)
		sight->record.time_ns = now_ns;
	else
		peer_time_add(&sight->record, &sight->last, &now, is_stopped(sight, now.state),
			      now_ns);
	sight->last = now;
	if (stat.state == 'T')
		stop_senders__tell(peers->senders, sight->tgid, now_ns);
	if (stat.state == 'S' || stat.state == 'D')
		vote(sight, read_call(thread));
	know_step(peers, sight);
}

static void send(const struct peers *peers, struct watch *watch, const struct peer_link *link)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct sight *sight = &watch->sights[i];
		struct fbt_peer record = sight->record;
		uint64_t throttled = sight->throttled;

		if (sight->is_gone || sight->is_idle || record.time_ns == record.first_ns)
			continue;
		if (sight->throttle_known &&
		    record.delay_ns > (record.time_ns - record.first_ns) / 2)
			throttled = read_throttled(sight->tgid, &sight->throttle_known);
		record.throttled_periods = (uint32_t)sub_saturating(throttled, sight->throttled);
		record.others = (uint32_t)link->more;
		for (size_t j = 0; j < watch->count; j++)
			record.others += j != i && watch->sights[j].via == sight->via &&
					 !watch->sights[j].is_gone && !watch->sights[j].is_idle;
		record_send(peers->output, &record, sizeof(record), FBT_EVENT_PEER);
	}
}

static struct sight *sight_of(struct watch *watch, uint32_t tgid, uint32_t via)
{
	for (size_t i = 0; i < watch->count; i++) {
		if (watch->sights[i].tgid == tgid && watch->sights[i].via == via)
			return &watch->sights[i];
	}
	return NULL;
}

static void look_at_all(struct peers *peers, struct watch *watch, struct peer_link *link,
			uint32_t via, uint64_t now_ns)
{
	uint64_t watched_ns = now_ns - watch->step_start_ns;

	for (size_t i = 0; i < link->count; i++) {
		struct peer_process *process = &link->processes[i];
		struct sight *sight = sight_of(watch, process->tgid, via);

		if (!sight && watch->count < PEERS_MAX) {
			begin_sight(peers, watch, &watch->sights[watch->count++], link, via,
				    process, now_ns);
		} else if (sight && !sight->is_gone && !sight->is_idle) {
			look_at(peers, sight, now_ns);
			process->seen_ns = now_ns;
		}
	}
	if (now_ns < watch->sent_ns + max_u64(LOOK_NS, watched_ns / SEND_SHARE))
		return;
	watch->sent_ns = now_ns;
	send(peers, watch, link);
}

/* Whether the step and the holder of its lock are still in the calls in which they were seen. */
static bool holder_waits(const struct peers *peers, const struct watch *watch)
{
	const volatile struct fbt_slot *slot = &peers->shared->slots[watch->slot], *holder;

	if (!watch->holder.tid || slot->start_ns != watch->call_ns)
		return false;
	holder = shared_slot_of(peers->shared, watch->holder.tid);
	return holder && holder->start_ns == watch->holder.call_ns;
}

void peers__know_holder(struct peers *peers, uint32_t tid, const struct peer_wait *holder)
{
	const volatile struct fbt_slot *slot = shared_slot_of(peers->shared, tid);
	struct watch *watch;
	uint64_t step_start_ns;

	if (!slot)
		return;
	step_start_ns = slot->step_start_ns;
	watch = step_start_ns
			? watch_of(peers, (uint32_t)(slot - peers->shared->slots), step_start_ns)
			: NULL;
	if (!watch)
		return;
	watch->call_ns = slot->start_ns;
	watch->holder = *holder;
}

/*
 * The last call stays in the slot while the step computes. Between two calls of a row the step may
 * have lost its CPU: that it makes no call does not tell that the row has ended.
 */
static bool is_waiting(const struct peers *peers, const volatile struct fbt_slot *slot)
{
	return slot->start_ns || peer_links__may_repeat(peers->links, slot->nr);
}

/* Searches on. Those that were found are told: their own steps show what they do in short waits. */
static void search(const struct peers *peers, uint32_t tgid, struct peer_link *link)
{
	size_t found = link->count;

	peer_link_search(link, SEARCH_NS);
	if (link->way != FBT_PEER_MEMORY && link->way != FBT_PEER_FUTEX)
		return;
	for (; found < link->count; found++) {
		struct fbt_peer_link record = {.tgid = tgid, .peer = link->processes[found].tgid};

		record_send(peers->output, &record, sizeof(record), FBT_EVENT_PEER_LINK);
	}
}

/* Returns whether peers are still searched. */
static bool look_at_step(struct peers *peers, uint32_t index, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &peers->shared->slots[index];
	uint64_t step_start_ns = slot->step_start_ns;
	const struct peer_wait wait = {.tgid = slot->tgid,
				       .tid = slot->tid,
				       .nr = slot->nr,
				       .may_spin = true,
				       .args = {slot->call_args[0], slot->call_args[1]}};
	struct watch *watch = watch_of(peers, index, step_start_ns);
	struct peer_link *link;
	uint32_t via = 0;

	if (!watch || !is_waiting(peers, slot))
		return false;
	link = peer_links__find(peers->links, &wait, now_ns);
	if (!link && holder_waits(peers, watch)) {
		link = peer_links__find(peers->links, &watch->holder, now_ns);
		via = watch->holder.tid;
	}
	/* The thread writes its slot meanwhile: what was read counts only for the same step. */
	if (!link || slot->step_start_ns != step_start_ns)
		return false;
	if (peer_link_is_open(link))
		search(peers, wait.tgid, link);
	look_at_all(peers, watch, link, via, clock_ns(CLOCK_MONOTONIC));
	return peer_link_is_open(link);
}

/*
 * Whether it is still to be searched for whom the process of this thread spins. That takes longer
 * than many a wait, so it is done once while its steps are still as long as usual.
 */
static bool is_to_be_searched(const struct peers *peers, const volatile struct fbt_slot *slot)
{
	uint64_t step_start_ns = slot->step_start_ns, start_ns = slot->start_ns;

	if (!step_start_ns || start_ns < step_start_ns || slot->state != FBT_SLOT_LIVE ||
	    !peer_links__is_nap(peers->links, slot->nr))
		return false;
	for (size_t i = 0; i < AHEAD_MAX && i < peers->ahead_count; i++) {
		if (peers->ahead[i] == slot->tgid)
			return false;
	}
	return true;
}

static void look_ahead(struct peers *peers, const volatile struct fbt_slot *slot, uint64_t now_ns)
{
	const struct peer_wait wait = {
		.tgid = slot->tgid, .tid = slot->tid, .nr = slot->nr, .may_spin = true};
	struct peer_link *link = peer_links__find(peers->links, &wait, now_ns);

	if (link && peer_link_is_open(link))
		search(peers, wait.tgid, link);
	else
		peers->ahead[peers->ahead_count++ % AHEAD_MAX] = wait.tgid;
}

void peers__look(struct peers *peers, uint64_t now_ns)
{
	uint32_t used = slots_used(peers->shared);
	bool searches = false, looked = false;
	uint64_t begin_ns, spent_ns;

	if (now_ns < peers->next_ns)
		return;
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	drop_watches(peers);
	peers->pass++;
	for (uint32_t i = 1; i < used; i++) {
		if (is_to_be_searched(peers, &peers->shared->slots[i])) {
			looked = true;
			look_ahead(peers, &peers->shared->slots[i], now_ns);
		}
		if (!is_late(&peers->shared->slots[i], now_ns))
			continue;
		looked = true;
		searches |= look_at_step(peers, i, now_ns);
	}
	if (!looked)
		return;
	spent_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	peers->next_ns =
		now_ns + max_u64(LOOK_NS, spent_ns * (searches ? SEARCH_SHARE : LOOK_SHARE));
}
