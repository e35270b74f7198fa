/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where the shim is installed, and how an engine is told to load it. */
#ifndef FBT_GPU_SHIM_H
#define FBT_GPU_SHIM_H

#include <stdio.h>

/* What to say where gpu_shim_path finds none. */
#define GPU_SHIM_MISSING                                                                           \
	"libferrum_cupti.so is not beside this program, nor in ../lib/ferrum-bpftrace from "       \
	"there: "                                                                                  \
	"make install puts it there"

/*
 * Path of libferrum_cupti.so: beside the running program, as in the build folder, or in
 * ../lib/ferrum-bpftrace from there. NULL: it is not there, or -ENOMEM. The caller frees.
 */
char *gpu_shim_path(void);

/* The same for the program of that path. */
char *gpu_shim_path_from(const char *program);

/*
 * gpu-env: prints, as shell, systemd, docker and Kubernetes want it, what makes a new server load
 * the shim. 0, or -errno, logged: -ENOENT there is no shim, -EINVAL it is at a path that cannot be
 * quoted in all of them.
 */
int gpu_env_print(FILE *out);

/* The same for a shim of that path. */
int gpu_env_print_for(FILE *out, const char *path);

#endif
