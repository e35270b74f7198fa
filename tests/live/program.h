/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Shared by the programs of the live tests. The first argument of each program is the file to which
 * it writes its own account, as JSON.
 */
#ifndef FBT_TESTS_LIVE_PROGRAM_H
#define FBT_TESTS_LIVE_PROGRAM_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Keeps a function as it is written: neither inlined nor cloned. Declare it first for
 * -Wmissing-prototypes.
 */
#if __has_attribute(noipa)
#define STEP __attribute__((noipa, used))
#else
#define STEP __attribute__((noinline, used))
#endif

/*
 * A statement after the last call of a step, without which that call would become a jump out of the
 * step.
 */
#define STAY() __asm__ volatile("" ::: "memory")

/* Reports that all is in place, and waits for a line on stdin or for its end. */
static inline void wait_for_go(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
}

/*
 * Maps size bytes of a file that a test reads while the program writes them. Existing content
 * stays.
 */
static inline void *map_shared(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *memory = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	close(fd);
	return memory;
}

static inline FILE *open_truth(char **argv)
{
	FILE *truth = argv[1] ? fopen(argv[1], "w") : stdout;

	if (!truth) {
		perror(argv[1]);
		exit(EXIT_FAILURE);
	}
	return truth;
}

static inline long number_at(char **argv, int index, long otherwise)
{
	for (int i = 1; i <= index; i++)
		if (!argv[i])
			return otherwise;
	return strtol(argv[index], NULL, 10);
}

#endif
