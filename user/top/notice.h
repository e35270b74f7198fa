/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The line at the bottom of a page that tells something for some seconds: the answer to a key, or a
 * message (log.h). A message that is not an error does not replace an answer: it can be read on the
 * page of `w` as well, and the answer nowhere else. Times are CLOCK_MONOTONIC.
 */
#ifndef FBT_TOP_NOTICE_H
#define FBT_TOP_NOTICE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/log.h"

/* Zeroed: there is none. */
struct notice {
	char text[512]; /* empty: there is none */
	bool answers;
	uint64_t until_ns;
};

void notice_answer(struct notice *notice, uint64_t now_ns, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

/* Whether the message is shown. */
bool notice_message(struct notice *notice, uint64_t now_ns, enum log_level level,
		    const char *message);

/* Takes a notice away whose time is over; whether it did. */
bool notice_turn(struct notice *notice, uint64_t now_ns);

#endif
