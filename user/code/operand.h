/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where a jump through a register or memory finds its target: for the kernel side to look there. */
#ifndef FBT_STEPS_OPERAND_H
#define FBT_STEPS_OPERAND_H

#include <stddef.h>
#include <stdint.h>

/*
 * The operand of the x86-64 jump that code begins with, in the form of FBT_JUMP_*; 0 if it is none
 * or does not fit.
 */
uint32_t jump_operand(const uint8_t *code, size_t size);

#endif
