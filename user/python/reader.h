/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reads Python functions of threads in a thread of its own: a page of a process may not come for
 * long, because a file system does not answer, or because the process itself is to provide it.
 * Then the tool goes on without.
 */
#ifndef FBT_PYTHON_READER_H
#define FBT_PYTHON_READER_H

#include "python/frames.h"

struct python_reader;

/* Starts no thread yet. NULL: -ENOMEM. */
struct python_reader *python_reader__new(void);
void python_reader__free(struct python_reader *reader);

/*
 * The stack of a thread, which lives until the next call. 0 or the error of python_look__begin or
 * python_look__stack; -EACCES: the memory may not be read; -ETIMEDOUT if it takes longer than
 * 50 ms; -EBUSY while a reading that timed out has not ended; or another -errno.
 */
int python_reader__stack(struct python_reader *reader, uint32_t tgid,
			 const struct python_place *place, uint32_t tid,
			 const struct python_stack **stack);

/*
 * The thread that has the GIL for which a thread waits, as the process knows it; 0: it is not
 * known. Both IDs of threads are those of the PID namespace of the process.
 */
uint32_t python_reader__holder(struct python_reader *reader, uint32_t tgid,
			       const struct python_place *place, uint32_t waiter);

#endif
