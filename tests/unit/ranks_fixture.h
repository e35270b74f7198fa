/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Steps of two functions of an engine's ranks, of which nothing but their times is said. */
#ifndef FBT_RANKS_FIXTURE_H
#define FBT_RANKS_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "model/step.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)

enum { CORE_STEP = 1, EXECUTE = 2, SAMPLE = 3 };

/* On a CPU, with calls known, 1 ms after the step before. */
static inline struct step make_step(uint32_t tgid, uint32_t kind, uint64_t from_ns, uint64_t to_ns)
{
	return (struct step){.number = from_ns / US,
			     .complete = true,
			     .record = {.header.flags = FBT_STEP_CPU_KNOWN,
					.tgid = tgid,
					.tid = tgid,
					.kind = kind,
					.start_ns = from_ns,
					.end_ns = to_ns,
					.thread_ns = to_ns - from_ns,
					.gap_ns = MS,
					.cpu_ns = to_ns - from_ns}};
}

/* The same with a number of tokens. */
static inline struct step make_tokens(uint32_t tgid, uint64_t from_ns, uint64_t to_ns,
				      int64_t tokens)
{
	struct step step = make_step(tgid, EXECUTE, from_ns, to_ns);

	step.record.arg_mask = 1;
	step.record.args[0] = tokens;
	return step;
}

#endif
