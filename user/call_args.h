/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a call worked on and how it ended, as the args of its slice in the trace. Pure. */
#ifndef FBT_CALL_ARGS_H
#define FBT_CALL_ARGS_H

#include "fbt_event.h"
#include "json.h"
#include "window.h"

struct call_args {
	struct json_fields fields; /* points into this struct, and to paths of the window */
	char command[24];
	char address[24];
	char operation[24];
};

/*
 * ret and errno, or truncated; with FBT_CALL_ARGS also blocked (if it did), path and fd of its
 * file, cmd of an ioctl, op and uaddr of a futex call, bytes of a call that maps or advises memory
 * (of mremap the old size). Numbers that only mean something to a person are hexadecimal strings.
 */
void call_args_fill(struct call_args *args, const struct window *window,
		    const struct fbt_call *call);

#endif
