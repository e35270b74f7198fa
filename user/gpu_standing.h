/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How things stand with the shim of a process: said once, and again when that changes. */
#ifndef FBT_GPU_STANDING_H
#define FBT_GPU_STANDING_H

#include <stdbool.h>
#include "fbt_gpu.h"
#include "record.h"

/* A process that changes it for ever is not to fill the log. */
#define GPU_STANDING_LINES 32

struct gpu_standing {
	const struct record_output *output; /* borrowed */
	struct fbt_gpu_state state;	    /* as it was last said; tgid is the caller's */
	bool said;			    /* anything was */
	bool unknown;			    /* that it could not be looked at was logged */
	uint32_t logged;		    /* changes */
	char *library;	   /* path of libcupti as the shim says it; NULL: not known */
	bool injects;	   /* a shim that it lacks will be put into it: ABSENT is not said */
	uint64_t lacks_ns; /* since when it has been seen to lack one; 0: it has not */
	bool lacked;	   /* … and so it was when it was first looked at */
	bool renewed;	   /* it has called execve since */
};

void gpu_standing_clear(struct gpu_standing *standing);

/* Sends that status, unless it was the last one to be said, and logs it, unless many were. */
void gpu_standing_say(struct gpu_standing *standing, enum fbt_gpu_status status, const char *detail,
		      uint64_t time_ns);

/* Keeps what a checked record of the shim tells of CUPTI. */
void gpu_standing_learn(struct gpu_standing *standing, const struct fbt_gpu_state *said);

/* A shim says by it that it will not collect. */
bool gpu_standing_is_refusal(uint32_t status);

/* There is no shim: NOT_CUDA or ABSENT, unless more than that was said already. Reads /proc. */
void gpu_standing_say_absent(struct gpu_standing *standing, uint64_t now_ns);

/* It has called execve: where injects is set, it may lack a shim anew. */
void gpu_standing_renew(struct gpu_standing *standing);

/* It lacks a shim, and nothing else was said of it yet. */
bool gpu_standing_awaits_shim(const struct gpu_standing *standing);

/* What gpu_ring__open said; of a process that is gone nothing. */
void gpu_standing_explain(struct gpu_standing *standing, int err, uint32_t version, uint32_t holder,
			  uint64_t now_ns);

#endif
