/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Writing to what may not take it: a pipe, a terminal or a socket that nobody reads. */
#ifndef FBT_PATIENT_H
#define FBT_PATIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How long a window is held up by an output that takes nothing. */
#define PATIENT_WINDOW_NS 5000000000ull
#define PATIENT_FOR_EVER  UINT64_MAX

/* Whether a write to fd can wait for a reader. */
bool patient_may_wait(int fd);

/* Whether the signals that end a window are held back (loop.h): no wait is ended by one then. */
bool patient_in_window(void);

/*
 * Writes all of data to fd, which may wait for a reader, or what it takes until it has taken
 * nothing for wait_ns; 1 s once a signal has asked for the end. *written is what it took, on
 * failure too. 0, -ETIMEDOUT or -errno of the write.
 */
int patient_write(int fd, const void *data, size_t size, uint64_t wait_ns, size_t *written);

/*
 * A stream that writes so to fd, which it closes, and waits no longer than a window may be held up.
 * NULL: errno tells why.
 */
FILE *patient_open(int fd);

#endif
