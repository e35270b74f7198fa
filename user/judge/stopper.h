/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Who stopped a thread, in words. Pure. */
#ifndef FBT_JUDGE_STOPPER_H
#define FBT_JUDGE_STOPPER_H

#include "base/format.h"
#include "fbt_explain.h"
#include "fbt_look.h"

/* "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"; NULL of any other number. */
const char *stop_signal_name(uint32_t number);

/* "process", "terminal", "tracer", "kernel". */
const char *sender_origin_name(enum fbt_sender_origin origin);

/*
 * " by a tracer: gdb (pid 4711)", " by SIGSTOP from kill (pid 81), started by bash (pid 80)". Names
 * come from other processes: they are not trusted. sender: header.type 0: it is not known.
 */
void stopper_add(struct line *line, const struct fbt_stop *stop,
		 const struct fbt_stop_sender *sender);

#endif
