/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A library for LD_PRELOAD: allocation number FAIL_AT (from 1) fails, and so do the FAIL_COUNT - 1
 * after it. Without FAIL_AT, the number of allocations is written to FAIL_COUNT_TO at the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static unsigned long number, fail_at, fail_count = 1;
static int count_to = -1;

/* Opened at once, because the program may drop its right to open files. */
__attribute__((constructor)) static void read_environment(void)
{
	const char *at = getenv("FAIL_AT"), *count = getenv("FAIL_COUNT");
	const char *path = getenv("FAIL_COUNT_TO");

	fail_at = at ? strtoul(at, NULL, 10) : 0;
	fail_count = count ? strtoul(count, NULL, 10) : 1;
	if (path && !fail_at)
		count_to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	number = 0;
}

__attribute__((destructor)) static void write_count(void)
{
	if (count_to >= 0)
		dprintf(count_to, "%lu\n", number);
}

/* If libseccomp runs out of memory half way, it crashes or makes filters that kill. */
static int is_spared(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libseccomp");
}

static int fails(const void *caller)
{
	unsigned long now = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);

	if (!fail_at || now < fail_at || now - fail_at >= fail_count || is_spared(caller))
		return 0;
	errno = ENOMEM;
	return 1;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
	return fails(CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(CALLER) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails(CALLER) ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return fails(CALLER) ? NULL : __libc_realloc(old, bytes);
}
