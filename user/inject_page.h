/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The page that the helper thread shares with us (struct fbt_inject_page), and its library. */
#ifndef FBT_INJECT_PAGE_H
#define FBT_INJECT_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include "fbt_inject.h"
#include "inject_point.h"

struct inject_page;

/* What is to be loaded. */
struct inject_library {
	const void *bytes;
	size_t size;
	const char *entry; /* function to call; NULL: none */
};

/* What became of it. */
struct inject_answer {
	enum fbt_inject_stage stage;
	int result;
	char text[512]; /* dlerror's, the target's own text */
};

/*
 * Looks once for the page of that token in the files of the process: 0, -ENOENT it is not there
 * (yet), -EBADMSG what is there is no such page, -ESRCH, -errno. Opens nothing that is not shared
 * memory of the kernel's own.
 */
int inject_page__open(struct inject_page **page, uint32_t tgid, uint32_t thread, uint64_t token);

/*
 * Writes the library and says so. 0, -ETIMEDOUT the helper has given up waiting, -EBADMSG, -errno
 * of the writes: the helper is told not to wait then.
 */
int inject_page__fill(struct inject_page *page, const struct inject_library *library,
		      const struct inject_hook *hook);

/*
 * Waits until deadline_ns (CLOCK_MONOTONIC) for what became of it: 0, -ETIMEDOUT, -EBADMSG; -ESRCH
 * if the process of pidfd has ended meanwhile.
 */
int inject_page__await(struct inject_page *page, int pidfd, uint64_t deadline_ns,
		       struct inject_answer *answer);

void inject_page__free(struct inject_page *page);

#endif
