/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "command_table.h"

#include <string.h>

const struct command_row command_table[] = {
	{"top", MODE_TRACE, "-p PID", "Show a process live, with the options of tracing",
	 .is_live = true},
	{"watch", MODE_WATCH, "[--config FILE]",
	 "Watch engines all the time, and record what went wrong"},
	{"diff", MODE_DIFF, "A B", "Compare two recordings or profiles"},
	{"doctor", MODE_DOCTOR, "[PID...]", "Check what works here, and how to fix the rest"},
	{"validate", MODE_VALIDATE, "FILE...", "Check profiles and traces"},
	{"merge", MODE_MERGE, "TRACE... -o OUT", "Put the traces of several hosts on one clock"},
	{"env-hash", MODE_ENV_HASH, "[FILE]", "Print the hash of an environment document"},
	{"engine-env", MODE_ENGINE_ENV, "",
	 "Print how to start an engine for GPU records and Python steps"},
	{"gpu-env", MODE_ENGINE_ENV, "", NULL}, /* its name before it was about Python */
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
