/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One binary a folder of tests/unit: `unit_gpu join_test` runs tests/unit/gpu/join_test.c. Each
 * file is an ordinary cmocka program whose main the Makefile renames after the file; groups.h lists
 * them.
 */
#include <stdio.h>
#include <string.h>

#define GROUP(name) int name(void);
#include "groups.h"
#undef GROUP

static const struct {
	const char *name;
	int (*run)(void);
} groups[] = {
#define GROUP(name) {#name, name},
#include "groups.h"
#undef GROUP
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc == 2 && i < GROUPS; i++)
		if (strcmp(groups[i].name, argv[1]) == 0)
			return groups[i].run();
	fprintf(stderr, "usage: %s FILE, one of\n", argv[0]);
	for (i = 0; i < GROUPS; i++)
		fprintf(stderr, "\t%s\n", groups[i].name);
	return 2;
}
