/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The file of a CPython interpreter, read from outside: where in a process the lock of the
 * interpreter (GIL) lies, and where its garbage collections begin and end. Nothing has to be loaded
 * into the process.
 */
#ifndef FBT_PYTHON_INTERPRETER_H
#define FBT_PYTHON_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "fbt_event.h"
#include "proc/maps.h"
#include "python/frames.h"

/* Where the generation is when a collection begins. */
struct python_generation {
	uint32_t where; /* FBT_GC_* (fbt_shared.h) */
	bool in_memory;
	int32_t offset;
};

struct python_interpreter {
	int fd;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	char *path; /* as the process sees it */
	uint32_t minor;
	uint64_t shift; /* of its code: ELF address minus file offset */
	uint64_t
		address; /* of _PyRuntime, which has the GIL, and its size; 0: it is not exported */
	uint64_t size;
	struct python_types types; /* as in the file; 0: not exported */
	enum fbt_collector collector;
	VEC(uint64_t) begins; /* file offsets */
	VEC(uint64_t) ends;
	uint64_t begin_ref_ctr; /* of a USDT probe */
	uint64_t end_ref_ctr;
	int32_t begin_sp; /* the stack pointer there, minus that at the function's entry */
	struct python_generation generation;
};

/*
 * The mapping of the interpreter's code in a process: that of the program if it exports _PyRuntime,
 * else that of the library, if there is one. The caller frees mapping->path. False, without a
 * message, if there is none.
 */
bool python_mapping_find(uint32_t tgid, struct mapping *mapping);

/*
 * Whether its C library is musl, whose threads do not wait for the GIL at an address in the
 * interpreter's data, but at one on their own stacks.
 */
bool python_is_musl(uint32_t tgid);

/* 0 or -errno, without a message. */
int python_interpreter_open(struct python_interpreter **interpreter, uint32_t tgid,
			    const struct mapping *mapping);
void python_interpreter_free(struct python_interpreter *interpreter);

/* Whether a mapping is of that file. */
bool python_interpreter_is(const struct python_interpreter *interpreter,
			   const struct mapping *mapping);

/* Where _PyRuntime lies in the process with that mapping; 0: not known. */
uint64_t python_interpreter_runtime(const struct python_interpreter *interpreter,
				    const struct mapping *mapping);

/* The same for all that its stacks are read by. False: something is not exported. */
bool python_interpreter_place(const struct python_interpreter *interpreter,
			      const struct mapping *mapping, struct python_place *place);

/*
 * Whether a symbol is the function of that name, also as a compiler names what it has specialised.
 * Not a part of it, as "….cold" is.
 */
bool python_is_collector(const char *symbol, const char *name);

/* The first argument of a USDT probe of x86-64, "-4@112(%rsp)"; FBT_GC_NOWHERE for other forms. */
struct python_generation python_generation_parse(const char *arguments);

#endif
