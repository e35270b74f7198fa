/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The markers of libferrum_python.so, as its file has them. The process is not believed: a probe
 * acts in all processes that map the file, and one in the middle of an instruction kills them.
 */
#ifndef FBT_PYTHON_MARKERS_H
#define FBT_PYTHON_MARKERS_H

#include <stdint.h>
#include "fbt_python.h"

/* Of one slot. */
struct marker_offsets {
	uint64_t begin;
	uint64_t end;
	uint64_t raised;
};

/*
 * Opens the file in which a process has mapped the markers whose addresses its page tells, and sets
 * their offsets in it. Returns a descriptor, or -errno without a message: -ENOENT they are not in
 * one mapping of code; -EBADMSG the file is not the library, or has its markers elsewhere; -EPERM
 * or -EACCES it may not be opened.
 */
int python_markers_open(uint32_t tgid, unsigned int slot, const struct fbt_python_slot *page,
			struct marker_offsets *offsets);

/* Why not, in words. */
const char *python_markers_text(int err);

#endif
