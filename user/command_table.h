/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The sub-commands. A new one is a row of command_table.c, a mode of struct options and an entry in
 * the man page: --help and the completion of the shells come from here, and from the rows of
 * options. Values that are called PID, FILE, PATH, BASE or DIR are completed as such, and those of
 * a list of words by these words.
 */
#ifndef FBT_COMMAND_TABLE_H
#define FBT_COMMAND_TABLE_H

#include "options.h"

struct command_row {
	const char *name;
	const char *words; /* what follows the name, as --help shows it: "[PID...]"; "": nothing */
	const char *text;  /* what it does, a few words; NULL: an old name, which is not shown */
	enum options_mode mode;
	bool is_live; /* sets top of struct options */
};

extern const struct command_row command_table[];
extern const size_t command_table_count;

/* NULL: there is none of this name. */
const struct command_row *command_find(const char *name);

#endif
