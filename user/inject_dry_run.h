/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* --gpu inject --dry-run: whether the shim can be put into processes, and why not. */
#ifndef FBT_INJECT_DRY_RUN_H
#define FBT_INJECT_DRY_RUN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Prints the verdict of each. 0 if it would be done to all that have no shim yet; -EPERM if one is
 * refused, -ENOENT (logged) if there is no shim to inject, -ESRCH and others, logged, of a process
 * that cannot be looked at. It goes on to the next one after each.
 */
int inject_dry_run(const uint32_t *pids, size_t count, FILE *out);

#endif
