/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which of the threads of a process goes through the stub, and when it is tried again. */
#ifndef FBT_INJECT_TAKE_H
#define FBT_INJECT_TAKE_H

#include "inject_check.h"
#include "inject_point.h"

struct inject_take {
	const struct inject_target *target; /* its stub is written */
	uint32_t tid;			    /* only this thread; 0: whichever is best */
	uint32_t nonce;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	const struct inject_hook *hook;
};

struct inject_taken {
	uint32_t tid; /* the last that was stopped; 0: none */
	uint32_t nr;  /* its call */
	uint32_t tries;
	uint64_t begin_ns; /* of the first stop */
	uint64_t stop_ns;  /* of the last one, how long */
	char text[INJECT_TEXT_MAX];
};

/*
 * Sends one thread through the stub. One that could not be taken is let be for a while, and a worse
 * one is tried only after several times. 0; -EAGAIN none until the deadline; -EPERM none may be
 * taken, text says why; -ETIMEDOUT one did not stop, and our process has to end to give it up;
 * -ESRCH the process has ended or is another program; -ENOMEM, …
 */
int inject_take(const struct inject_take *take, struct inject_taken *taken);

/* What it would meet, said in findings: the filters of the first thread are read, nothing else. */
void inject_take_look(const struct inject_target *target, struct inject_verdict *verdict);

#endif
