/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_metadata.h"

#include <argp.h>
#include "option_table.h"

int option_parse_metadata(struct metadata_options *metadata, int key, const char *arg)
{
	switch (key) {
	case KEY_COMMIT_SHA:
		metadata->commit_sha = arg;
		return 0;
	case KEY_ENV_HASH:
		metadata->env_hash = arg;
		return 0;
	case KEY_MODEL:
		metadata->model = arg;
		return 0;
	case KEY_CONCURRENCY:
		metadata->concurrency = arg;
		return 0;
	case KEY_RUNTIME_FLAGS:
		metadata->runtime_flags = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}
