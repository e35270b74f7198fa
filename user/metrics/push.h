/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sends metrics to a collector: OTLP/HTTP with JSON, one request at a time. Each request has all
 * values since the start, so only the newest one waits, and a lost one loses nothing. A failing
 * collector is no error: the failure is logged once, and once more at the end if it lasts. Only
 * finish waits.
 */
#ifndef FBT_METRICS_PUSH_H
#define FBT_METRICS_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "otlp/otlp_endpoint.h"

struct metrics_push;

/* endpoint is borrowed. NULL: -ENOMEM. */
struct metrics_push *metrics_push__new(const struct otlp_endpoint *endpoint);
void metrics_push__free(struct metrics_push *push);

/* body is allocated by malloc, and owned from here on. It replaces one that still waits. */
void metrics_push__set(struct metrics_push *push, char *body, size_t size);

/* Continues sending, without waiting. now_ns: CLOCK_MONOTONIC. */
void metrics_push__poll(struct metrics_push *push, uint64_t now_ns);

/* Whether an answer is waited for: poll often, as each round trip takes a call. */
bool metrics_push__is_sending(const struct metrics_push *push);

/* Waits until the last body is sent, for 5 s at most (1 s if the attempt before failed). */
void metrics_push__finish(struct metrics_push *push);

#endif
