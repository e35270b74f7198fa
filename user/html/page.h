/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The frame of the page: head, style, policy, script. */
#ifndef FBT_HTML_PAGE_H
#define FBT_HTML_PAGE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes the page. data is JSON, whose "<" are written as \u003c, so that no string ends its
 * element. title is escaped. 0, or -ENOMEM if the script's digest could not be had; errors of
 * writing show in ferror(out).
 */
int page_write(FILE *out, const char *title, const char *data, size_t size);

#endif
