/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The options that there are, and what --help says of them. */
#ifndef FBT_OPTION_TABLE_H
#define FBT_OPTION_TABLE_H

#include <argp.h>

/* Options without a letter. */
enum option_key {
	KEY_STEP = 256,
	KEY_STEP_ARG,
	KEY_SYMBOLS,
	KEY_URETPROBE,
	KEY_WAIT_STEP,
	KEY_INTERVAL,
	KEY_LIST_STEPS,
	KEY_DETAIL,
	KEY_RING_RECORDS,
	KEY_TRACE,
	KEY_TRACE_FORMAT,
	KEY_PROFILE,
	KEY_REPORT,
	KEY_RECORD,
	KEY_REPLAY,
	KEY_COMMIT_SHA,
	KEY_ENV_HASH,
	KEY_MODEL,
	KEY_CONCURRENCY,
	KEY_RUNTIME_FLAGS,
	KEY_BPF_STATS,
	KEY_REQUIRE_EVENTS,
	KEY_CV_THRESHOLD,
	KEY_EFFICIENCY_THRESHOLD,
	KEY_GPU_TRANSFER_THRESHOLD,
	KEY_MEMORY_CLIFF_THRESHOLD,
	KEY_RATE_LIMIT,
	KEY_RATE_INTERVAL,
	KEY_CV_WINDOW,
	KEY_BUDGET,
	KEY_CLASS_BY,
	KEY_CONTEXT,
	KEY_ESCALATE_NOW,
	KEY_OTLP,
	KEY_FLAG,
	KEY_DIR,
	KEY_MAX_STEPS,
	KEY_COMPUTE_ENV_HASH,
	KEY_GPU,
	KEY_GPU_STRICT,
	KEY_RANK,
};

/* For struct argp. */
extern const struct argp_option option_table[];
extern const char option_doc[];
extern const char option_args_doc[];

#endif
