/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_argument.h"

#include <stddef.h>
#include <string.h>

bool option_argument_is_command(const char *arg, enum options_mode *mode)
{
	static const struct {
		const char *word;
		enum options_mode mode;
	} commands[] = {
		{"validate", MODE_VALIDATE},
		{"env-hash", MODE_ENV_HASH},
		{"gpu-env", MODE_GPU_ENV},
		{"doctor", MODE_DOCTOR},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(arg, commands[i].word) != 0)
			continue;
		*mode = commands[i].mode;
		return true;
	}
	return false;
}
