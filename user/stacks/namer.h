/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Names functions of a recording whose files had no names for them when it was made, by --symbols:
 * the recording has the build-ids and the addresses.
 */
#ifndef FBT_STACKS_NAMER_H
#define FBT_STACKS_NAMER_H

#include "model/event.h"
#include "elf/symbol_files.h"

struct code_namer;

/* What symbols names is borrowed. NULL: -ENOMEM. */
struct code_namer *code_namer__new(const struct symbol_files *symbols);
void code_namer__free(struct code_namer *namer);

/* Passes whole records on, as they are but for the names. 0, or -ENOMEM: some kept their address.
 */
int code_namer__push(struct code_namer *namer, const void *data, size_t size,
		     const struct record_output *output);

/* Logs which of symbols were of no use, and which build-ids were looked for. */
void code_namer__tell(const struct code_namer *namer);

#endif
