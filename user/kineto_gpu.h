/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * GPU records in a Kineto trace: calls, work, syncs and overhead, the arrows between them, and what
 * is known of devices.
 *
 * A device is the pid of its work, as in Kineto; those of a second process in the file are
 * 5,000,000 + 1,000 * index + device, above all process ids. Correlations of a second process are
 * moved up by 2^32 * index.
 */
#ifndef FBT_KINETO_GPU_H
#define FBT_KINETO_GPU_H

#include "gpu_step.h"
#include "kineto_file.h"

struct kineto_gpu;

struct kineto_gpu *kineto_gpu__new(void); /* NULL: -ENOMEM */
void kineto_gpu__free(struct kineto_gpu *gpu);

/* step is the one written last, all 0 if there was none. 0 or -ENOMEM. */
int kineto_gpu__write(struct kineto_gpu *gpu, struct kineto_file *file, const struct window *window,
		      const struct gpu_batch *batch, const struct fbt_step *step);

/* deviceProperties and versions: members of the outer object, behind the events. */
void kineto_gpu__end(const struct kineto_gpu *gpu, struct kineto_file *file,
		     const struct window *window);

#endif
