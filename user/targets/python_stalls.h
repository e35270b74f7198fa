/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What CPython keeps its threads from, in processes that run it: waits for the GIL are told apart
 * by their addresses, and collections by probes on the interpreter. Nothing is loaded into a
 * process.
 */
#ifndef FBT_TARGETS_PYTHON_STALLS_H
#define FBT_TARGETS_PYTHON_STALLS_H

#include "python/frames.h"
#include "targets/live.h"

struct python_stalls;

/* live is borrowed; its loader must be open until stalls is freed. NULL: -ENOMEM. */
struct python_stalls *python_stalls__new(const struct live *live);
void python_stalls__free(struct python_stalls *stalls);

/* Looks for an interpreter in a process, unless one was found there. 0 or -ENOMEM. */
int python_stalls__search(struct python_stalls *stalls, uint32_t tgid);

/*
 * Begins to measure in a process with an interpreter. all: with links for all processes;
 * tgid_limit: else the process to limit a link to; 0: none. A failure is told by the report.
 */
void python_stalls__attach(struct python_stalls *stalls, uint32_t tgid, bool all,
			   uint32_t tgid_limit);

/* The user is told what libferrum_python.so would find in the process: so does the report. */
void python_stalls__note_offer(struct python_stalls *stalls, uint32_t tgid);

/*
 * Sends what is measured where, if that has changed, and ends the probes of interpreters that
 * collect too often, and of files that are written anew in place. Call after the window's first
 * record, every few milliseconds.
 */
void python_stalls__turn(struct python_stalls *stalls, uint64_t now_ns);

/* What the probes of collections have cost in the window: sets collections and collection_ns. */
void python_stalls__charge(const struct python_stalls *stalls, struct fbt_cost *cost);

/* Where the interpreter of a process lies. False: it has none that is known. */
bool python_stalls__place(struct python_stalls *stalls, uint32_t tgid, struct python_place *place);

/* Whether a futex at that address is one for the GIL of the process. */
bool python_stalls__is_gil(struct python_stalls *stalls, uint32_t tgid, uint64_t address);

/* The process has ended, or runs another program. */
void python_stalls__forget(struct python_stalls *stalls, uint32_t tgid);

#endif
