/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The system calls that are made on the way from a diverted thread to a working shim: by the stub
 * (cupti/stub), by glibc's pthread_create, dlopen and end of a thread, by the shim and what it
 * needs of CUPTI. As strace shows them, with arguments as a filter may ask for them.
 */
#ifndef FBT_INJECT_CALLS_H
#define FBT_INJECT_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* What it means that a filter answers the call with an error. */
enum inject_need {
	INJECT_NEEDED,	/* that the shim, or the thread, is in trouble */
	INJECT_IGNORED, /* nothing: nobody looks at the answer, or there is another way */
	INJECT_OR_NEXT, /* with any error: that the next one of the list is made instead */
	INJECT_OR_NEXT_IF_ENOSYS,
	INJECT_OR_NEXT_IF_EINVAL,
};

struct inject_call {
	const char *name;
	uint32_t nr;
	enum inject_need need;
	uint64_t args[6];
};

const struct inject_call *inject_calls(size_t *count);

#endif
