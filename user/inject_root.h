/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Files as a process sees them, in its own root and mounts; symbolic links are followed there. */
#ifndef FBT_INJECT_ROOT_H
#define FBT_INJECT_ROOT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether there is something of that absolute path; true also where that cannot be told. */
bool inject_root_has(uint32_t tgid, uint32_t thread, const char *path);

/* Whether /proc is mounted there; true also where that cannot be told. */
bool inject_root_has_proc(uint32_t tgid, uint32_t thread);

#endif
