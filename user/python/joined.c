/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/joined.h"

#include <string.h>

#define INTERPRETER "_PyEval_EvalFrameDefault"
/* One function for each instruction, which that calls (3.14, where the compiler can do it). */
#define INSTRUCTION "_TAIL_CALL_"
/* Calls the interpreter through generated code, for perf (3.12). */
#define TRAMPOLINE "py_trampoline_evaluator"

struct joining {
	const struct python_native *natives;
	uint32_t count;
	const struct python_stack *stack;
	uint32_t next; /* of the Python functions */
	struct python_joint *places;
	uint32_t used;
};

/* ".cold", ".part.0", ".llvm.1234", or the "/1" of BOLT. */
bool python_is_interpreter(const char *name)
{
	size_t length = sizeof(INTERPRETER) - 1;

	return name && !strncmp(name, INTERPRETER, length) &&
	       (!name[length] || name[length] == '.' || name[length] == '/');
}

static bool is_named(const struct python_native *native, const char *name)
{
	return native->name && !strncmp(native->name, name, strlen(name));
}

static void put(struct joining *joining, bool is_python, uint32_t index)
{
	joining->places[joining->used++] = (struct python_joint){is_python, index};
}

/* Those that one run of the interpreter has: up to the one that was called from C. */
static bool put_run(struct joining *joining)
{
	const struct python_stack *stack = joining->stack;

	while (joining->next < stack->count) {
		uint32_t index = joining->next++;

		put(joining, true, index);
		if (stack->frames[index].is_entry)
			return true;
	}
	return false;
}

static bool is_trampoline(const struct joining *joining, uint32_t at)
{
	return at + 1 < joining->count && joining->natives[at].is_generated &&
	       is_named(&joining->natives[at + 1], TRAMPOLINE);
}

uint32_t python_join(const struct python_native *natives, uint32_t count, bool is_whole,
		     const struct python_stack *stack, struct python_joint *places)
{
	struct joining joining = {natives, count, stack, 0, places, 0};
	bool is_partial = stack->flags & (PYTHON_STACK_DEEP | PYTHON_STACK_BROKEN);

	for (uint32_t at = 0; at < count; at++) {
		if (!python_is_interpreter(natives[at].name)) {
			if (!is_named(&natives[at], INSTRUCTION))
				put(&joining, false, at);
			continue;
		}
		if (joining.next == stack->count && is_partial) {
			put(&joining, false, at);
			continue;
		}
		if (!put_run(&joining) && !is_partial)
			return 0;
		at += is_trampoline(&joining, at + 1) ? 2 : 0;
	}
	return is_whole && joining.next < stack->count ? 0 : joining.used;
}
