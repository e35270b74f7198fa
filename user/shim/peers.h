/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The GPU side of a session. struct gpu_link finds the shims of the traced processes, arms them,
 * forwards their records, and sends each process's GPU status (FBT_EVENT_GPU_STATE) at first and
 * whenever it changes. struct gpu_inject (--gpu inject) injects the shim into processes that lack
 * one: one process at a time, and each at most once per window.
 */
#ifndef FBT_SHIM_PEERS_H
#define FBT_SHIM_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "inject/verdict.h"
#include "model/event.h"

enum gpu_mode {
	GPU_AUTO,    /* collect from processes that have a shim */
	GPU_OFF,     /* do not search for shims */
	GPU_REQUIRE, /* fail if no target has a working shim */
	GPU_INJECT,  /* inject the shim into processes that use CUDA without it */
};

struct gpu_link;

/* output is borrowed. NULL: -ENOMEM. */
struct gpu_link *gpu_link__new(enum gpu_mode mode, const struct record_output *output);

/* gpu_link__new, but GPU_INJECT also needs a shim to inject. 0 or -errno, logged except -ENOMEM. */
int gpu_link__open(struct gpu_link **link, enum gpu_mode mode, uint64_t inject_timeout_ns,
		   const struct record_output *output);

/* Disarms all shims; waits only for a running injection. */
void gpu_link__free(struct gpu_link *link);

/*
 * A process comes under trace, or a traced one has called execve. Its shim may appear later, when
 * the process first uses CUDA, so the search is repeated: every 100 ms, or less often if a search
 * takes long or there are many processes (once a second with 80).
 */
void gpu_link__take(struct gpu_link *link, uint32_t tgid, uint64_t now_ns);

/* The process has ended: forwards its remaining records. */
void gpu_link__end(struct gpu_link *link, uint32_t tgid, uint64_t now_ns);

/*
 * Searches for shims (reads /proc), forwards new records, and beats. Call every few milliseconds.
 */
void gpu_link__poll(struct gpu_link *link, uint64_t now_ns);

/* Number of processes whose shim has been armed. */
size_t gpu_link__armed(const struct gpu_link *link);

/* Whether the answer of any shim is awaited. */
bool gpu_link__is_waiting(const struct gpu_link *link);

/*
 * --gpu require: 0; or -ENOENT, logged once: no shim was armed, and no answer is awaited. may_come:
 * a process may still use CUDA for the first time, so 0. 0 in other modes.
 */
int gpu_link__check(struct gpu_link *link, bool may_come);

/*
 * The window ends: disarms all shims, waits at most two seconds for their last records and forwards
 * them, then waits for a running injection.
 */
void gpu_link__finish(struct gpu_link *link);

/*
 * A process that has just loaded libcuda may be in its first CUDA call, which loads libraries and
 * starts threads. Injecting at that moment has not been tried with all drivers, so the injection
 * waits this long. It does not wait if libcuda was there at the first look and the process is older
 * than this.
 */
#define GPU_INJECT_SETTLE_NS 2000000000ull

struct gpu_inject;

struct gpu_injected {
	uint32_t tgid;
	bool loaded;		   /* the shim is in the process */
	char why[INJECT_TEXT_MAX]; /* if it is not: the reason; "": the process is gone */
};

/*
 * shim: its path, allocated by malloc, owned from here on. timeout_ns: to find a thread. NULL:
 * -ENOMEM.
 */
struct gpu_inject *gpu_inject__new(char *shim, uint64_t timeout_ns);

/* Waits for a running injection as inject__free does. */
void gpu_inject__free(struct gpu_inject *inject);

/*
 * Queues a process that has lacked a shim since since_ns. from_start: it already did at the first
 * look. Repeated calls have no effect until gpu_inject__forget.
 */
void gpu_inject__want(struct gpu_inject *inject, uint32_t tgid, uint64_t since_ns, bool from_start);

/* The process has ended or called execve: drops the outcome of its injection. */
void gpu_inject__forget(struct gpu_inject *inject, uint32_t tgid);

/* Starts an injection or polls the running one. true: one has ended, and *injected is set. */
bool gpu_inject__poll(struct gpu_inject *inject, uint64_t now_ns, struct gpu_injected *injected);

/*
 * Starts no further injections; waits for a running one as inject__free does. *injected is its
 * outcome; tgid 0: there was none.
 */
void gpu_inject__finish(struct gpu_inject *inject, struct gpu_injected *injected);

#endif
