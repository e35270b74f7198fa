/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The numbers that are recorded with a step: read when it begins, or given by the calls of other
 * step functions inside of it, which are no steps of their own.
 */
#ifndef FBT_ARGS_BPF_H
#define FBT_ARGS_BPF_H

#include <bpf/bpf_tracing.h>
#include "frames.bpf.h"
#include "maps.bpf.h"

/* How far a future has come: enum fbt_future_state. */
static __always_inline __u8 read_state(__u64 address)
{
	__u8 state = FBT_FUTURE_UNKNOWN;

	if (bpf_probe_read_user(&state, sizeof(state), (void *)address))
		state = FBT_FUTURE_UNKNOWN;
	return state;
}

/* libbpf before 1.2 has no PT_REGS_PARM6. */
#ifdef __TARGET_ARCH_x86
#define SIXTH_ARGUMENT(ctx) ((ctx)->r9)
#else
#define SIXTH_ARGUMENT(ctx) (((const volatile struct user_pt_regs *)(ctx))->regs[5])
#endif

/* All registers: the verifier allows only constant offsets into the context. */
#define ARGUMENT_REGISTERS(ctx, cookie)                                                            \
	{                                                                                          \
		PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx), PT_REGS_PARM4(ctx),    \
			PT_REGS_PARM5(ctx), SIXTH_ARGUMENT(ctx), entry_sp(ctx, cookie),            \
	}

static __always_inline long read_width(__s64 *value, __u64 address, __u32 width)
{
	__u32 word = 0;
	long err;

	if (width >= 2)
		return bpf_probe_read_user(value, sizeof(*value), (void *)address);
	err = bpf_probe_read_user(&word, sizeof(word), (void *)address);
	*value = width == 0 ? (__s64)(__s32)word : (__s64)word;
	return err;
}

/* Elements of a vector; see struct step_arg. */
static __always_inline bool count_elements(const struct fbt_arg_spec *arg, __u64 base, __s64 *value)
{
	__u64 begin, end, limit;

	if (bpf_probe_read_user(&begin, sizeof(begin), (void *)(base + arg->offset[0])) ||
	    bpf_probe_read_user(&end, sizeof(end), (void *)(base + arg->offset[1])) ||
	    bpf_probe_read_user(&limit, sizeof(limit), (void *)(base + arg->limit_offset)))
		return false;
	*value = (end - begin) / arg->element;
	return end >= begin && (end - begin) % arg->element == 0 && (__u64)*value <= limit;
}

/* Numbers of the step before, whose arguments are still in the slot. */
static __always_inline void keep_args(struct fbt_slot *slot, const struct fbt_kind_args *spec,
				      __u32 mask)
{
	for (__u32 i = 0; i < FBT_ARG_COUNT; i++) {
		__u32 from = spec->args[i].base & (FBT_ARG_COUNT - 1);

		if (!(spec->before >> i & 1) || !(mask >> from & 1))
			continue;
		slot->args[i] = slot->args[from];
		slot->arg_mask |= 1u << i;
	}
}

static __always_inline void read_args(struct fbt_slot *slot, struct pt_regs *ctx, __u64 cookie)
{
	__u32 kind = cookie & FBT_PROBE_KIND;
	struct fbt_kind_args *spec = bpf_map_lookup_elem(&kind_args, &kind);
	volatile __u64 registers[8] = ARGUMENT_REGISTERS(ctx, cookie);
	__u32 mask = slot->arg_kind == kind ? slot->arg_mask : 0;

	slot->arg_mask = 0;
	slot->arg_kind = kind;
	slot->step_future = 0;
	slot->inner_wanted = 0;
	if (!spec)
		return;
	if (spec->is_future) {
		slot->step_future = registers[spec->future_base & 7];
		slot->step_state_at = slot->step_future + spec->state_offset;
		slot->step_state = read_state(slot->step_state_at);
	}
	if (spec->given) {
		slot->inner_wanted = spec->given;
		__builtin_memset(slot->inner_sp, 0, sizeof(slot->inner_sp));
		/* Steps may have been missed since. */
		if (!(slot->step_flags & FBT_STEP_NO_GAP))
			keep_args(slot, spec, mask);
	}
	for (__u32 i = 0; i < FBT_ARG_COUNT; i++) {
		if (i >= spec->count)
			break;
		if (spec->given >> i & 1)
			continue;
		struct fbt_arg_spec *arg = &spec->args[i];
		__s64 value = registers[arg->base & 7];

		if (arg->element && !count_elements(arg, value, &value))
			continue;
		if (arg->reads >= 1 && read_width(&value, value + arg->offset[0], arg->width[0]))
			continue;
		if (arg->reads >= 2 && read_width(&value, value + arg->offset[1], arg->width[1]))
			continue;
		if (arg->optional && value == (__s64)(1ull << 63))
			continue;
		slot->args[i] = value;
		slot->arg_mask |= 1u << i;
	}
}

static __always_inline void add_to_arg(struct fbt_slot *slot, __u32 i, __u64 value)
{
	__u64 before = slot->arg_mask >> i & 1 ? slot->args[i] : 0;

	slot->args[i] = before + value;
	slot->arg_mask |= 1u << i;
}

/* Whether a call of a Python function has an argument of that name: it is added to args[i]. */
static __always_inline bool take_from_inner(struct fbt_slot *slot, __u32 i,
					    const struct fbt_kind_args *inner, __u32 name,
					    volatile __u64 *registers)
{
	for (__u32 k = 0; k < FBT_ARG_COUNT; k++) {
		const struct fbt_arg_spec *arg = &inner->args[k];
		__u64 value;

		if (k >= inner->count)
			break;
		if (arg->name != name || inner->given >> k & 1)
			continue;
		value = registers[arg->base & 7];
		if (value == 1ull << 63)
			return false;
		add_to_arg(slot, i, value);
		return true;
	}
	return false;
}

/*
 * A step function begins at sp inside of a step whose kind has arguments that such calls give. A
 * call inside of one that has given an argument is a part of that one.
 */
static __noinline int begin_inner(struct pt_regs *ctx, struct fbt_slot *slot, __u64 cookie,
				  __u64 sp, __u64 now)
{
	__u32 kind = cookie & FBT_PROBE_KIND, step_kind = slot->step_kind;
	struct fbt_kind_args *outer = bpf_map_lookup_elem(&kind_args, &step_kind);
	struct fbt_kind_args *inner = bpf_map_lookup_elem(&kind_args, &kind);
	volatile __u64 registers[8] = ARGUMENT_REGISTERS(ctx, cookie);

	if (!outer || !inner)
		return 0;
	for (__u32 i = 0; i < FBT_ARG_COUNT; i++) {
		__u32 name = outer->args[i].name;

		if (!((outer->given & ~outer->before) >> i & 1) ||
		    (slot->inner_sp[i] && sp <= slot->inner_sp[i]))
			continue;
		slot->inner_sp[i] = 0;
		if (outer->timed >> i & 1) {
			if (inner->name != name)
				continue;
			slot->inner_since_ns[i] = now;
		} else if (!take_from_inner(slot, i, inner, name, registers)) {
			continue;
		}
		slot->inner_sp[i] = sp;
	}
	return 0;
}

/* A call inside of the step ends. */
static __noinline int end_inner(struct fbt_slot *slot, __u64 sp)
{
	__u32 step_kind = slot->step_kind;
	struct fbt_kind_args *outer = bpf_map_lookup_elem(&kind_args, &step_kind);
	__u64 now = bpf_ktime_get_ns();

	if (!outer)
		return 0;
	for (__u32 i = 0; i < FBT_ARG_COUNT; i++) {
		if (slot->inner_sp[i] != sp)
			continue;
		slot->inner_sp[i] = 0;
		if (outer->timed >> i & 1)
			add_to_arg(slot, i, (now - slot->inner_since_ns[i]) / 1000);
	}
	return 0;
}

#endif
