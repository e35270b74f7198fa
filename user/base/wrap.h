/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where a line of prose ends. Pure. */
#ifndef FBT_BASE_WRAP_H
#define FBT_BASE_WRAP_H

#include <stddef.h>

/*
 * A long word, such as a path that will be copied, may extend this many columns beyond the prose.
 */
#define WRAP_WORD_MORE 20

/*
 * Bytes of text, which is UTF-8, that go on a line of so many columns: up to a space, which is not
 * among them, or to the end. A number stays with its unit ("7.00 ms", "90 % compute") and its label
 * ("files 7,"), and the words of a command with its options ("ferrum-bpftrace --list-steps -p 7"),
 * if there is another space. A word wider than the line ends it after WRAP_WORD_MORE more columns,
 * or before that after a "::" or "/". At least 1, unless text is "".
 */
size_t wrap_break(const char *text, size_t columns);

#endif
