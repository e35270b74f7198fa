/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_metrics.h"

#include <string.h>

bool gpu_name_is_comm(const char *name)
{
	return !strncmp(name, "nccl", 4) || strstr(name, "ncclKernel") ||
	       strstr(name, "ncclDevKernel");
}
