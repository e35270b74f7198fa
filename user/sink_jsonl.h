/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The profile: JSON Lines in the seed's locked envelope (ferrum-bench-core profile.rs). */
#ifndef FBT_SINK_JSONL_H
#define FBT_SINK_JSONL_H

#include "metadata.h"
#include "sink.h"

/* One write(2) a line to fd, which stays the caller's; metadata is borrowed. NULL: -ENOMEM. */
struct sink *sink_jsonl__new(int fd, const struct metadata *metadata);

#endif
