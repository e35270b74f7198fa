/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* COMMAND: a program that is started stopped, so that it can be traced from its first instruction.
 */
#ifndef FBT_CHILD_H
#define FBT_CHILD_H

#include <sys/types.h>

struct child;

/* Names a library that CUDA loads when a process first uses it. */
#define CHILD_INJECTION "CUDA_INJECTION64_PATH"

/*
 * Forks; the child waits before it calls execvp. injection: what CHILD_INJECTION is set to, unless
 * it is set already; NULL: it is left alone. 0 or -errno, logged.
 */
int child__start(struct child **child, char **command, const char *injection);

/* Its process id. */
pid_t child__pid(const struct child *child);

/* Lets it go. 0, or -errno of its execvp, logged. */
int child__release(struct child *child);

/* Says how it ended, if it has. */
void child__report(const struct child *child);

/* Ends a child that was not released; one that was runs on. */
void child__free(struct child *child);

#endif
