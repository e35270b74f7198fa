/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The registers of a thread that is stopped inside of a system call: what they say of the call, and
 * what they are changed to. x86-64 only.
 */
#ifndef FBT_INJECT_REGS_H
#define FBT_INJECT_REGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>
#include "inject_thread.h"

#if defined(__x86_64__)

/* enum fbt_inject_class, or -EAGAIN: it is not in a call that is restarted. */
int inject_regs_class(const struct user_regs_struct *regs);

/*
 * Whether it waits where it was looked at. It may have come back since, and wait in such a call
 * anew: of the arguments only those count that it is judged by.
 */
bool inject_regs_are_same(const struct user_regs_struct *regs, const struct inject_thread *thread);

/* To what sends it through the stub (fbt_inject.h): 0, or -EAGAIN and nothing is changed. */
int inject_regs_divert(struct user_regs_struct *regs, uint64_t stub, uint32_t nonce);

/*
 * Takes away an EINTR that is there only because we have stopped the call; the kernel makes one of
 * it again where a handler runs. nr: the call it was chosen for. Whether there is a change.
 */
bool inject_regs_hide(struct user_regs_struct *regs, uint64_t nr);

#endif

#endif
