/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/unwind.h"

#include <errno.h>

struct walk {
	struct cfi_reader *reader;
	const struct code_finder *finder;
	const struct stack_copy *copy;
	struct registers now; /* of the frame that was found last */
	uint64_t step_sp;
	bool is_interrupted; /* its pc is that of no call: it is innermost, or has handled a signal
			      */
	struct unwound *result;
};

static uint64_t pc_now(const struct walk *walk)
{
	return walk->now.value[pc_of(walk->now.arch)];
}

static bool is_code(const struct walk *walk, uint64_t address)
{
	struct code_at code;

	return address && !walk->finder->find(walk->finder->ctx, address, &code);
}

/*
 * The two words at a frame pointer: that of the caller, and the address to which it is returned. A
 * function without a table may be entered only, as the innermost often is: then the latter is at
 * the stack pointer (x86-64) or in a register (arm64).
 */
static int follow_record(struct walk *walk, struct registers *caller, uint64_t *frame)
{
	bool is_arm64 = walk->now.arch == FBT_ARCH_ARM64;
	uint64_t sp = walk->now.value[sp_of(walk->now.arch)], fp, back, next;

	*caller = walk->now;
	if (!register_get(&walk->now, is_arm64 ? ARM64_FP : X86_BP, &fp) || fp < sp ||
	    !stack_word(walk->copy, fp, &next) || !stack_word(walk->copy, fp + 8, &back) ||
	    !is_code(walk, back))
		return -ENOENT;
	*frame = fp + 16;
	register_set(caller, is_arm64 ? ARM64_FP : X86_BP, next);
	register_set(caller, sp_of(walk->now.arch), *frame);
	register_set(caller, pc_of(walk->now.arch), back);
	return 0;
}

static int follow_entry(struct walk *walk, struct registers *caller, uint64_t *frame)
{
	bool is_arm64 = walk->now.arch == FBT_ARCH_ARM64;
	uint64_t sp = walk->now.value[sp_of(walk->now.arch)], back;

	*caller = walk->now;
	if (walk->result->count != 1)
		return -ENOENT;
	if (is_arm64 ? !register_get(&walk->now, ARM64_LR, &back)
		     : !stack_word(walk->copy, sp, &back))
		return -ENOENT;
	if (!is_code(walk, back))
		return -ENOENT;
	*frame = is_arm64 ? sp : sp + 8;
	register_set(caller, sp_of(walk->now.arch), *frame);
	register_set(caller, pc_of(walk->now.arch), back);
	return 0;
}

/* Where the table has nothing. */
static int guess(struct walk *walk, struct registers *caller, uint64_t *frame)
{
	walk->result->guessed = true;
	walk->is_interrupted = false;
	if (!follow_entry(walk, caller, frame))
		return 0;
	return follow_record(walk, caller, frame);
}

/* Adds the frame of the present pc. 0 or -ENOENT: no code is there. */
static int add_frame(struct walk *walk, struct code_at *code)
{
	struct frame *frame = &walk->result->frames[walk->result->count];
	/* A call may be the last instruction of its function. */
	uint64_t pc = pc_now(walk) - (walk->is_interrupted ? 0 : 1);
	int err = walk->finder->find(walk->finder->ctx, pc, code);

	if (err && walk->result->count)
		return err;
	*frame = (struct frame){.address = pc};
	if (!err)
		*frame = (struct frame){code->module, code->address};
	walk->result->count++;
	return err;
}

/* To the caller of the frame that was added. */
static int step_out(struct walk *walk, const struct code_at *code, struct registers *caller,
		    uint64_t *frame)
{
	struct cfi_row row;
	int err = code->file ? cfi_reader__find(walk->reader, code->file, code->address, &row)
			     : -ENOENT;

	if (err == -ENOENT)
		return guess(walk, caller, frame);
	if (err)
		return err;
	/* No call returns to the code that ends a handler: the kernel has made that address. */
	if (row.is_signal && !walk->is_interrupted)
		walk->result->frames[walk->result->count - 1].address++;
	walk->is_interrupted = row.is_signal;
	return cfi_apply(&row, &walk->now, walk->copy, caller, frame);
}

/*
 * The caller's frame lies higher. Only a function that keeps nothing on the stack has the same, on
 * arm64 and as the innermost one; after a signal the stack may be another one.
 */
static bool is_higher(const struct walk *walk, uint64_t frame)
{
	uint64_t sp = walk->now.value[sp_of(walk->now.arch)];

	return frame > sp ||
	       (frame == sp && walk->now.arch == FBT_ARCH_ARM64 && walk->result->count == 1);
}

/* At its entry the stack pointer was one return address lower on x86-64. */
static bool is_step(const struct walk *walk, uint64_t frame)
{
	if (!walk->step_sp)
		return false;
	return walk->now.arch == FBT_ARCH_ARM64 ? frame >= walk->step_sp : frame > walk->step_sp;
}

static enum unwind_end end_of(int err)
{
	switch (err) {
	case -ENODATA:
		return UNWIND_WHOLE;
	case -EFAULT:
		return UNWIND_CUT;
	default:
		return UNWIND_LOST;
	}
}

static enum unwind_end walk_out(struct walk *walk)
{
	struct registers caller;
	struct code_at code;
	uint64_t frame = 0;
	int err;

	while (walk->result->count < FBT_STACK_FRAMES) {
		if (add_frame(walk, &code))
			return UNWIND_LOST;
		err = step_out(walk, &code, &caller, &frame);
		/* The step's own caller is not in the copy. */
		if ((!err || err == -EFAULT) && is_step(walk, frame))
			return UNWIND_WHOLE;
		if (err)
			return end_of(err);
		if (!walk->is_interrupted && !is_higher(walk, frame))
			return UNWIND_LOST;
		walk->now = caller;
	}
	return UNWIND_DEEP;
}

void unwind(struct cfi_reader *reader, const struct code_finder *finder,
	    const struct registers *registers, const struct stack_copy *copy, uint64_t step_sp,
	    struct unwound *result)
{
	struct walk walk = {.reader = reader,
			    .finder = finder,
			    .copy = copy,
			    .now = *registers,
			    .step_sp = step_sp,
			    .is_interrupted = true,
			    .result = result};

	result->count = 0;
	result->guessed = false;
	result->end = walk_out(&walk);
}
