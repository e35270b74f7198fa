/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Puts libferrum_python.so into running interpreters, for --python=inject. */
#ifndef FBT_PYTHON_INJECT_H
#define FBT_PYTHON_INJECT_H

#include <stdint.h>
#include "inject/inject.h"

/*
 * Injects the library at path into a process that runs CPython and lacks it, and waits until it has
 * made its page. Says what was done, or why not; then the process goes on without. 0; -ENOENT it is
 * no Python process, without a message; -EPERM or another -errno, logged.
 */
int python_inject(uint32_t tgid, const char *path, uint64_t timeout_ns);

/* The same in two parts: what inject__start puts into the process, and what became of it. */
struct inject_load python_inject_load(const char *path);
int python_inject_judge(uint32_t tgid, const struct inject_outcome *outcome);

#endif
