/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The memfd that the tool finds (fbt_python.h). */
#ifndef FERRUM_PYTHON_PAGE_H
#define FERRUM_PYTHON_PAGE_H

#include "fbt_python.h"
#include "own_memfd.h"

/* Makes and maps the page. 0 or -errno. */
int python_page_make(struct fbt_python_page **page, struct own_memfd *file);

#endif
