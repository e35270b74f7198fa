/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_gpu.h"

#include <argp.h>
#include "option_table.h"
#include "option_value.h"

#define RANK_MAX 1000000

int option_parse_gpu(struct option_gpu *options, struct merge_options *merge, int key,
		     const char *arg)
{
	static const char *const modes[] = {"auto", "off", "require", NULL};
	uint64_t rank = 0;
	int value = 0, err = 0;

	switch (key) {
	case KEY_GPU:
		err = option_parse_word("--gpu", arg, modes, "auto, off or require", &value);
		options->mode = (enum gpu_mode)value;
		return err;
	case KEY_GPU_STRICT:
		merge->strict = true;
		return 0;
	case KEY_RANK:
		err = option_parse_range("--rank", arg, 0, RANK_MAX, &rank);
		options->rank = (uint32_t)rank;
		options->rank_given = true;
		return err;
	}
	return ARGP_ERR_UNKNOWN;
}
