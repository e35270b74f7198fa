/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The options: the name of each, its text in --help, how its value is read and where the value
 * goes. A new option is a row of option_table.c, a field of struct options and an entry in the man
 * page.
 */
#ifndef FBT_OPTION_TABLE_H
#define FBT_OPTION_TABLE_H

#include "options.h"

/* Where an option is shown. */
enum option_help {
	OPTION_MORE,   /* --help-all only */
	OPTION_COMMON, /* --help too */
};

struct option_row {
	const char *name; /* NULL: text is the title of the rows that follow */
	int letter;	  /* 0: none */
	enum option_help shown;
	const char *value; /* name of its value; NULL: it has none */
	const char *text;
	const char *of; /* the only command that reads it, as watch; NULL: not so */
	/* Reads value into options. 0, -EINVAL, logged, or -ENOMEM. */
	int (*take)(const struct option_row *row, const char *value, struct options *options);
	size_t field; /* field of struct options, and its size */
	size_t size;
	uint64_t unit_ns;  /* unit of a time that has none */
	uint64_t field_ns; /* unit of the field, if it is a time */
	uint64_t min, max; /* limits of the value; for a time in ns */
	const char *const *words;
};

extern const struct option_row option_table[];
extern const size_t option_table_count;

/* Prints what is asked for, "help", "help-all", "usage" or "version", and ends the program. */
_Noreturn void option_help_end(const char *what);

#endif
