/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Shared by the fuzz targets. Input is a string of bytes that is consumed from its front. */
#ifndef FBT_FUZZ_H
#define FBT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A condition that must hold and that no sanitizer checks. */
#define fuzz_check(condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fuzz_stop(#condition, __FILE__, __LINE__);                                 \
	} while (0)

__attribute__((noreturn, unused)) static inline void fuzz_stop(const char *condition,
							       const char *file, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
	abort();
}

/* A copy of exactly that size, 16-byte aligned, so that ASan sees reads beyond it. */
__attribute__((unused)) static inline void *fuzz_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	fuzz_check(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

/* The same with a NUL after it. */
__attribute__((unused)) static inline char *fuzz_text(const void *data, size_t size)
{
	char *text = malloc(size + 1);

	fuzz_check(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* A descriptor of a file that holds the input. */
__attribute__((unused)) static inline int fuzz_file(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	fuzz_check(fd >= 0);
	fuzz_check(!size || pwrite(fd, data, size, 0) == (ssize_t)size);
	return fd;
}

#endif
