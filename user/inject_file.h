/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a thread waits for in a call on a descriptor, and what that does to the call's rank. */
#ifndef FBT_INJECT_FILE_H
#define FBT_INJECT_FILE_H

#include "inject_rank.h"

/*
 * inject_rank_of, but INJECT_RANK_NONE where the descriptor is none that the rank holds for:
 * regular files, terminals, devices, FIFOs with a name; sockets with SO_RCVTIMEO or SO_RCVLOWAT. A
 * socket that we may not ask gets INJECT_RANK_EINTR_TIMED. The descriptor is looked at by its name
 * and, a socket, by a copy of ours for some microseconds: nothing is opened.
 */
enum inject_rank inject_file_rank(uint32_t tgid, uint32_t tid, uint64_t nr, const uint64_t args[6]);

#endif
