/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a window needs of the machine, looked at before the kernel is asked for anything. */
#ifndef FBT_PREFLIGHT_H
#define FBT_PREFLIGHT_H

/*
 * Whether /proc and /sys are there, and file descriptors for a window: where they are missing,
 * others find processes, CPUs or features of the kernel missing, and say so. 0 or -errno, logged.
 */
int preflight_check(void);

#endif
