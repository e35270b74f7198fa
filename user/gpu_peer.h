/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One traced process and its shim: looks for it, arms it, sends its records on and says how things
 * stand (FBT_EVENT_GPU_STATE) whenever that changes.
 */
#ifndef FBT_GPU_PEER_H
#define FBT_GPU_PEER_H

#include <stdbool.h>
#include "record.h"

struct gpu_peer;

/* output is borrowed. NULL: -ENOMEM. */
struct gpu_peer *gpu_peer__new(uint32_t tgid, const struct record_output *output, uint64_t now_ns);

/* Disarms the shim, waits for nothing and says nothing. */
void gpu_peer__free(struct gpu_peer *peer);

uint32_t gpu_peer__tgid(const struct gpu_peer *peer);

/*
 * Its shim is to be looked for now: gpu_peer__look, which takes the longer the more files it has
 * open. The next time is later by pause_ns and by 100 times what it took.
 */
bool gpu_peer__is_due(const struct gpu_peer *peer, uint64_t now_ns);
void gpu_peer__look(struct gpu_peer *peer, uint64_t now_ns, uint64_t pause_ns);

/* It called execve: what it shared is over, and is looked for anew. */
void gpu_peer__restart(struct gpu_peer *peer, uint64_t now_ns);

/* Sends what has come, and beats. */
void gpu_peer__poll(struct gpu_peer *peer, uint64_t now_ns);

/* The process has ended: sends the rest. */
void gpu_peer__end(struct gpu_peer *peer, uint64_t now_ns);

/* The window ends: disarms; gpu_peer__poll then sends what is left, until gpu_peer__is_settled. */
void gpu_peer__leave(struct gpu_peer *peer, uint64_t now_ns);

/* Nothing comes any more. */
bool gpu_peer__is_settled(const struct gpu_peer *peer);

/* Has been left, and is not settled in time. */
void gpu_peer__give_up(struct gpu_peer *peer, uint64_t now_ns);

/* No shim was found: says so, if it does now what it did not do at the last look: use CUDA. */
void gpu_peer__look_for_cuda(struct gpu_peer *peer, uint64_t now_ns);

/* It was armed at some time. */
bool gpu_peer__was_armed(const struct gpu_peer *peer);

/* It has not been looked for yet, or has not answered. */
bool gpu_peer__is_waiting(const struct gpu_peer *peer);

/* --gpu inject, before the first look: that it lacks a shim is not the end of it. */
void gpu_peer__await_injection(struct gpu_peer *peer);

/*
 * 0: nothing is to be injected; else since when it has been seen to lack a shim. *from_start: it
 * was so when it was first looked at.
 */
uint64_t gpu_peer__lacks_shim(const struct gpu_peer *peer, bool *from_start);

/* One was injected: it is looked for at the next turn. */
void gpu_peer__take_shim(struct gpu_peer *peer, uint64_t now_ns);

/* None will be: says why. */
void gpu_peer__do_without(struct gpu_peer *peer, const char *why, uint64_t now_ns);

/* --gpu off: says that, once. */
void gpu_peer__send_off(struct gpu_peer *peer, uint64_t now_ns);

#endif
