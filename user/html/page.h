/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The frame of the pages: head, style, policy, script. */
#ifndef FBT_HTML_PAGE_H
#define FBT_HTML_PAGE_H

#include <stddef.h>
#include <stdio.h>

/* A script that draws a page from its data. Borrowed for good. */
struct page_script {
	const unsigned char *text;
	size_t size;
};

struct page_script page_report_script(void); /* of the report of a window */

/*
 * Writes a page. data is JSON, whose "<" are written as \u003c, so that no string ends its
 * element. title is escaped. 0, or -ENOMEM if the script's digest could not be had; errors of
 * writing show in ferror(out).
 */
int page_write(FILE *out, const char *title, const struct page_script *with, const char *data,
	       size_t size);

#endif
