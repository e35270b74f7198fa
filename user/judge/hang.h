/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A step that does not end, in words. Pure. */
#ifndef FBT_JUDGE_HANG_H
#define FBT_JUDGE_HANG_H

#include <stddef.h>
#include "fbt_event.h"
#include "model/window.h"

/* Room for the description; a longer one is cut. */
#define HANG_TEXT_SIZE 512

/*
 * One line: "llama_decode has not returned for 10.0 s on thread 7331 "node" of process 7300: in
 * futex for 9.98 s, lock at 0x7f…". Control characters of names and paths are escaped.
 */
void hang_describe(const struct fbt_hang *hang, const struct window *window,
		   char text[HANG_TEXT_SIZE]);

#endif
