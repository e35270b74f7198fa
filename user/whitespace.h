/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* White space as Rust's str::trim sees it: the characters with Unicode's White_Space property. */
#ifndef FBT_WHITESPACE_H
#define FBT_WHITESPACE_H

#include <stdbool.h>
#include <stddef.h>

/* Narrows *text and *size to what is left without the white space at both ends. */
void whitespace_trim(const char **text, size_t *size);

/* Nothing but white space, or nothing at all. */
bool whitespace_only(const char *text, size_t size);

#endif
