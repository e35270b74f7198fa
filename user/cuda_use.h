/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether a process that shares no ring uses CUDA, and why it then has no shim. */
#ifndef FBT_CUDA_USE_H
#define FBT_CUDA_USE_H

#include <stdbool.h>
#include <stdint.h>

#define CUDA_USE_DETAIL_SIZE 256

struct broker_order;

/* Where a broker looks for a file in a process's root for us (struct broker_task). */
int cuda_use_serve(const void *nothing, const struct broker_order *order);

/*
 * Reads /proc. true: it has libcuda and not the shim; detail says what was done to load one, which
 * may be nothing. A forked child that has both is not true: CUDA cannot be used there.
 */
bool cuda_use_lacks_shim(uint32_t tgid, char detail[CUDA_USE_DETAIL_SIZE]);

/*
 * Reads /proc. It was forked by a process that has libcuda too, and shows no sign of using CUDA
 * itself: what it has of it is its parent's, and of no use to it.
 */
bool cuda_use_is_inherited(uint32_t tgid);

/* Reads /proc. CUDA is to load a shim that is there (CUDA_INJECTION64_PATH), when it is used. */
bool cuda_use_will_have_shim(uint32_t tgid);

/* Reads /proc. It has libcuda. */
bool cuda_use_is_there(uint32_t tgid);

#endif
