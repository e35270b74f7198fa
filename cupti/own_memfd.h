/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A memory file in the engine's process, whose descriptor the program may close, and whose number
 * it may use again. Of both libraries.
 */
#ifndef FERRUM_OWN_MEMFD_H
#define FERRUM_OWN_MEMFD_H

#include <stdbool.h>
#include <sys/types.h>

struct own_memfd {
	int fd; /* -1: none */
	dev_t device;
	ino_t inode;
};

/*
 * Makes an empty file that can be sealed and that execve closes. Its number is a high one, because
 * a program may count on the first descriptors that it opens, and never that of a standard stream,
 * which a program may have closed. 0; or -errno, and there is none.
 */
int own_memfd_make(struct own_memfd *file, const char *name);

/* Whether the descriptor is still that file. */
bool own_memfd_is_there(const struct own_memfd *file);

/* Closes the descriptor if it is still that file. */
void own_memfd_close(struct own_memfd *file);

#endif
