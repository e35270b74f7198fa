/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * IFUNCs: functions for which the program chooses an implementation, when the dynamic linker asks.
 * Which one is known only from the process: its slots of the GOT are bound to it.
 */
#ifndef FBT_STEPS_IFUNC_H
#define FBT_STEPS_IFUNC_H

#include "steps/image.h"

/*
 * Finds the implementation that the process uses, as an address in image, which has the IFUNC and
 * is mapped there. 0; -ENOENT if none was chosen yet, it is in another file, or the memory of the
 * process cannot be read; or -ENOMEM. Without a message.
 */
int ifunc_resolve(uint64_t *address, uint32_t tgid, const struct image *image,
		  const struct mapping *mapping, const struct elf_symbol *ifunc);

/*
 * Writes the names of what the resolver may choose from: functions whose addresses it takes; "" if
 * none is seen. x86-64 only. Returns to.
 */
const char *ifunc_choices(const struct image *image, const struct elf_symbol *ifunc, char *to,
			  size_t size);

#endif
