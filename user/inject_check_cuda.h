/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether a process uses CUDA, has the shim, and a CUPTI that can be attached late. */
#ifndef FBT_INJECT_CHECK_CUDA_H
#define FBT_INJECT_CHECK_CUDA_H

#include "inject_maps.h"
#include "inject_verdict.h"

/* Sets present if the shim is there, and then says nothing else. */
void inject_check_cuda(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread,
		       const inject_mapping_vec *maps);

enum inject_cupti { INJECT_CUPTI_UNKNOWN, INJECT_CUPTI_OLD, INJECT_CUPTI_NEW };

/*
 * By the name of its file: whether it is that of CUDA 12.6 or newer. Toolkits name it after year
 * and release ("libcupti.so.2024.3.0" is that of 12.6), wheels after CUDA's major version.
 */
enum inject_cupti inject_cupti_age(const char *name);

#endif
