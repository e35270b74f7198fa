/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The Python functions that threads of CPython are in, read from outside: nothing is stopped, and
 * nothing in the process runs for it. A thread that sleeps in a call is read exactly. One that runs
 * Python code is read again until two readings agree; else only what these have in common is told.
 */
#ifndef FBT_PYTHON_FRAMES_H
#define FBT_PYTHON_FRAMES_H

#include "python/names.h"

/* Functions of a stack that are read; names and paths are cut at their begin. */
#define PYTHON_FRAMES_MAX 64
#define PYTHON_NAME_SIZE  128
#define PYTHON_PATH_SIZE  160

struct python_frame {
	char name[PYTHON_NAME_SIZE]; /* qualified from 3.11: "Engine.step" */
	char path[PYTHON_PATH_SIZE]; /* of its file, as the code has it; or "" */
	uint32_t line;		     /* 0: not known */
	bool is_entry;		     /* it was called from C: one more C call of the interpreter */
};

/* What is not sure. */
#define PYTHON_STACK_MOVED  1 /* the thread went on: what it called last is left out */
#define PYTHON_STACK_DEEP   2 /* there are more functions outside */
#define PYTHON_STACK_BROKEN 4 /* what called the last one could not be read */

struct python_stack {
	struct python_frame frames[PYTHON_FRAMES_MAX]; /* the innermost first */
	uint32_t count;
	uint32_t flags;
};

/* An interpreter in a process. */
struct python_place {
	uint32_t minor;	  /* of 3.minor */
	uint64_t runtime; /* the address of _PyRuntime */
	struct python_types types;
};

struct python_look;

/*
 * Reads which threads the interpreter has. memory must live as long as the look. 0; -ENOTSUP for a
 * build whose structures are not known, as a free-threaded one; -EIO if the memory cannot be read,
 * or there is no interpreter in it (yet); -ENOMEM.
 */
int python_look__begin(struct python_look **look, const struct python_memory *memory,
		       const struct python_place *place);
void python_look__end(struct python_look *look);

/*
 * The stack of a thread by its ID in the PID namespace of the process. 0, with at least one
 * function; -ENOENT if it is no thread of Python's, or runs none; -EAGAIN if that is not sure.
 */
int python_look__stack(struct python_look *look, uint32_t tid, struct python_stack *stack);

/* The thread that has the GIL that a thread waits for. 0: none has it, or it is not known. */
uint32_t python_look__holder(struct python_look *look, uint32_t waiter);

#endif
