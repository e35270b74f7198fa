/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The arguments and the environment a process was started with, from /proc (proc(5)). The process
 * can write there what it likes: any bytes, of any length. What it changed by setenv later is not
 * to be seen from outside.
 */
#ifndef FBT_PROCESS_STRINGS_H
#define FBT_PROCESS_STRINGS_H

#include <stddef.h>
#include <stdint.h>

/*
 * More than execve takes by default (2 MiB), and bounds for what a process may claim afterwards
 * (prctl(2), PR_SET_MM).
 */
#define PROCESS_STRINGS_BYTES_MAX (8u << 20)
#define PROCESS_STRINGS_MAX	  (128u << 10)

struct process_strings {
	char **items; /* NULL-terminated */
	size_t count;
	char *text; /* what they point into */
};

/*
 * Reads /proc/TGID/FILE, "cmdline" or "environ". Strings beyond the bounds are left out, one that
 * the bound cuts too. 0; or -errno with a line for -v only, and nothing to clear. A process that is
 * ending may have none left.
 */
int process_strings_read(struct process_strings *strings, uint32_t tgid, const char *file);
void process_strings_clear(struct process_strings *strings);

/*
 * Splits size bytes at each NUL; the last string may lack it. text, from malloc, is taken over,
 * also on failure; it has room for one byte more. 0 or -ENOMEM.
 */
int process_strings_split(struct process_strings *strings, char *text, size_t size);

#endif
