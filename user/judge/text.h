/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Causes in words, as all outputs show them. Pure. */
#ifndef FBT_JUDGE_TEXT_H
#define FBT_JUDGE_TEXT_H

#include <stdint.h>
#include "base/format.h"
#include "judge/cause.h"
#include "judge/verdict.h"

/* Room for a cause's evidence; a longer one is cut. */
#define EVIDENCE_SIZE 1024

/*
 * One line of evidence: "futex 291 ms (usually 0.10 ms), 3 of 12 calls blocked, lock at 0x7f…". Cut
 * at size (at least 1), NUL included, to whole characters; control characters of paths are escaped.
 */
void cause_describe(const struct cause *cause, const struct window *window, char *text,
		    size_t size);

/* Whether that line names the thread that held the lock, or who stopped the process. */
bool cause_names_culprit(const struct cause *cause);

#endif
