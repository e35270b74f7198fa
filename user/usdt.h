/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Probes that an engine's authors put into it: SystemTap notes (.note.stapsdt). */
#ifndef FBT_USDT_H
#define FBT_USDT_H

#include "elf_file.h"
#include "vec.h"

struct usdt_probe {
	VEC(uint64_t) offsets; /* of the file; one for each place it was inlined to */
	uint64_t address;      /* of the first one */
	uint64_t semaphore;    /* file offset, 0 if it has none */
};

/*
 * All places of provider:name. 0 with no offsets if there are none, -EBADMSG for a damaged note
 * section, -ENOMEM; without a message. Free with usdt_clear, on failure too.
 */
int usdt_find(struct elf_file *file, const char *provider, const char *name,
	      struct usdt_probe *probe);
void usdt_clear(struct usdt_probe *probe);

#endif
