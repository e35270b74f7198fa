/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The shim of one traced process: finds it, arms it, forwards its records, and sends a status
 * (FBT_EVENT_GPU_STATE) whenever that changes.
 */
#ifndef FBT_SHIM_PEER_H
#define FBT_SHIM_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include "model/event.h"

struct gpu_peer;

/* output is borrowed. NULL: -ENOMEM. */
struct gpu_peer *gpu_peer__new(uint32_t tgid, const struct record_output *output, uint64_t now_ns);

/* Disarms the shim. Does not wait, and sends nothing. */
void gpu_peer__free(struct gpu_peer *peer);

uint32_t gpu_peer__tgid(const struct gpu_peer *peer);

/*
 * Whether it is time for gpu_peer__look, which searches the open files of the process. The next
 * search is due after pause_ns plus 100 times the duration of this one.
 */
bool gpu_peer__is_due(const struct gpu_peer *peer, uint64_t now_ns);
void gpu_peer__look(struct gpu_peer *peer, uint64_t now_ns, uint64_t pause_ns);

/* The process has called execve: its shim is gone, and a new one is searched for. */
void gpu_peer__restart(struct gpu_peer *peer, uint64_t now_ns);

/* Forwards new records, and tells the shim that the tracer is alive. */
void gpu_peer__poll(struct gpu_peer *peer, uint64_t now_ns);

/* The process has ended: forwards its remaining records. */
void gpu_peer__end(struct gpu_peer *peer, uint64_t now_ns);

/*
 * The window ends: disarms the shim. gpu_peer__poll forwards what is left until
 * gpu_peer__is_settled. If that takes too long, call gpu_peer__give_up.
 */
void gpu_peer__leave(struct gpu_peer *peer, uint64_t now_ns);
bool gpu_peer__is_settled(const struct gpu_peer *peer);
void gpu_peer__give_up(struct gpu_peer *peer, uint64_t now_ns);

/* Sends ABSENT if the process did not use CUDA before and does now. */
void gpu_peer__look_for_cuda(struct gpu_peer *peer, uint64_t now_ns);

/* Whether the shim was armed at any time. */
bool gpu_peer__was_armed(const struct gpu_peer *peer);

/* Whether the first search is still due, or the shim was asked and has not answered. */
bool gpu_peer__is_waiting(const struct gpu_peer *peer);

/* --gpu inject: a process that lacks a shim will be given one. Call before the first look. */
void gpu_peer__await_injection(struct gpu_peer *peer);

/*
 * Since when a process that awaits an injection is known to lack a shim; 0: nothing is to be
 * injected. *from_start: the shim was missing at the first look.
 */
uint64_t gpu_peer__lacks_shim(const struct gpu_peer *peer, bool *from_start);

/* A shim was injected: it is searched for at the next turn. */
void gpu_peer__take_shim(struct gpu_peer *peer, uint64_t now_ns);

/* A shim was injected, but the window has ended: sends STALLED. */
void gpu_peer__miss_shim(struct gpu_peer *peer, uint64_t now_ns);

/* No shim will be injected, for the reason why: sends NOT_INJECTED. */
void gpu_peer__do_without(struct gpu_peer *peer, const char *why, uint64_t now_ns);

/* --gpu off: sends OFF. */
void gpu_peer__send_off(struct gpu_peer *peer, uint64_t now_ns);

/*
 * Logs what a trace of the process would log if gpu_ring__open returned err. Returns the status
 * that the trace would send; -1: none.
 */
int gpu_peer_explain(uint32_t tgid, int err, uint32_t version, uint32_t holder);

#endif
