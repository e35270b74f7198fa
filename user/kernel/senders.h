/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Who stops processes by signals (bpf/signals.bpf.c). */
#ifndef FBT_KERNEL_SENDERS_H
#define FBT_KERNEL_SENDERS_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_shared.h"

struct senders;

/* Loads the program. 0, or -errno without a message. */
int senders__new(struct senders **senders);
void senders__free(struct senders *senders); /* detaches */

/*
 * senders__attach: from here on all signals of the machine cost some ns more. 0, or -errno without
 * a message. senders__detach: what was seen stays readable. senders may be NULL.
 */
int senders__attach(struct senders *senders);
void senders__detach(struct senders *senders);

/*
 * The signal that stopped a process which was seen stopped at seen_ns. False: it was sent before
 * senders__attach, it is no signal that stops it, or it is not known. The header is not set.
 */
bool senders__find(const struct senders *senders, uint32_t tgid, uint64_t seen_ns,
		   struct fbt_stop_sender *sender);

#endif
