/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Names what a function jumps to when it leaves: other functions, stubs of the PLT, the GOT. */
#ifndef FBT_STEPS_TAILS_H
#define FBT_STEPS_TAILS_H

#include "code/exits.h"
#include "steps/image.h"

/*
 * The demangled name of the function that a jump leads to; of one in another file, the name by
 * which the dynamic linker looks for it. Of a function without a name, "0x1234". NULL if it is not
 * known, or without memory. The caller frees.
 */
char *tail_name(const struct image *image, const struct exit_tail *tail);

/* The entry of the GOT that the stub at address jumps through; 0: it is no stub. */
uint64_t tail_slot(const struct image *image, uint64_t address);

#endif
