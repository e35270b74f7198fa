/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Writing with a time limit, to a pipe, a terminal or a socket that nobody may read. */
#ifndef FBT_BASE_TIMED_WRITE_H
#define FBT_BASE_TIMED_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The longest that a blocked output delays a window. The libraries in traced processes take a tool
 * that they have not heard of for 3 s for dead.
 */
#define TIMED_WRITE_WINDOW_NS 2500000000ull
#define TIMED_WRITE_NO_LIMIT  UINT64_MAX

/* Whether a write to fd can wait for a reader. */
bool timed_write_may_block(int fd);

/* Whether the signals that end a window are blocked (loop.h): they do not end a wait then. */
bool timed_write_in_window(void);

/*
 * Writes all of data to fd, which may wait for a reader, or what it takes until it has taken
 * nothing for wait_ns; 1 s once a signal has asked for the end. *written is what it took, on
 * failure too. 0, -ETIMEDOUT or -errno of the write.
 */
int timed_write(int fd, const void *data, size_t size, uint64_t wait_ns, size_t *written);

/*
 * A stream that writes so to fd, which it closes, and waits no longer than a window may be held up.
 * NULL: errno tells why.
 */
FILE *timed_write_open(int fd);

#endif
