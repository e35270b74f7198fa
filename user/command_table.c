/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "command_table.h"

#include <string.h>

const struct command_row command_table[] = {
	{"top", "-p PID", "Show a process live, with the options of tracing", MODE_TRACE, true},
	{"watch", "[--config FILE]", "Watch engines all the time, and record what went wrong",
	 MODE_WATCH, false},
	{"diff", "A B", "Compare two recordings or profiles", MODE_DIFF, false},
	{"doctor", "[PID...]", "Check what works here, and how to fix the rest", MODE_DOCTOR,
	 false},
	{"validate", "FILE...", "Check profiles and traces", MODE_VALIDATE, false},
	{"merge", "TRACE... -o OUT", "Put the traces of several hosts on one clock", MODE_MERGE,
	 false},
	{"env-hash", "[FILE]", "Print the hash of an environment document", MODE_ENV_HASH, false},
	{"engine-env", "", "Print how to start an engine for GPU records and Python steps",
	 MODE_ENGINE_ENV, false},
	{"gpu-env", "", NULL, MODE_ENGINE_ENV, false}, /* its name before it was about Python */
};

const size_t command_table_count = sizeof(command_table) / sizeof(command_table[0]);

const struct command_row *command_find(const char *name)
{
	for (size_t i = 0; i < command_table_count; i++) {
		if (!strcmp(name, command_table[i].name))
			return &command_table[i];
	}
	return NULL;
}
