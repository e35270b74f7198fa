/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Prints the tables of options and sub-commands, a row a line, for generate.sh. Fields are
 *separated by tabs:
 *
 *	option NAME LETTER VALUE WORDS TEXT
 *	command NAME WORDS TEXT
 *
 * A field that does not apply is "-". WORDS of an option are the values that it knows, separated by
 * spaces.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_table.h"
#include "option_table.h"

/* What generate.sh cannot quote for every shell ends the build. */
static const char *check(const char *text)
{
	if (!text || !*text)
		return "-";
	if (!strpbrk(text, "\t\n\\`"))
		return text;
	fprintf(stderr, "completion: a text with a tab, a newline, \\ or `: %s\n", text);
	exit(EXIT_FAILURE);
}

static void print_option(const struct option_row *row)
{
	printf("option\t%s\t%c\t%s\t", row->name, row->letter ? row->letter : '-',
	       check(row->value));
	for (size_t i = 0; row->words && row->words[i]; i++)
		printf("%s%s", i ? " " : "", row->words[i]);
	printf("%s\t%s\n", row->words ? "" : "-", check(row->text));
}

int main(void)
{
	for (size_t i = 0; i < option_table_count; i++) {
		if (option_table[i].name)
			print_option(&option_table[i]);
	}
	for (size_t i = 0; i < command_table_count; i++) {
		const struct command_row *row = &command_table[i];

		if (row->text)
			printf("command\t%s\t%s\t%s\n", row->name, check(row->words),
			       check(row->text));
	}
	return ferror(stdout) || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
