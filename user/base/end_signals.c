/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/end_signals.h"

#include <stddef.h>
#include <time.h>

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
#define ENDS (sizeof(ends) / sizeof(ends[0]))

void end_signals_hold(sigset_t *before)
{
	struct sigaction action;
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < ENDS; i++) {
		/* Under nohup SIGHUP is ignored; a blocked signal would be pending all the same. */
		if (!sigaction(ends[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&signals, ends[i]);
	}
	sigprocmask(SIG_BLOCK, &signals, before);
}

bool end_signals_came(void)
{
	sigset_t pending;

	if (sigpending(&pending))
		return false;
	for (size_t i = 0; i < ENDS; i++) {
		if (sigismember(&pending, ends[i]) == 1)
			return true;
	}
	return false;
}

void end_signals_release(const sigset_t *before)
{
	const struct timespec now = {0};
	sigset_t ours;

	sigemptyset(&ours);
	for (size_t i = 0; i < ENDS; i++) {
		if (sigismember(before, ends[i]) == 0)
			sigaddset(&ours, ends[i]);
	}
	while (sigtimedwait(&ours, NULL, &now) > 0)
		;
	sigprocmask(SIG_SETMASK, before, NULL);
}
