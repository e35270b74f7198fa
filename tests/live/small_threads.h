/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Thousands of threads with small stacks, for some live tests. */
#ifndef FBT_TESTS_LIVE_SMALL_THREADS_H
#define FBT_TESTS_LIVE_SMALL_THREADS_H

#include <pthread.h>
#include <stdlib.h>

/*
 * members: count structs of size bytes that begin with a pthread_t. run gets its own struct.
 * Returns how many threads could be started.
 */
static inline long start_small_threads(void *members, size_t size, long count, void *(*run)(void *))
{
	pthread_attr_t small;
	long made = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (; made < count; made++) {
		void *member = (char *)members + (size_t)made * size;
		pthread_t thread;

		if (pthread_create(&thread, &small, run, member))
			break;
		*(pthread_t *)member = thread;
	}
	pthread_attr_destroy(&small);
	return made;
}

/* Runs count threads at once. Returns after all have ended; the result is how many there were. */
static inline long run_small_threads(long count, void *(*run)(void *))
{
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	long made = threads ? start_small_threads(threads, sizeof(*threads), count, run) : 0;

	for (long i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return made;
}

#endif
