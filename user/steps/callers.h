/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Finds the calls of step functions in the code of a process before any of them is executed: calls
 * of the entry, of a stub of the PLT that leads there, and through an entry of the GOT; and the
 * same of functions that do nothing but jump there in the end. Calls through other pointers cannot
 * be found this way. x86-64 only.
 */
#ifndef FBT_STEPS_CALLERS_H
#define FBT_STEPS_CALLERS_H

#include "base/clock.h"
#include "base/vec.h"
#include "steps/resolve.h"
#include "steps/site.h"

/* Most CPU time for one search, and most code that is read. */
#define CALLERS_CPU_NS	  (300 * NS_PER_MS)
#define CALLERS_BYTES_MAX (UINT64_C(1) << 30)

struct caller {
	uint32_t function; /* index in what callers_find() was given */
	/* The file of the caller, as maps names it, and the file offset of the return address. */
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint64_t offset;
	struct step_site site;
};

typedef VEC(struct caller) caller_vec;

struct callers_limits {
	uint32_t each;	    /* a function with more callers than this has none in the result */
	uint64_t cpu_ns;    /* CALLERS_CPU_NS */
	uint64_t bytes_max; /* CALLERS_BYTES_MAX */
};

/*
 * Finds the callers of count functions in the mapped files of process tgid: first in the files of
 * the functions, then in those whose GOT has their entries. Appends them. *left_out gets a bit for
 * each of the first 64 functions whose callers are not all in the result. 0; or -errno, without a
 * message, and what was found so far. The caller frees the result with callers_clear, also after an
 * error.
 */
int callers_find(caller_vec *callers, uint32_t tgid, const struct step_function *const *functions,
		 size_t count, const struct callers_limits *limits, uint64_t *left_out);
void callers_clear(caller_vec *callers);

#endif
