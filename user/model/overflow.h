/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The processes of a window for which there is no room. */
#ifndef FBT_MODEL_OVERFLOW_H
#define FBT_MODEL_OVERFLOW_H

#include <stdbool.h>
#include <stdint.h>

/* Remembers the processes beyond WINDOW_PROCESSES_MAX, so that each of them is counted once. */
struct overflow;

struct overflow *overflow__new(void); /* NULL: -ENOMEM */
void overflow__free(struct overflow *overflow);

/*
 * start_ns is when the process was announced, 0 if it was not. Returns true if the process is to be
 * counted: it is not known yet, or its PID was reused. If no more processes can be remembered, only
 * announced ones are counted.
 */
bool overflow__add(struct overflow *overflow, uint32_t tgid, uint64_t start_ns);
bool overflow__has(const struct overflow *overflow, uint32_t tgid);

/* A process that is not known has not ended. */
void overflow__end(struct overflow *overflow, uint32_t tgid, uint64_t end_ns);
bool overflow__has_ended(const struct overflow *overflow, uint32_t tgid);

/* Whether one that begins then is another one than that with its number, if there is one. */
bool overflow__is_over(const struct overflow *overflow, uint32_t tgid, uint64_t start_ns);

/* The process is kept from now on. */
void overflow__remove(struct overflow *overflow, uint32_t tgid);

#endif
