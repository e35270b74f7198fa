/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the embedded engine does in addition to its steps. */
#ifndef FBT_TESTS_ENGINE_BACKGROUND_H
#define FBT_TESTS_ENGINE_BACKGROUND_H

#include "engine_calls.h"

static inline void run_noise(struct worker *w)
{
	struct engine *e = w->engine;

	while (!__atomic_load_n(&e->stop_noise, __ATOMIC_ACQUIRE)) {
		make_calls(w, CAT_OTHER, 2, 0);
		make_calls(w, CAT_WRITE, 1, 0);
		make_calls(w, CAT_FUTEX, 1, 1);
		if (e->config.noise_us > 0)
			sleep_us(w, e->config.noise_us);
	}
}

static inline void run_blocked(struct worker *w)
{
	char byte;

	syscall(SYS_read, w->engine->pipe[0], &byte, 1); /* entered before the go: not counted */
	make_calls(w, CAT_OTHER, 3, 0);
}

static inline void *run_short_thread(void *arg)
{
	long n = *(long *)arg;

	while (n-- > 0)
		syscall(SYS_getppid);
	return NULL;
}

static inline void run_short_threads(struct worker *w)
{
	struct config *c = &w->engine->config;
	pthread_t thread;

	for (long i = 0; i < c->short_threads; i++) {
		if (pthread_create(&thread, NULL, run_short_thread, &c->short_calls) == 0)
			pthread_join(thread, NULL);
		w->calls[SYS_getppid] += (uint64_t)c->short_calls;
	}
}

#endif
