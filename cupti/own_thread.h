/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The thread of a library that is a guest in another process. */
#ifndef FERRUM_OWN_THREAD_H
#define FERRUM_OWN_THREAD_H

/*
 * Gives the calling thread the CPUs, the policy and the priority of the process's main thread,
 * where that is allowed: after an injection it has those of an arbitrary thread of the engine,
 * perhaps of one that is pinned to a CPU, or runs only where a CPU is idle. errno may change.
 */
void own_thread_adopt_main(void);

/*
 * Names the calling thread, and lowers its priority by one step. So it comes after the engine's
 * own threads; and when it waits for a CPU, it is not taken for a thread of the engine that has
 * none (bpf/team.bpf.h leaves out threads of lower priority). errno may change.
 */
void own_thread_begin(const char *name);

#endif
