/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Functions of a script on a stack: the interpreter's own frames say nothing of them, so another
 * part of the tool reads them from the interpreter's memory.
 */
#ifndef FBT_STACKS_SCRIPT_H
#define FBT_STACKS_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function that a thread is in. */
struct script_frame {
	const char *function;
	const char *file;
	uint32_t line;
	bool is_entry; /* it was called from C: the call of the interpreter ends here */
};

/*
 * Reads the functions that a thread is in now, the innermost first: at most max; 0 if there are
 * none, or they cannot be read. ns_tid is the thread's ID in its own PID namespace. Strings live
 * until the next call.
 */
struct script_reader {
	size_t (*read)(void *ctx, uint32_t tgid, uint32_t ns_tid, struct script_frame *frames,
		       size_t max);
	void *ctx;
};

/* Whether a function is the one in which CPython runs functions of Python. NULL is not. */
bool script_is_interpreter(const char *function);

/* A place in a script that was met. */
struct script_name {
	char *function;
	char *file;
	uint32_t line;
	uint32_t id; /* of its fbt_code; 0: not sent yet */
};

struct script_names;
struct script_names *script_names__new(void); /* NULL: -ENOMEM */
void script_names__free(struct script_names *names);

/*
 * The place of a frame, which is added if it is new. It is borrowed until the next call; its
 * strings live as long as names. NULL: more than 16,384, or without memory.
 */
struct script_name *script_names__find(struct script_names *names,
				       const struct script_frame *frame);

#endif
