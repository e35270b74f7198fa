/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The memfd that the tool finds (fbt_python.h). */
#ifndef FERRUM_PYTHON_PAGE_H
#define FERRUM_PYTHON_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_python.h"

/* Makes and maps it. Its descriptor, with its device and inode; or -errno. */
int python_page_make(struct fbt_python_page **page, uint64_t *device, uint64_t *inode);

/* Closes the descriptor if it is still that file. */
void python_page_close(int fd, uint64_t device, uint64_t inode);

/* Whether another copy of the library has made one in this process. */
bool python_page_is_here(void);

#endif
