/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Options of GPU records, and of the trace that torch users open. */
#ifndef FBT_OPTION_GPU_H
#define FBT_OPTION_GPU_H

#include <stdbool.h>
#include <stdint.h>
#include "merge.h"

enum gpu_mode {
	GPU_AUTO,    /* records of processes that have a shim */
	GPU_OFF,     /* no shim is looked for */
	GPU_REQUIRE, /* an error if none of the targets has one that works */
	GPU_INJECT,  /* processes that have none are given one */
};

struct option_gpu {
	enum gpu_mode mode;
	bool rank_given; /* else it is that of the target's environment */
	uint32_t rank;	 /* of distributedInfo in a Kineto trace */
	/* With GPU_INJECT: */
	uint64_t inject_timeout_ns; /* to find a thread that can be taken */
	bool dry_run;		    /* only say what would be done */
};

/* One option: 0, EINVAL (logged), ENOMEM or ARGP_ERR_UNKNOWN. */
int option_parse_gpu(struct option_gpu *options, struct merge_options *merge, int key,
		     const char *arg);

/*
 * Behind the options: checks them and sets what they left open. by_pid: -p alone says what is
 * traced. kineto: the trace is one. 0, or -EINVAL, logged.
 */
int option_complete_gpu(struct option_gpu *options, const struct merge_options *merge, bool by_pid,
			bool kineto);

#endif
