/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Who holds the lock that a thread waits for in futex, by the words of the lock: those of glibc's
 * mutexes and rwlocks, and of futexes with priority inheritance. The words are of an untrusted
 * process. Pure.
 */
#ifndef FBT_LOOK_OWNER_H
#define FBT_LOOK_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The words from the address of the wait on; fewer may be readable. */
#define LOCK_WORDS 6

struct lock_wait {
	uint32_t op;	/* the second argument of futex, whole */
	uint32_t value; /* the third */
	uint32_t words[LOCK_WORDS];
	uint32_t word_count;
	uint32_t holder; /* of an interpreter's lock: who has it, as the interpreter says */
};

/* What the waiter's stack says that it waits for. */
enum lock_caller {
	LOCK_CALLER_OTHER = 0, /* no lock of a thread */
	LOCK_CALLER_LIBC,      /* libc, in a function that it does not name */
	LOCK_CALLER_MUTEX,
	LOCK_CALLER_RWLOCK,
};

struct lock_frame {
	const char *function; /* NULL: no name */
	const char *path;     /* of the file; NULL: none */
};

/* frames: the innermost ones of the waiter, a few. */
enum lock_caller lock_caller_of(const struct lock_frame *frames, size_t count);

/*
 * The thread that holds the lock, as it sees its own ID; 0: nobody is known to. It must still be
 * checked that it is a thread of the process.
 */
uint32_t lock_owner(const struct lock_wait *wait, enum lock_caller caller);

#endif
