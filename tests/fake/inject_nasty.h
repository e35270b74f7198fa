/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Threads that repeatedly hold the locks which loading a library needs. */
#ifndef INJECT_NASTY_H
#define INJECT_NASTY_H

#include <dlfcn.h>
#include <sys/wait.h>
#include "inject_worker.h"

static void rest_us(long us)
{
	struct timespec time = {0, us * 1000};

	nanosleep(&time, NULL);
}

static void dlopen_plain(struct worker *w)
{
	static const char *const names[] = {"libresolv.so.2", "libanl.so.1", "libutil.so.1"};
	void *libraries[3];

	for (size_t i = 0; i < 3; i++) {
		libraries[i] = dlopen(names[i], RTLD_NOW);
		if (!libraries[i])
			complain(w, "dlopen", i, 0);
	}
	for (size_t i = 0; i < 3; i++)
		if (libraries[i] && dlclose(libraries[i]))
			complain(w, "dlclose", i, 0);
}

static void malloc_plain(struct worker *w)
{
	uint8_t *blocks[32];
	size_t sizes[32];

	for (size_t i = 0; i < 32; i++) {
		sizes[i] = 1 + random_below(w, random_below(w, 8) ? 2000 : 300000);
		blocks[i] = malloc(sizes[i]);
		if (!blocks[i])
			continue;
		blocks[i][0] = (uint8_t)i;
		blocks[i][sizes[i] - 1] = (uint8_t)i;
	}
	for (size_t i = 0; i < 32; i++) {
		if (blocks[i] && blocks[i][sizes[i] - 1] != i)
			complain(w, "memory", blocks[i][sizes[i] - 1], i);
		free(blocks[i]);
	}
}

static void *give_back(void *arg)
{
	return arg;
}

static void threads_plain(struct worker *w)
{
	void *got = NULL;
	pthread_t thread;
	int err = pthread_create(&thread, NULL, give_back, w);

	expect(w, "pthread_create", (uint64_t)err, 0);
	if (!err && (pthread_join(thread, &got) || got != w))
		complain(w, "pthread_join", (uintptr_t)got, (uintptr_t)w);
}

/* Changes nothing, but glibc sends a signal to every thread and waits for each. */
static void setuid_plain(struct worker *w)
{
	if (setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1))
		complain(w, "setresuid", (uint64_t)errno, 0);
	rest_us(200);
}

static void fork_plain(struct worker *w)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(7);
	if (child < 0)
		complain(w, "fork", (uint64_t)errno, 0);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (child > 0)
		expect(w, "status", (uint64_t)status, 7u << 8);
	rest_us(1000);
}

static const struct kind nasty_kinds[] = {
	{.name = "dlopen", .plain = dlopen_plain},   {.name = "malloc", .plain = malloc_plain},
	{.name = "threads", .plain = threads_plain}, {.name = "setuid", .plain = setuid_plain},
	{.name = "fork", .plain = fork_plain},
};

#endif
