/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A process's use of CUDA, as /proc shows it: its libraries, and the library that it tells CUDA to
 * load. These functions only return facts; the callers word the messages.
 */
#ifndef FBT_INJECT_CUDA_USE_H
#define FBT_INJECT_CUDA_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/maps.h"

/* Library names start with these: libcuda.so.1, libcuda.so.580.65.06. */
#define CUDA_LIBRARY "libcuda.so"
#define CUDA_SHIM    "libferrum_cupti.so"

/* Size of a path, which the target may have made up. Longer paths are cut. */
#define CUDA_PATH_SIZE 4096

struct broker_order;

/* In the broker: opens a file in a process's root for us (struct broker_task). */
int cuda_use_serve(const void *nothing, const struct broker_order *order);

/*
 * Whether the name of the mapped file starts with name. Also true for a memfd with such a name,
 * which is what an injected shim is.
 */
bool cuda_use_is_library(const struct mapping *mapping, const char *name);

/* Whether libcuda is mapped. */
bool cuda_use_is_there(uint32_t tgid);

/* Whether libcuda is mapped, and the shim is not. */
bool cuda_use_lacks_shim(uint32_t tgid);

/*
 * Whether the process was forked by one that has libcuda too, and shows no sign of using CUDA
 * itself. Such a child has inherited its parent's CUDA, and cannot use it.
 */
bool cuda_use_is_inherited(uint32_t tgid);

/* What CUDA_INJECTION64_PATH names in the environment that the process was started with. */
enum cuda_injection {
	CUDA_INJECTION_NONE,
	CUDA_INJECTION_OTHER,	/* another library than the shim */
	CUDA_INJECTION_SHIM,	/* the shim, which CUDA loads when it is first used */
	CUDA_INJECTION_MISSING, /* the shim, but there is no such file */
};
/* path: the value of the variable; "" if it is not set. */
enum cuda_injection cuda_use_injection(uint32_t tgid, char path[CUDA_PATH_SIZE]);

#endif
