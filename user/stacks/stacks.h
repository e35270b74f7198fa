/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Turns copied stacks into records: unwinds them, names the functions, and remembers which places
 * of code were sent. No byte of a stack is kept.
 */
#ifndef FBT_STACKS_STACKS_H
#define FBT_STACKS_STACKS_H

#include "fbt_shared.h"
#include "model/event.h"
#include "elf/symbol_files.h"
#include "stacks/script.h"

struct stacks;

/* output and what symbols names are borrowed. NULL: -ENOMEM. */
struct stacks *stacks__new(const struct record_output *output, const struct symbol_files *symbols);
void stacks__free(struct stacks *stacks);

/* Sends the FBT_EVENT_STACK of a place, after an FBT_EVENT_CODE for what is new in it. */
void stacks__take(struct stacks *stacks, const struct fbt_stack_place *place, uint64_t now_ns);

/* A thread of which registers and stack are known. The stack begins at the stack pointer. */
struct stack_source {
	uint32_t tgid;
	uint32_t tid;
	const __u64 *registers; /* FBT_REGISTERS */
	const uint8_t *stack;
	size_t bytes;
	uint64_t step_sp; /* as in fbt_stack_place; 0: up to the thread's first function */
	bool is_present;  /* the thread is there still: functions of scripts may be read */
};

struct stack_codes {
	uint32_t count;
	uint16_t flags;			  /* FBT_STACK_CUT, … */
	uint32_t codes[FBT_STACK_FRAMES]; /* as in fbt_stack */
};

uint64_t stack_source_sp(const __u64 registers[FBT_REGISTERS]);

/* Unwinds a stack, and sends an FBT_EVENT_CODE for each place that is new. */
void stacks__unwind(struct stacks *stacks, const struct stack_source *source, uint64_t now_ns,
		    struct stack_codes *codes);

/* What is known of a place of code: either may be NULL. Strings live until a stack is taken. */
struct code_about {
	const char *function;
	const char *path;
};
bool stacks__about(const struct stacks *stacks, uint32_t id, struct code_about *about);

/* script_reader.holder, or 0 without one. */
uint32_t stacks__script_holder(const struct stacks *stacks, uint32_t tgid, uint32_t tid,
			       uint64_t lock);

/* From now on functions of scripts are put where those of their interpreter stand. */
void stacks__set_script_reader(struct stacks *stacks, const struct script_reader *reader);

/*
 * Where a place that was sampled is: first the innermost function with a name, by its begin, so
 * that all samples in it are alike; 0 if there is none. Then the calls that led to it. Sends an
 * FBT_EVENT_CODE for each that is new.
 *
 * is_present: the thread is in the same step still. Then those of the interpreter's own functions
 * give way to the functions of the script that it is in now, a few milliseconds later: as good a
 * sample of the step.
 */
void stacks__sample(struct stacks *stacks, const struct fbt_stack_place *place, bool is_present,
		    uint64_t now_ns, struct stack_codes *codes);

/*
 * The innermost function with a name on the stack of a place and its callers, up to the step's
 * function, each by its begin: max codes, of functions with names; those that are not there are 0.
 */
void stacks__functions(struct stacks *stacks, const struct fbt_stack_place *place, uint64_t now_ns,
		       uint32_t *codes, uint32_t max);

/* The process has ended, or runs another program. */
void stacks__forget(struct stacks *stacks, uint32_t tgid);

#endif
