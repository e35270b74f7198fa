/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/id_map.h"
#include "base/log.h"
#include "stream/call_ring.h"
#include "stream/hangs.h"
#include "stream/peers.h"
#include "stream/looks.h"
#include "stream/slow_calls.h"
#include "stream/stops.h"
#include "stream/taken.h"
#include "stream/wakes.h"
#include "model/syscalls.h"
#include "proc/status.h"
#include "stacks/stacks.h"

/*
 * For so long events are read at most; then others have a turn, the rate guard among them. A
 * storm of new processes needs some time, as each is looked up.
 */
#define EVENTS_NS (200 * NS_PER_MS)

/* Tries to read the record of a file that a call names; another CPU may still be writing it. */
#define FILE_TRIES   100
#define FILE_WAIT_US 100

/*
 * How long the end of the last steps is waited for: its thread may be without a CPU, at most for a
 * period of its cgroup's CPU limit.
 */
#define LAST_TRIES   1000
#define LAST_WAIT_US 1000

/* Capacity kept for the next drain (728 KiB), which seldom has more than some hundred steps. */
#define SPARE_STEPS 1024

struct stream {
	struct loader *loader;
	struct shared *shared;
	struct traced_set *traced;
	struct call_ring *ring;
	struct file_names *files;
	struct stop_senders *senders;
	struct stops *stops;
	struct peers *peers;
	struct faults *faults;
	struct slow_calls *slow;
	struct looks *looks;
	struct hangs *hangs;
	struct taken_sums *taken;
	const struct record_output *output;
	struct stream_options options;
	struct tid_map *begun;		 /* futures, by address; values have no meaning */
	struct tid_map *named;		 /* threads whose name was sent; values have no meaning */
	VEC(struct fbt_ring_step) steps; /* held back until their calls are sent */
	struct fbt_lost lost;
	uint64_t steps_sent;
	uint64_t late_polls;	/* of futures that began before the window */
	uint64_t steps_dropped; /* for lack of memory, or not written by the end of the window */
	uint64_t missed_before; /* loader__missed_calls() when the window began */
	unsigned int file_tries;
	uint64_t files_dropped; /* files or calls whose file record could not be sent or read */
};

static void name_thread(struct stream *stream, uint32_t tgid, uint32_t tid)
{
	char comm[16];

	if (tid_map__get(stream->named, tid))
		return;
	if (proc_comm((struct proc_ref){tgid, tid}, comm, sizeof(comm)))
		record_send_thread(stream->output, tgid, tid, comm);
	if (tid_map__set(stream->named, tid, stream))
		log_debug("thread %u: no memory to remember its name", tid);
}

static void name_looked_at(void *ctx, uint32_t tgid, uint32_t tid)
{
	name_thread(ctx, tgid, tid);
}

static struct looks *new_looks(struct stream *stream)
{
	enum fbt_detail detail = stream->options.detail;
	const struct looks_options options = {
		.at_calls = detail == FBT_DETAIL_ESCALATED || detail == FBT_DETAIL_ALL,
		.calls_known = loader__traces_calls(stream->loader),
		.peers = stream->peers,
		.name = name_looked_at,
		.ctx = stream,
	};

	return looks__new(stream->shared, loader__task_list(stream->loader),
			  slow_calls__stacks(stream->slow), stream->output, &options);
}

static bool hang_must_wait(void *ctx, uint64_t now_ns)
{
	const struct stream *stream = ctx;

	return looks__must_wait(stream->looks, now_ns);
}

static void make_open_call(void *ctx, const struct fbt_slot *slot, uint64_t now_ns,
			   struct fbt_call *call);

static void tell_hang(void *ctx, const struct fbt_hang *hang)
{
	struct stream *stream = ctx;
	struct fbt_hang told = *hang;

	name_thread(stream, hang->tgid, hang->tid);
	if (hang->state == 'T')
		stop_senders__tell(stream->senders, hang->tgid, hang->time_ns);
	looks__at_hang(stream->looks, hang);
	record_send(stream->output, &told, sizeof(told), FBT_EVENT_HANG);
}

static struct hangs *new_hangs(struct stream *stream)
{
	const struct hangs_options options = {
		.hang_ns = stream->options.hang_ns,
		.must_wait = hang_must_wait,
		.make_call = make_open_call,
		.tell = tell_hang,
		.ctx = stream,
	};

	return hangs__new(stream->shared, &options);
}

struct stream *stream__new(struct loader *loader, struct traced_set *traced,
			   const struct record_output *output, const struct stream_options *options)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->loader = loader;
	stream->shared = loader__shared(loader);
	stream->traced = traced;
	stream->output = output;
	stream->options = *options;
	stream->named = tid_map__new();
	stream->begun = tid_map__new();
	stream->ring = call_ring__new(stream->shared);
	stream->files = file_names__new();
	stream->senders = stop_senders__new(loader__senders(loader), output);
	stream->stops = stops__new(stream->shared, output, stream->senders);
	stream->peers = peers__new(stream->shared, output, stream->senders, options->asks_sockets);
	stream->faults = faults__new(loader);
	stream->hangs = new_hangs(stream);
	stream->slow = slow_calls__new(stream->shared, output, &options->symbols,
				       loader__map(loader, "fault_sums"));
	if (stream->slow)
		stacks__set_script_reader(slow_calls__stacks(stream->slow), &options->scripts);
	stream->looks = stream->slow ? new_looks(stream) : NULL;
	stream->taken = taken_sums__new(output);
	if (!stream->named || !stream->begun || !stream->ring || !stream->files ||
	    !stream->senders || !stream->stops || !stream->peers || !stream->faults ||
	    !stream->hangs || !stream->slow || !stream->looks || !stream->taken) {
		stream__free(stream);
		return NULL;
	}
	return stream;
}

void stream__free(struct stream *stream)
{
	if (!stream)
		return;
	tid_map__free(stream->named);
	tid_map__free(stream->begun);
	call_ring__free(stream->ring);
	file_names__free(stream->files);
	stops__free(stream->stops);
	peers__free(stream->peers);
	stop_senders__free(stream->senders);
	faults__free(stream->faults);
	hangs__free(stream->hangs);
	looks__free(stream->looks);
	slow_calls__free(stream->slow);
	taken_sums__free(stream->taken);
	vec_free(&stream->steps);
	free(stream);
}

void stream__time_faults(struct stream *stream, const struct fault_options *options)
{
	faults__begin(stream->faults, options);
}

static void drop_event(void *ctx, const struct fbt_header *event)
{
}

static void drop_call(void *ctx, const struct fbt_call *call)
{
}

void stream__discard(struct stream *stream)
{
	loader__drain_events(stream->loader, EVENTS_NS, drop_event, NULL);
	call_ring__drain(stream->ring, UINT64_MAX, drop_call, NULL);
	slow_calls__discard(stream->slow);
	call_ring__reset_lost(stream->ring);
	stream->missed_before = loader__missed_calls(stream->loader);
	memset(stream->shared->control->lost, 0, sizeof(stream->shared->control->lost));
	stream->shared->control->walk_ns = 0;
}

void stream__forget_early_begins(struct stream *stream)
{
	__atomic_store_n(&stream->shared->control->lost[FBT_LOST_BEGINS], 0, __ATOMIC_RELAXED);
}

/* Sent at once: before the step, which is held back. */
static void send_wake(struct stream *stream, const struct fbt_ring_wake *from)
{
	struct fbt_wake wake;

	wake_split(from, &wake);
	name_thread(stream, wake.tgid, wake.waker_tid);
	record_send(stream->output, &wake, sizeof(wake), FBT_EVENT_WAKE);
}

static void send_woken(struct stream *stream, const struct fbt_woken *from)
{
	struct fbt_woken woken = *from;

	if (woken.waker_tgid == woken.tgid)
		name_thread(stream, woken.tgid, woken.waker_tid);
	record_send(stream->output, &woken, sizeof(woken), FBT_EVENT_WOKEN);
}

static void take_event(void *ctx, const struct fbt_header *event)
{
	struct stream *stream = ctx;

	if (event->type == FBT_EVENT_STEP) {
		faults__note(stream->faults, (const struct fbt_step *)event);
		if (vec_push(&stream->steps, *(const struct fbt_ring_step *)event))
			stream->steps_dropped++;
	} else if (event->type == FBT_EVENT_TARGET) {
		/* After execve, and in a child, whose number an earlier process may have had. */
		slow_calls__forget(stream->slow, ((const struct fbt_target *)event)->tgid);
		stream->options.on_process(stream->options.ctx, (const struct fbt_target *)event);
	} else if (event->type == FBT_EVENT_SITE) {
		stream->options.on_site(stream->options.ctx, (const struct fbt_ring_site *)event);
	} else if (event->type == FBT_EVENT_WAKE) {
		send_wake(stream, (const struct fbt_ring_wake *)event);
	} else if (event->type == FBT_EVENT_WOKEN) {
		send_woken(stream, (const struct fbt_woken *)event);
	} else if (event->type == FBT_EVENT_TAKEN) {
		taken_sums__add(stream->taken, (const struct fbt_taken *)event);
	} else if (event->type == FBT_EVENT_FILE) {
		if (file_names__send(stream->files, event, stream->output))
			stream->files_dropped++;
	}
}

/*
 * Waits for the record of a file. The BPF side sends it before the call, but possibly after the
 * events were last read. Also, an event can be read only after all earlier events are complete.
 */
static bool await_file(struct stream *stream, uint32_t id)
{
	while (!file_names__has(stream->files, id)) {
		if (stream->file_tries == FILE_TRIES)
			return false;
		if (stream->file_tries++)
			usleep(FILE_WAIT_US);
		loader__drain_events(stream->loader, EVENTS_NS, take_event, stream);
	}
	return true;
}

static void send_call(void *ctx, const struct fbt_call *call)
{
	struct stream *stream = ctx;
	struct fbt_call nameless;

	if (call->file && !file_names__has(stream->files, call->file) &&
	    !await_file(stream, call->file)) {
		stream->files_dropped++;
		nameless = *call;
		nameless.file = 0;
		call = &nameless;
	}
	stream->output->emit(stream->output->ctx, call, sizeof(*call));
	slow_calls__add_call(stream->slow, call);
}

/* Dropped futures stay in the table until another one begins at their address. */
#define BEGUN_MAX 65536

/* Whether a step ends with this record: for a future its last poll, if the first was seen. */
static bool ends_step(struct stream *stream, const struct fbt_step *step)
{
	uint64_t key = step->future ^ (uint64_t)step->tgid << 48;
	bool is_new = step->state_before < FBT_FUTURE_AWAITS;
	bool is_over = step->end != FBT_END_RETURN || step->state_after < FBT_FUTURE_AWAITS ||
		       step->state_after == FBT_FUTURE_UNKNOWN;

	if (!(step->header.flags & FBT_STEP_POLL))
		return true;
	if (!is_new && !tid_map__get(stream->begun, key)) {
		stream->late_polls++;
		return false;
	}
	if (is_over) {
		tid_map__remove(stream->begun, key);
		return true;
	}
	if (is_new && (tid_map__count(stream->begun) >= BEGUN_MAX ||
		       tid_map__set(stream->begun, key, stream)))
		log_debug("future at 0x%llx: not counted for --steps",
			  (unsigned long long)step->future);
	return false;
}

static bool has_stalls(const struct fbt_stalls *stalls)
{
	return stalls->gil_waits || stalls->gc_count || stalls->gc_ns;
}

/* A shorter one says nothing. */
#define GAP_MIN_NS 100000

/* Whether the thread was off its CPU in the gap before the step, or waited for one. */
static bool has_gap(const struct fbt_ring_step *ring)
{
	return ring->step.header.flags & FBT_STEP_CPU_KNOWN &&
	       ring->step.gap_ns > add_saturating(not_negative(ring->gap.cpu_ns), GAP_MIN_NS);
}

/* The kernel's figures may be a second old, longer than the step took. */
static void forget_team(struct fbt_step *step)
{
	step->header.flags &= (__u16)~FBT_STEP_TEAM_TIMED;
	step->team_ns = 0;
	step->team_cpu_ns = 0;
	step->team_delay_ns = 0;
}

static void send_step(struct stream *stream, struct fbt_ring_step *ring)
{
	struct fbt_step *step = &ring->step;

	if (stream->options.steps_max && stream->steps_sent >= stream->options.steps_max)
		return;
	name_thread(stream, step->tgid, step->tid);
	/* Threads for which it may have waited, and which are in no step and no record of a call.
	 */
	if (step->starved_tid)
		name_thread(stream, step->tgid, step->starved_tid);
	if (step->late_tid)
		name_thread(stream, step->tgid, step->late_tid);
	if (stream->options.more_flags)
		step->header.flags |= stream->options.more_flags(stream->options.ctx, step);
	if (stream->options.is_tickless)
		forget_team(step);
	if (has_stalls(&ring->stalls))
		record_send(stream->output, &ring->stalls, sizeof(ring->stalls), FBT_EVENT_STALLS);
	if (has_gap(ring))
		record_send(stream->output, &ring->gap, sizeof(ring->gap), FBT_EVENT_GAP);
	taken_sums__send(stream->taken, step);
	slow_calls__send_samples(stream->slow, step);
	record_send(stream->output, step, sizeof(*step), FBT_EVENT_STEP);
	slow_calls__add_step(stream->slow, step);
	stream->steps_sent += ends_step(stream, step);
	if (stream->options.on_step)
		stream->options.on_step(stream->options.ctx, step);
}

/* The thread has ended, and its thread ID may be reused. */
static void forget_thread(void *ctx, uint32_t tid)
{
	const struct stream *stream = ctx;

	tid_map__remove(stream->named, tid);
	slow_calls__forget_thread(stream->slow, tid);
}

/* Sends the first count steps. Steps read during the sending of calls wait, as their calls may. */
static void send_steps(struct stream *stream, size_t count)
{
	for (size_t i = 0; i < count; i++)
		send_step(stream, &stream->steps.items[i]);
	stream->steps.count -= count;
	if (stream->steps.count)
		memmove(stream->steps.items, stream->steps.items + count,
			stream->steps.count * sizeof(*stream->steps.items));
	vec_shrink(&stream->steps, SPARE_STEPS);
}

/*
 * Up to when calls are read where events are left: later ones may name files, or be of processes,
 * that are told in those.
 */
static uint64_t last_end(const struct stream *stream)
{
	uint64_t end_ns = 0;

	vec_for_each (step, &stream->steps)
		end_ns = max_u64(end_ns, step->step.end_ns);
	return end_ns;
}

/* Steps that have ended, but whose records may not be written yet. */
static uint64_t count_closing(const struct stream *stream)
{
	uint64_t count = 0;

	for (uint32_t i = 1; i < slots_used(stream->shared); i++)
		count += __atomic_load_n(&stream->shared->slots[i].step_closing,
					 __ATOMIC_ACQUIRE) != 0;
	return count;
}

/* Reads all events that will come. Returns whether it could. */
static bool drain_last(struct stream *stream)
{
	uint64_t closing = 0;
	bool is_whole = false;

	for (int i = 0; i < LAST_TRIES; i++) {
		closing = count_closing(stream);
		is_whole = loader__drain_events(stream->loader, 0, take_event, stream);
		if (is_whole && !closing)
			return true;
		usleep(LAST_WAIT_US);
	}
	stream->steps_dropped +=
		max_u64(closing, is_whole ? 0 : loader__unread_steps(stream->loader));
	return is_whole;
}

static void drain_until(struct stream *stream, uint64_t cutoff_ns)
{
	bool is_whole;
	size_t steps;

	slots_forget_stacks(stream->shared);
	traced_set__mark_ended(stream->traced);
	is_whole = cutoff_ns == UINT64_MAX
			   ? drain_last(stream)
			   : loader__drain_events(stream->loader, EVENTS_NS, take_event, stream);
	stream->file_tries = 0;
	steps = stream->steps.count;
	slow_calls__drain(stream->slow);
	/* All calls of the steps that were read above have returned by now and are in a ring. */
	if (cutoff_ns != UINT64_MAX)
		cutoff_ns = is_whole ? clock_ns(CLOCK_MONOTONIC) : last_end(stream);
	call_ring__drain(stream->ring, cutoff_ns, send_call, stream);
	send_steps(stream, steps);
	/* Else an ended thread may be of a process that is not known yet. */
	if (is_whole)
		traced_set__collect(stream->traced, forget_thread, stream);
}

uint64_t stream__steps(const struct stream *stream)
{
	return stream->steps_sent;
}

uint64_t stream__lost_threads(const struct stream *stream)
{
	return __atomic_load_n(&stream->shared->control->lost[FBT_LOST_THREADS], __ATOMIC_RELAXED);
}

void stream__send_lost(struct stream *stream)
{
	struct fbt_lost lost = {.header = stream->lost.header};

	for (int i = 0; i < FBT_LOST_COUNT; i++)
		lost.count[i] =
			__atomic_load_n(&stream->shared->control->lost[i], __ATOMIC_RELAXED);
	lost.count[FBT_LOST_CALLS] += call_ring__lost(stream->ring);
	lost.count[FBT_LOST_THREADS] += traced_set__lost_threads(stream->traced);
	lost.count[FBT_LOST_STEPS] += stream->steps_dropped;
	lost.count[FBT_LOST_FILES] += stream->files_dropped;
	if (!memcmp(lost.count, stream->lost.count, sizeof(lost.count)))
		return;
	stream->lost = lost;
	record_send(stream->output, &stream->lost, sizeof(stream->lost), FBT_EVENT_LOST);
}

/* Adds the details that the BPF side recorded when the call was entered. */
static void know_open_call(const struct stream *stream, const struct fbt_slot *slot,
			   struct fbt_call *call)
{
	struct thread_status status;

	call->header.flags |= slot->call_flags;
	call->args[0] = slot->call_args[0];
	call->args[1] = slot->call_args[1];
	if (file_names__has(stream->files, slot->call_file))
		call->file = slot->call_file;
	if (!thread_status_read(&status, (struct proc_ref){slot->tgid, slot->tid}) &&
	    status.voluntary_switches > slot->awake_switches)
		call->header.flags |= FBT_CALL_BLOCKED;
}

static void make_open_call(void *ctx, const struct fbt_slot *slot, uint64_t now_ns,
			   struct fbt_call *call)
{
	const struct stream *stream = ctx;

	*call = (struct fbt_call){
		.header.flags = FBT_CALL_UNFINISHED,
		.tgid = slot->tgid,
		.tid = slot->tid,
		.start_ns = slot->start_ns,
		.duration_ns = now_ns - slot->start_ns,
		.nr = slot->nr,
	};
	if (slot->step_start_ns && slot->call_flags)
		know_open_call(stream, slot, call);
}

static void send_open_call(struct stream *stream, const struct fbt_slot *slot, uint64_t now_ns)
{
	struct fbt_call call;

	make_open_call(stream, slot, now_ns, &call);
	record_send(stream->output, &call, sizeof(call), FBT_EVENT_CALL);
}

void stream__drain(struct stream *stream)
{
	stops__look(stream->stops, clock_ns(CLOCK_MONOTONIC));
	/* Without records of calls it is not known what a step waits in. */
	if (stream->options.detail == FBT_DETAIL_ESCALATED ||
	    stream->options.detail == FBT_DETAIL_ALL)
		peers__look(stream->peers, clock_ns(CLOCK_MONOTONIC));
	drain_until(stream, 0);
	looks__turn(stream->looks, clock_ns(CLOCK_MONOTONIC));
	hangs__turn(stream->hangs, clock_ns(CLOCK_MONOTONIC));
	faults__turn(stream->faults, clock_ns(CLOCK_MONOTONIC));
}

/* As bpf/stalls.bpf.h does; a wait or a collection that has not ended counts so far. */
static void make_open_stalls(const struct fbt_slot *slot, uint64_t now_ns,
			     struct fbt_stalls *stalls)
{
	const struct fbt_slot_stalls *now = &slot->stalls, *before = &slot->step_stalls;
	uint64_t open_ns =
		slot->gc_start_ns && slot->gc_start_ns < now_ns ? now_ns - slot->gc_start_ns : 0;

	*stalls = (struct fbt_stalls){
		.tgid = slot->tgid,
		.tid = slot->tid,
		.start_ns = slot->step_start_ns,
		.gil_ns = now->gil_ns - before->gil_ns,
		.gc_ns = now->gc_ns - before->gc_ns + open_ns,
		.gc_own_ns = now->gc_own_ns - before->gc_own_ns + open_ns,
		.gc_longest_ns = slot->gc_longest >> FBT_GC_SHIFT,
		.gil_waits = (uint32_t)(now->gil_waits - before->gil_waits),
		.gc_count = (uint32_t)(now->gc_count - before->gc_count),
		.gc_generation = slot->gc_longest & ((1u << FBT_GC_SHIFT) - 1),
	};
	if (open_ns > stalls->gc_longest_ns) {
		stalls->gc_longest_ns = open_ns;
		stalls->gc_generation = slot->gc_generation;
	}
	if (slot->start_ns && slot->start_ns < now_ns && slot->call_gil) {
		stalls->gil_ns += now_ns - slot->start_ns;
		stalls->gil_waits++;
	}
}

static void make_open_step(const struct fbt_slot *slot, uint64_t now_ns, struct fbt_ring_step *ring)
{
	struct fbt_step *step = &ring->step;

	make_open_stalls(slot, now_ns, &ring->stalls);
	ring->gap = (struct fbt_gap){0};
	*step = (struct fbt_step){
		.header.type = FBT_EVENT_STEP,
		.header.flags =
			(slot->step_flags & ~(__u32)(FBT_STEP_CPU_KNOWN | FBT_STEP_HANDLERS_TIMED |
						     FBT_STEP_TEAM_KNOWN | FBT_STEP_FAULTS_TIMED)) |
			FBT_STEP_OTHER_UNKNOWN | FBT_STEP_SCHED_UNKNOWN,
		.header.size = sizeof(*step),
		.tgid = slot->tgid,
		.tid = slot->tid,
		.kind = slot->step_kind,
		.end = FBT_END_TRUNCATED,
		.start_ns = slot->step_start_ns,
		.end_ns = now_ns,
		.thread_ns = now_ns - slot->step_start_ns,
		.gap_ns = slot->gap_ns,
		.gap_syscall_ns = slot->gap_syscall_ns,
		.lost_calls = slot->lost_calls - slot->step_lost_calls,
		.arg_mask = slot->arg_mask,
	};
	memcpy(step->args, slot->args, sizeof(step->args));
	memcpy(step->sums, slot->sums, sizeof(step->sums));
	if (slot->step_future) {
		step->header.flags |= FBT_STEP_POLL;
		step->future = slot->step_future;
		step->turn = slot->step_turn;
		step->state_before = (uint8_t)slot->step_state;
		step->state_after = FBT_FUTURE_UNKNOWN;
	}
	if (slot->start_ns && now_ns > slot->start_ns)
		step->sums[syscall_category(syscalls_arch(), slot->nr)].ns +=
			now_ns - slot->start_ns;
}

static void send_open_step(struct stream *stream, const struct fbt_slot *slot, uint64_t now_ns)
{
	struct fbt_ring_step step;

	make_open_step(slot, now_ns, &step);
	send_step(stream, &step);
}

static bool is_open(const struct fbt_slot *slot, uint64_t kinds)
{
	return __atomic_load_n(&slot->step_start_ns, __ATOMIC_ACQUIRE) && slot->state &&
	       kinds >> slot->step_kind % FBT_KIND_COUNT & 1;
}

bool stream__has_open_steps(const struct stream *stream, uint64_t kinds)
{
	for (uint32_t i = 1; i < stream->shared->slot_count; i++) {
		if (is_open(&stream->shared->slots[i], kinds))
			return true;
	}
	return false;
}

bool stream__awaits_exit(const struct stream *stream, uint32_t kind)
{
	for (uint32_t i = 1; i < stream->shared->slot_count; i++) {
		const struct fbt_slot *slot = &stream->shared->slots[i];

		if (is_open(slot, UINT64_C(1) << kind) &&
		    !__atomic_load_n(&slot->step_at_site, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

bool stream__has_steps(const struct stream *stream)
{
	return stream->steps_sent || tid_map__count(stream->begun) ||
	       stream__has_open_steps(stream, UINT64_MAX);
}

uint64_t stream__late_polls(const struct stream *stream)
{
	return stream->late_polls;
}

/* If a thread ends now, the BPF side closes its step at the same time: the exchange decides. */
uint64_t stream__cut_steps(struct stream *stream, uint64_t kinds, uint64_t now_ns)
{
	uint64_t count = 0;

	/* Steps of the same threads that have ended before come first. */
	(void)loader__drain_events(stream->loader, EVENTS_NS, take_event, stream);
	for (uint32_t i = 1; i < stream->shared->slot_count; i++) {
		struct fbt_slot *slot = &stream->shared->slots[i];
		struct fbt_ring_step step;

		if (!is_open(slot, kinds))
			continue;
		make_open_step(slot, now_ns, &step);
		if (step.step.start_ns > now_ns ||
		    !__atomic_compare_exchange_n(&slot->step_start_ns, &step.step.start_ns, 0,
						 false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		if (vec_push(&stream->steps, step))
			stream->steps_dropped++;
		count++;
	}
	return count;
}

/* The row of calls that the thread was in: see bpf/spins.bpf.h. */
static void send_open_run(struct stream *stream, const struct fbt_slot *slot)
{
	struct fbt_call call = {
		.header.flags = FBT_CALL_RUN,
		.tgid = slot->tgid,
		.tid = slot->tid,
		.start_ns = slot->spin_start_ns,
		.duration_ns = slot->spin_end_ns - slot->spin_start_ns,
		.nr = slot->spin_nr,
		.run = {.calls = slot->spin_calls,
			.longest_ns = slot->spin_longest_ns,
			.calls_ns = slot->spin_ns},
		.delay_ns = slot->spin_delay_ns,
	};

	if (file_names__has(stream->files, slot->spin_file))
		call.file = slot->spin_file;

	record_send(stream->output, &call, sizeof(call), FBT_EVENT_CALL);
}

static void send_open(struct stream *stream, const struct fbt_slot *slot, uint64_t now_ns)
{
	bool in_step = slot->step_start_ns && slot->step_start_ns < now_ns;
	bool wants_calls = stream->options.detail == FBT_DETAIL_ALL ||
			   (stream->options.detail == FBT_DETAIL_ESCALATED && in_step);

	if (slot->spin_calls)
		send_open_run(stream, slot);
	if (slot->start_ns && slot->start_ns < now_ns && wants_calls)
		send_open_call(stream, slot, now_ns);
	if (in_step)
		send_open_step(stream, slot, now_ns);
}

void stream__send_unseen(struct stream *stream)
{
	struct fbt_unseen unseen = {.calls = sub_saturating(loader__missed_calls(stream->loader),
							    stream->missed_before)};

	if (unseen.calls)
		record_send(stream->output, &unseen, sizeof(unseen), FBT_EVENT_UNSEEN);
}

void stream__send_counts(struct stream *stream)
{
	slow_calls__send_counts(stream->slow);
	looks__send_counts(stream->looks);
}

void stream__finish(struct stream *stream, uint64_t now_ns)
{
	drain_until(stream, UINT64_MAX);
	send_steps(stream, stream->steps.count);
	hangs__finish(stream->hangs, now_ns);
	for (uint32_t i = 1; i < stream->shared->slot_count; i++) {
		const struct fbt_slot *slot = &stream->shared->slots[i];

		if (slot->state == FBT_SLOT_LIVE && slot->tgid)
			send_open(stream, slot, now_ns);
	}
	stream__send_lost(stream);
	stream__send_counts(stream);
}
