/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where the shim is installed, and the settings that make an engine load it. */
#ifndef FBT_SHIM_LIBRARY_H
#define FBT_SHIM_LIBRARY_H

#include <stdio.h>

/* The message for a shim that gpu_shim_path does not find. */
#define GPU_SHIM_MISSING                                                                           \
	"libferrum_cupti.so is not beside this program, nor in ../lib/ferrum-bpftrace from "       \
	"there: make install puts it there"

/* And for a libferrum_python.so that python_library_path does not find. */
#define PYTHON_LIBRARY_MISSING                                                                     \
	"libferrum_python.so is not beside this program, nor in ../lib/ferrum-bpftrace from "      \
	"there: make install puts it there"

/*
 * The path of libferrum_cupti.so: next to the running program, as in the build folder, or in
 * ../lib/ferrum-bpftrace from there. NULL: not found, or no memory. The caller frees.
 */
char *gpu_shim_path(void);

/* The path of libferrum_python.so, found in the same way. */
char *python_library_path(void);

/* gpu_shim_path for another program. */
char *gpu_shim_path_from(const char *program);

/* What an engine is started with. NULL: not with that one. */
struct engine_libraries {
	const char *shim;
	const char *python;
};

/*
 * engine-env: prints the settings that make a new server load the shim and libferrum_python.so, for
 * a shell, systemd, docker and Kubernetes. 0, or -errno, logged: -ENOENT there is neither; -EINVAL
 * a path cannot be quoted in all of these forms.
 */
int engine_env_print(FILE *out);

/* The same for the libraries at these paths. */
int engine_env_print_for(FILE *out, const struct engine_libraries *libraries);

#endif
