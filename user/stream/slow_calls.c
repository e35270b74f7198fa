/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/slow_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stream/call_limits.h"
#include "stream/fault_sites.h"
#include "stream/samples.h"
#include "stacks/stacks.h"

struct slow_calls {
	struct shared *shared;
	const struct record_output *output;
	struct call_limits *limits;
	struct stacks *stacks;
	struct sample_sums *samples;
	struct fault_sites *faults;
	struct fbt_stacks sent;
};

struct slow_calls *slow_calls__new(struct shared *shared, const struct record_output *output,
				   const struct symbol_files *symbols, int fault_sums)
{
	struct slow_calls *slow = calloc(1, sizeof(*slow));

	if (!slow)
		return NULL;
	slow->shared = shared;
	slow->output = output;
	slow->limits = call_limits__new(shared->call_limits);
	slow->stacks = stacks__new(output, symbols);
	slow->samples = sample_sums__new(output);
	slow->faults = fault_sites__new(fault_sums, output);
	if (!slow->limits || !slow->stacks || !slow->samples || !slow->faults) {
		slow_calls__free(slow);
		return NULL;
	}
	return slow;
}

void slow_calls__free(struct slow_calls *slow)
{
	if (!slow)
		return;
	call_limits__free(slow->limits);
	stacks__free(slow->stacks);
	sample_sums__free(slow->samples);
	fault_sites__free(slow->faults);
	free(slow);
}

void slow_calls__add_call(struct slow_calls *slow, const struct fbt_call *call)
{
	if (call->header.flags & FBT_CALL_ARGS)
		call_limits__add_call(slow->limits, call->tid, call->nr, call->start_ns,
				      call->duration_ns);
}

void slow_calls__add_step(struct slow_calls *slow, const struct fbt_step *step)
{
	call_limits__add_step(slow->limits, step->tid, step->kind, step->start_ns, step->end_ns);
	call_limits__add_sums(slow->limits, step->kind, step->sums);
}

/* A stack holds what users have sent to the engine: it is gone once it was read. */
static void give_back(struct fbt_stack_place *place)
{
	explicit_bzero(place->registers, sizeof(place->registers));
	explicit_bzero(place->stack,
		       place->bytes < FBT_STACK_BYTES ? place->bytes : FBT_STACK_BYTES);
	__atomic_store_n(&place->state, FBT_PLACE_FREE, __ATOMIC_RELEASE);
}

static bool step_is_open(const struct slow_calls *slow, const struct fbt_stack_place *place)
{
	const volatile struct fbt_slot *slot = shared_slot_of(slow->shared, place->tid);

	return slot && slot->tgid == place->tgid && slot->step_start_ns == place->start_ns;
}

/* A sample of what a step computes: bpf/samples.bpf.h. */
static void take_sample(struct slow_calls *slow, const struct fbt_stack_place *place)
{
	const struct fbt_samples of = {
		.tgid = place->tgid, .tid = place->tid, .start_ns = place->start_ns};
	bool is_open = step_is_open(slow, place);
	struct stack_codes codes;

	stacks__sample(slow->stacks, place, is_open, clock_ns(CLOCK_MONOTONIC), &codes);
	/* It may have ended while the script was read. */
	if (is_open && !step_is_open(slow, place))
		stacks__sample(slow->stacks, place, false, clock_ns(CLOCK_MONOTONIC), &codes);
	sample_sums__add(slow->samples, &of, &codes);
}

/* The first page fault at a place: bpf/fault_sites.bpf.h. */
static void take_fault(struct slow_calls *slow, const struct fbt_stack_place *place)
{
	uint32_t codes[FBT_FAULT_CALLERS];

	stacks__functions(slow->stacks, place, clock_ns(CLOCK_MONOTONIC), codes, FBT_FAULT_CALLERS);
	fault_sites__name(slow->faults, place, codes);
}

void slow_calls__send_samples(struct slow_calls *slow, const struct fbt_step *step)
{
	sample_sums__send(slow->samples, step);
	fault_sites__send(slow->faults, step);
}

static void take_places(struct slow_calls *slow, bool send)
{
	for (uint32_t i = 0; i < slow->shared->stack_count; i++) {
		struct fbt_stack_place *place = &slow->shared->stacks[i];

		if (__atomic_load_n(&place->state, __ATOMIC_ACQUIRE) != FBT_PLACE_READY)
			continue;
		if (send && !place->owner && place->nr == FBT_PLACE_FAULT) {
			take_fault(slow, place);
		} else if (send && !place->owner) {
			take_sample(slow, place);
		} else if (send) {
			stacks__take(slow->stacks, place, clock_ns(CLOCK_MONOTONIC));
			slow->sent.taken++;
			slow->sent.copy_ns += place->copy_ns;
		}
		give_back(place);
	}
}

void slow_calls__drain(struct slow_calls *slow)
{
	take_places(slow, true);
}

void slow_calls__discard(struct slow_calls *slow)
{
	take_places(slow, false);
	__atomic_store_n(&slow->shared->control->stacks_skipped, 0, __ATOMIC_RELAXED);
}

void slow_calls__forget_thread(struct slow_calls *slow, uint32_t tid)
{
	call_limits__forget(slow->limits, tid);
}

void slow_calls__forget(struct slow_calls *slow, uint32_t tgid)
{
	stacks__forget(slow->stacks, tgid);
}

struct stacks *slow_calls__stacks(const struct slow_calls *slow)
{
	return slow->stacks;
}

void slow_calls__send_counts(struct slow_calls *slow)
{
	slow->sent.skipped =
		__atomic_load_n(&slow->shared->control->stacks_skipped, __ATOMIC_RELAXED);
	if (slow->sent.taken || slow->sent.skipped)
		record_send(slow->output, &slow->sent, sizeof(slow->sent), FBT_EVENT_STACKS);
}
