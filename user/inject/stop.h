/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Stops one thread that waits in a system call, for a moment (ptrace(2): SEIZE, INTERRUPT), and
 * lets it continue, either in its call or through the stub. x86-64 only; elsewhere -ENOSYS.
 */
#ifndef FBT_INJECT_STOP_H
#define FBT_INJECT_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>
#include "inject/point.h"
#include "inject/thread.h"

struct inject_stop;

/*
 * Stops the thread. On success the caller calls inject_stop__let_go. 0; -EAGAIN: the thread is no
 * longer where it was, or a signal or another stop came first; it has been released, try again
 * later; -EPERM; -ESRCH; -ETIMEDOUT: the thread does not stop (its cgroup is frozen), and the
 * request stays pending until our process ends.
 */
int inject_stop__take(struct inject_stop **stop, const struct inject_thread *thread,
		      const struct inject_hook *hook);

/*
 * Sets the registers (see fbt_inject.h) so that the thread goes through the stub after
 * inject_stop__let_go. 0; -EAGAIN: a signal is pending for the thread, or the stub is gone (the
 * process has called execve).
 */
int inject_stop__divert(struct inject_stop *stop, uint64_t stub, const uint8_t *bytes,
			uint32_t nonce);

/* Detaches. A thread that was not diverted continues its call, and sees no EINTR from our stop. */
void inject_stop__let_go(struct inject_stop *stop);

/*
 * How long the thread was stopped, and how long it waited for a CPU before it could stop; valid
 * after inject_stop__let_go. On a kernel without schedstat the wait is part of the first.
 */
uint64_t inject_stop__ns(const struct inject_stop *stop);
uint64_t inject_stop__waited_ns(const struct inject_stop *stop);
void inject_stop__free(struct inject_stop *stop);

/* The registers of a thread that is stopped inside a system call. */
#if defined(__x86_64__)

/* enum fbt_inject_class, or -EAGAIN: the kernel does not restart the call. */
int inject_regs_class(const struct user_regs_struct *regs);

/*
 * Whether the thread waits where it waited when it was chosen. It may have returned and made the
 * same call again, so only the arguments that decide its rank are compared.
 */
bool inject_regs_are_same(const struct user_regs_struct *regs, const struct inject_thread *thread);

/*
 * Changes the registers so that they send the thread through the stub. 0; or -EAGAIN, and nothing
 * is changed.
 */
int inject_regs_divert(struct user_regs_struct *regs, uint64_t stub, uint32_t nonce);

/*
 * Turns an EINTR that only our stop has caused into a restart. If a handler runs, the kernel turns
 * it back into EINTR. nr: the call that the thread was chosen for. true: regs were changed.
 */
bool inject_regs_hide(struct user_regs_struct *regs, uint64_t nr);

#endif

#endif
