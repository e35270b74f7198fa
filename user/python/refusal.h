/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Why the library of a process cannot be had, or gives no answer, in words. */
#ifndef FBT_PYTHON_REFUSAL_H
#define FBT_PYTHON_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

struct python_guest;

/*
 * err, holder: as python_guest__open gave them. False: there is nothing to say, since the process
 * has no such library.
 */
bool python_refusal_tell(uint32_t tgid, int err, uint32_t holder);

/* err: what became of an order that was waited for until that limit. */
void python_refusal_tell_order(uint32_t tgid, const struct python_guest *guest, int err,
			       uint64_t limit_ns);

#endif
