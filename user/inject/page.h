/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The page that the helper thread shares with us (struct fbt_inject_page). Through it the library
 * is handed over and the result comes back.
 */
#ifndef FBT_INJECT_PAGE_H
#define FBT_INJECT_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include "fbt_inject.h"
#include "inject/point.h"
#include "proc/open.h"

struct inject_page;

/* What the helper loads. */
struct inject_library {
	const void *bytes;
	size_t size;
	const char *entry; /* function to call; NULL: none */
};

/* The helper's answer. */
struct inject_answer {
	enum fbt_inject_stage stage;
	int result;
	char text[512]; /* of dlerror; the target may have made it up */
};

/*
 * Searches the open files of the process once for the page with this token. Opens memfds only. 0;
 * -ENOENT the page is not there (yet); -EBADMSG a file has its name but is no such page; -ESRCH;
 * -errno.
 */
int inject_page__open(struct inject_page **page, struct proc_ref process, uint64_t token);

/*
 * Writes the library and wakes the helper. 0; -ETIMEDOUT the helper has given up; -EBADMSG the page
 * was changed; -errno the library could not be written, and the helper was told to give up.
 */
int inject_page__fill(struct inject_page *page, const struct inject_library *library,
		      const struct inject_hook *hook);

/*
 * Waits until deadline_ns (CLOCK_MONOTONIC) for the helper's answer: 0, -ETIMEDOUT, -EBADMSG, or
 * -ESRCH: the process of pidfd has ended.
 */
int inject_page__await(struct inject_page *page, int pidfd, uint64_t deadline_ns,
		       struct inject_answer *answer);

void inject_page__free(struct inject_page *page);

#endif
