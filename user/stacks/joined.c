/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/joined.h"

#include <string.h>

/* One function for each instruction, which the interpreter calls (3.14, built by some compilers).
 */
#define INSTRUCTION "_TAIL_CALL_"
/* Calls the interpreter through generated code, for perf (3.12). */
#define TRAMPOLINE "py_trampoline_evaluator"

struct joining {
	const struct native_function *natives;
	uint32_t count;
	const struct script_stack *script;
	uint32_t next; /* of the script */
	struct joint *places;
	uint32_t used;
};

static bool is_named(const struct native_function *native, const char *name)
{
	return native->name && !strncmp(native->name, name, strlen(name));
}

static void put(struct joining *joining, bool is_script, uint32_t index)
{
	joining->places[joining->used++] = (struct joint){is_script, index};
}

/* Those that one call of the interpreter runs: up to the one that was called from C. */
static bool put_run(struct joining *joining)
{
	while (joining->next < joining->script->count) {
		uint32_t index = joining->next++;

		put(joining, true, index);
		if (joining->script->frames[index].is_entry)
			return true;
	}
	return false;
}

static bool is_trampoline(const struct joining *joining, uint32_t at)
{
	return at + 1 < joining->count && joining->natives[at].is_generated &&
	       is_named(&joining->natives[at + 1], TRAMPOLINE);
}

uint32_t stacks_join(const struct native_function *natives, uint32_t count, bool is_whole,
		     const struct script_stack *script, struct joint *places)
{
	struct joining joining = {natives, count, script, 0, places, 0};

	for (uint32_t at = 0; at < count; at++) {
		bool is_over = joining.next == script->count;

		if (!script_is_interpreter(natives[at].name)) {
			if (!is_named(&natives[at], INSTRUCTION))
				put(&joining, false, at);
			continue;
		}
		/* Of the outer calls the functions are not known. */
		if (is_over && script->is_partial) {
			put(&joining, false, at);
			continue;
		}
		if (!put_run(&joining) && !script->is_partial)
			return 0;
		at += is_trampoline(&joining, at + 1) ? 2 : 0;
	}
	return is_whole && joining.next < script->count ? 0 : joining.used;
}
