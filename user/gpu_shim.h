/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where the shim is installed, and how an engine is told to load it. */
#ifndef FBT_GPU_SHIM_H
#define FBT_GPU_SHIM_H

#include <stdio.h>

/*
 * Path of libferrum_cupti.so: beside the running program, as in the build folder, or in
 * ../lib/ferrum-bpftrace from there. NULL: it is not there, or -ENOMEM. The caller frees.
 */
char *gpu_shim_path(void);

/*
 * gpu-env: prints, as shell, systemd, docker and Kubernetes want it, what makes a new server load
 * the shim. 0, or -ENOENT: there is no shim, logged.
 */
int gpu_env_print(FILE *out);

#endif
