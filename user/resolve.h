/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A function of a mapped file to what the loader needs: file offsets of its begin and its exits. */
#ifndef FBT_RESOLVE_H
#define FBT_RESOLVE_H

#include "image.h"
#include "step_function.h"

#define RESOLVE_REASON_BYTES 256

/*
 * Makes a step function of what is at address. symbol is its name, NULL for a nameless one. 0;
 * -ENOTSUP no safe exit, -ENOENT its extent is not known, -ERANGE not code: without a message, with
 * a reason; else -errno.
 */
int resolve_function(struct step_function **function, const struct image *image,
		     const struct elf_symbol *symbol, uint64_t address, bool uretprobe,
		     char reason[RESOLVE_REASON_BYTES]);

#endif
