/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The memfd that the tool finds (fbt_python.h). */
#ifndef FERRUM_PYTHON_PAGE_H
#define FERRUM_PYTHON_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_python.h"

/* A memory file of ours. The program may have closed its descriptor and reused the number. */
struct python_memfd {
	int fd; /* -1: none */
	uint64_t device, inode;
};

/*
 * Makes an empty one that is closed by execve, with a high number: a program may count on the first
 * descriptors that it opens. 0 or -errno.
 */
int python_memfd_make(struct python_memfd *file, const char *name);

/* Closes the descriptor if it is still that file. */
void python_memfd_close(struct python_memfd *file);

/* Makes and maps the page. 0 or -errno. */
int python_page_make(struct fbt_python_page **page, struct python_memfd *file);

/* Whether another copy of the library has made one in this process. */
bool python_page_is_here(void);

#endif
