/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One thread that waits in a system call, stopped for a moment (ptrace(2): SEIZE, INTERRUPT), and
 * let go again either as if nothing had been or on its way through the stub. x86-64 only: elsewhere
 * -ENOSYS.
 */
#ifndef FBT_INJECT_STOP_H
#define FBT_INJECT_STOP_H

#include "inject_point.h"
#include "inject_thread.h"

struct inject_stop;

/*
 * Stops it. 0; -EAGAIN: it is not as it was looked at any more, or a signal or a stop came between:
 * it has been let go, try again later; -EPERM, -ESRCH. The caller lets go. -ETIMEDOUT: it does not
 * stop (its group is frozen): asked to it stays, until our process ends.
 */
int inject_stop__take(struct inject_stop **stop, const struct inject_thread *thread,
		      const struct inject_hook *hook);

/*
 * Registers as in fbt_inject.h. 0: after inject_stop__let_go it goes through the stub; -EAGAIN: a
 * signal waits for it, or what is at stub is not the stub (the process has called execve).
 */
int inject_stop__divert(struct inject_stop *stop, uint64_t stub, const uint8_t *bytes,
			uint32_t nonce);

/* Detaches; where it was not diverted its call goes on, without an EINTR that it did not have. */
void inject_stop__let_go(struct inject_stop *stop);

/* How long it was stopped, in ns; what is known of it after it was let go. */
uint64_t inject_stop__ns(const struct inject_stop *stop);
void inject_stop__free(struct inject_stop *stop);

#endif
