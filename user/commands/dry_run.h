/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* --gpu inject --dry-run: whether the shim could be loaded into processes, and why not. */
#ifndef FBT_COMMANDS_DRY_RUN_H
#define FBT_COMMANDS_DRY_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Prints the verdict on each process. True if every process has the shim or would get it. False if
 * one is refused; also, logged, if there is no shim to load or a process cannot be inspected. The
 * others are inspected all the same.
 */
bool inject_dry_run(const uint32_t *pids, size_t count, FILE *out);

#endif
