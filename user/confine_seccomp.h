/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How a filter of system calls is made and loaded, whatever it lets through. */
#ifndef FBT_CONFINE_SECCOMP_H
#define FBT_CONFINE_SECCOMP_H

#include <seccomp.h>
#include <stdint.h>

/*
 * For this process, for good, and for what it forks or runs; no_new_privs has to be set. fill adds
 * the rules, and returns 0 or -errno; otherwise is done with calls that no rule is about. A call
 * of another architecture (int 0x80) ends the process: there is none that this program makes.
 * 0; -ENOSYS: this build (sanitizers make calls of their own) or kernel has no such filters;
 * -ENOMEM; -errno.
 */
int confine_seccomp_load(uint32_t otherwise, int (*fill)(scmp_filter_ctx filter, const void *ctx),
			 const void *ctx);

#endif
