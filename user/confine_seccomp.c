/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "confine_seccomp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* Below the size from which malloc takes pages of their own. */
#define RESERVE_PIECE_BYTES (64u << 10)
#define RESERVE_PIECES	    16

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/*
 * Sees to it that malloc has at hand what libseccomp takes (some 100 KiB): where that finds no
 * memory it crashes, goes round for ever, or makes a filter that kills. What is returned is to be
 * freed afterwards: it keeps the end of the heap, and with it the rest, from being given back.
 */
static void *reserve_memory(void)
{
	void *pieces[RESERVE_PIECES], *end = NULL;
	size_t count = 0;

	while (count < RESERVE_PIECES && (pieces[count] = malloc(RESERVE_PIECE_BYTES)))
		count++;
	if (count == RESERVE_PIECES)
		end = malloc(RESERVE_PIECE_BYTES);
	while (count)
		free(pieces[--count]);
	return end;
}

static bool is_possible(void)
{
	return !SANITIZED && (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 || errno != EINVAL);
}

int confine_seccomp_load(uint32_t otherwise, int (*fill)(scmp_filter_ctx filter, const void *ctx),
			 const void *ctx)
{
	scmp_filter_ctx filter;
	void *reserve;
	int err;

	if (!is_possible())
		return -ENOSYS;
	reserve = reserve_memory();
	filter = reserve ? seccomp_init(otherwise) : NULL;
	if (!filter) {
		free(reserve);
		return -ENOMEM;
	}
	err = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!err)
		err = fill(filter, ctx);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	free(reserve);
	return err;
}
