/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Starts COMMAND, and brings it to its own first instruction with probes attached. The kernel side
 * stops it twice: where execve returns, when the program and its dynamic loader are mapped; and at
 * the program's entry, when the loader has mapped its libraries. At both stops the caller searches
 * for step functions. Later calls of execve do not stop it. If the tool dies before the last stop
 * is over, a guard process continues the program.
 */
#ifndef FBT_TRACE_COMMAND_H
#define FBT_TRACE_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>
#include "kernel/loader.h"

struct child;
struct launch;

/* The variable that names a library, which CUDA loads when a process first uses CUDA. */
#define CHILD_INJECTION "CUDA_INJECTION64_PATH"

/*
 * Forks. The child waits for child__release before it calls execvp. CHILD_INJECTION is set to
 * injection, unless that is NULL or the variable is set already. 0 or -errno, logged.
 */
int child__start(struct child **child, char **command, const char *injection);

pid_t child__pid(const struct child *child);

/*
 * Lets the child call execvp. 0, or the -errno of execvp, logged: the status is then 127 if the
 * program was not found, else 126.
 */
int child__release(struct child *child);

/* Logs how the child ended, once it has. */
void child__report(struct child *child);

/*
 * The child's exit status, or 128 + the signal that killed it. One that is ending is waited for,
 * for 30 s at most. 0 if it has not ended, and then a line names it.
 */
int child__status(struct child *child);

/* A child that was not released ends; one that was released continues. */
void child__free(struct child *child);

/* From now on tgid is stopped as described above. loader is borrowed. 0 or -errno, logged. */
int launch__new(struct launch **launch, struct loader *loader, uint32_t tgid);
void launch__free(struct launch *launch);

/* Whether the program is at a stop now: search for steps, then call launch__continue. */
bool launch__is_stopped(const struct launch *launch);
void launch__continue(struct launch *launch);

/* Whether the last stop is over. */
bool launch__is_done(const struct launch *launch);

#endif
