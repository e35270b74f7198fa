/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether the limits of a process leave room for a thread, some descriptors and memory. */
#ifndef FBT_INJECT_CHECK_ROOM_H
#define FBT_INJECT_CHECK_ROOM_H

#include "inject_verdict.h"

void inject_check_room(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread);

#endif
