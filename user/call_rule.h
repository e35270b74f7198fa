/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What is known of a syscall by its number: which part of a step it is, what its figures mean. */
#ifndef FBT_CALL_RULE_H
#define FBT_CALL_RULE_H

#include <stdint.h>
#include "cause_kind.h"
#include "fbt_event.h"

#define CALL_BY_FILE	  1    /* file I/O or socket I/O: its file says which */
#define CALL_MOVES	  2    /* a positive result is a number of bytes */
#define CALL_WRITES	  4    /* … that were written or sent */
#define CALL_SPANS	  8    /* its second argument is a length of memory */
#define CALL_BREAK	  16   /* brk: what it returns is the end of the heap */
#define CALL_FUTEX	  32   /* its first argument is the address of the lock */
#define CALL_COMMAND	  64   /* ioctl: its second argument is the command */
#define CALL_MAKES_THREAD 128  /* a positive result is a new thread or process */
#define CALL_SIGNAL	  256  /* it returns from a signal handler */
#define CALL_STACK_NEW	  512  /* pthread_create does it before it makes a thread */
#define CALL_STACK_GONE	  1024 /* pthread_join may do it after the end of a thread */

struct call_rule {
	uint8_t cause;	  /* enum cause_kind */
	uint8_t category; /* enum fbt_category */
	uint16_t traits;  /* CALL_* */
};

/* The rules of an architecture's calls by number, FBT_NR_COUNT of them. Static memory. */
const struct call_rule *call_rules(enum fbt_arch arch);

#endif
