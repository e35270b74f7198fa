/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Says once, in the log, why a process has no GPU records, and what can be done. */
#ifndef FBT_GPU_NOTICE_H
#define FBT_GPU_NOTICE_H

#include "fbt_gpu.h"

/*
 * One line, or none for what is as it should be. detail is the target's own text, or "". Of what is
 * no problem (no shim) only with -v or at the usual level; of a problem a warning.
 */
void gpu_notice_log(const struct fbt_gpu_state *state, const char *detail);

#endif
