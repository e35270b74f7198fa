/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Chooses the thread that is sent through the stub, and retries until one is. */
#ifndef FBT_INJECT_TAKE_H
#define FBT_INJECT_TAKE_H

#include "inject/check.h"
#include "inject/point.h"

struct inject_take {
	const struct inject_target *target; /* its stub has been written */
	uint32_t tid;			    /* only this thread; 0: the best one */
	uint32_t nonce;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	const struct inject_hook *hook;
};

struct inject_taken {
	uint32_t tid; /* the last thread that was stopped; 0: none */
	uint32_t nr;  /* its call */
	uint32_t tries;
	uint64_t begin_ns; /* when the first stop began */
	uint64_t stop_ns;  /* how long the last stop took */
	uint64_t wait_ns;  /* how long that thread waited for a CPU before it could stop */
	char text[INJECT_TEXT_MAX];
};

/*
 * Sends one thread through the stub. A thread that could not be taken is left alone for a while. A
 * thread of a worse rank is tried only after several failures.
 *
 * 0; -EAGAIN no thread could be taken before the deadline; -EPERM no thread may be taken, text says
 * why; -ETIMEDOUT a thread did not stop, and the request stays pending until our process ends;
 * -ESRCH the process has ended or called execve; -ENOMEM, …
 */
int inject_take(const struct inject_take *take, struct inject_taken *taken);

/* --dry-run: adds findings. Stops the best thread, but only to read its seccomp filters. */
void inject_take_look(const struct inject_target *target, struct inject_verdict *verdict);

#endif
