/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Why the library of a process cannot be had, in words. */
#ifndef FBT_PYTHON_REFUSAL_H
#define FBT_PYTHON_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * err, holder: as python_guest__open gave them. False: there is nothing to say, since the process
 * has no such library.
 */
bool python_refusal_tell(uint32_t tgid, int err, uint32_t holder);

#endif
