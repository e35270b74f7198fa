/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The processes that the model has no room for, so that each of them is counted once. */
#ifndef FBT_LEFT_OUT_H
#define FBT_LEFT_OUT_H

#include <stdbool.h>
#include <stdint.h>

struct left_out;

struct left_out *left_out__new(void); /* NULL: -ENOMEM */
void left_out__free(struct left_out *left_out);

/*
 * start_ns is when it was announced, 0 if it was not. True if it is one more: not known yet, or
 * its number was given to another process. Of processes beyond those that can be remembered, only
 * announcements are.
 */
bool left_out__add(struct left_out *left_out, uint32_t tgid, uint64_t start_ns);
bool left_out__has(const struct left_out *left_out, uint32_t tgid);

/* An unknown process has not ended. */
void left_out__end(struct left_out *left_out, uint32_t tgid, uint64_t end_ns);
bool left_out__has_ended(const struct left_out *left_out, uint32_t tgid);

#endif
