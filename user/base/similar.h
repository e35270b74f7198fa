/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How alike two words are, for what was mistyped. */
#ifndef FBT_BASE_SIMILAR_H
#define FBT_BASE_SIMILAR_H

#include <stddef.h>

/* Longer words are like no other one. */
#define SIMILAR_MAX 64

/*
 * The number of insertions, deletions, replacements and swaps of neighbours that turn one word into
 * the other; SIMILAR_MAX if one of them is longer than that.
 */
size_t similar_distance(const char *a, const char *b);

#endif
