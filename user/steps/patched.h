/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Code that was changed in memory since it was mapped, as tools do that hook functions: they write
 * a jump over the first instructions. Places for probes are worked out from the file, and the
 * kernel looks at the file too: a probe amid that jump would crash the process.
 */
#ifndef FBT_STEPS_PATCHED_H
#define FBT_STEPS_PATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proc/memory.h"
#include "steps/image.h"
#include "steps/resolve.h"

/* More is not looked at. */
#define PATCHED_BYTES 64
/* Of the instruction that a probe is on: most of it. */
#define PATCHED_PROBED 8

/*
 * Whether code differs from that of its file, of which it has the same architecture. Breakpoints do
 * not count, nor what the kernel makes of a 5-byte nop with a probe on it (Linux 6.18).
 */
bool code_differs(enum fbt_arch arch, const uint8_t *memory, const uint8_t *file, size_t size);

/*
 * The same of size bytes (PATCHED_BYTES at most) at an address of a process, which are at offset in
 * the file fd. false if its memory cannot be read, which takes 0.1 s at most (proc/memory.h).
 */
bool code_is_patched(struct memory *memory, uint32_t tgid, enum fbt_arch arch, uint64_t address,
		     int fd, uint64_t offset, size_t size);

/*
 * As resolve_function(), of a process that maps the image. -EFAULT, with its reason, if the code is
 * patched where the function's probes would be.
 */
int resolve_function_in(struct step_function **result, uint32_t tgid, const struct image *image,
			const struct mapping *mapping, const struct elf_symbol *symbol,
			uint64_t address, bool uretprobe, char reason[RESOLVE_REASON_BYTES]);

#endif
