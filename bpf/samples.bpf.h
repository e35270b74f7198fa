/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which functions a step computes in: a copy of the thread's stack, as of a slow call
 * (bpf/stacks.bpf.h), each time that its CPU clock has gone on by so much. Its owner is 0, its
 * start_ns that of the step. Samples share the places with slow calls: of four threads, at the rate
 * of user/stream/sampler.h, they take half of them between two turns of the tool.
 */
#ifndef FBT_SAMPLES_BPF_H
#define FBT_SAMPLES_BPF_H

#include "stacks.bpf.h"

/* More of the stack than this says little about where the step computes. */
#define SAMPLE_BYTES 16384

/* nr: FBT_PLACE_SAMPLE or FBT_PLACE_FAULT. Returns whether there was a place for it. */
static __always_inline bool take_sample(__u32 nr)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);
	__u64 wanted = SAMPLE_BYTES, sp, start;
	struct fbt_stack_place *place;
	__u32 index;
	struct fbt_slot *slot = current_slot(&index);

	if (!c || !slot || slot->start_ns)
		return false;
	start = slot->step_start_ns;
	if (!start)
		return false;
	place = take_place(c);
	if (!place) {
		/* Of a place with page faults the next one is copied. */
		if (nr == FBT_PLACE_SAMPLE)
			count_explain_lost(FBT_EXPLAIN_SAMPLES);
		return false;
	}
	place->tgid = slot->tgid;
	place->tid = slot->tid;
	place->owner = 0;
	place->nr = nr;
	place->start_ns = start;
	read_registers(place->registers, bpf_get_current_task_btf());
	sp = sp_of(place);
	place->step_sp = slot->step_sp >= sp ? slot->step_sp : 0;
	if (place->step_sp && place->step_sp - sp < SAMPLE_BYTES - 8)
		wanted = place->step_sp - sp + 8;
	place->bytes = copy_stack(place, sp, wanted);
	place->copy_ns = 0;
	store_barrier();
	*(volatile __u32 *)&place->state = FBT_PLACE_READY;
	return true;
}

#endif
