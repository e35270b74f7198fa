/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_gpu.h"

#include <argp.h>
#include <errno.h>
#include "log.h"
#include "option_table.h"
#include "option_value.h"

#define RANK_MAX	   1000000
#define NS_PER_S	   1000000000ull
#define INJECT_TIMEOUT_S   5
#define INJECT_TIMEOUT_MAX 60

int option_parse_gpu(struct option_gpu *options, struct merge_options *merge, int key,
		     const char *arg)
{
	static const char *const modes[] = {"auto", "off", "require", "inject", NULL};
	uint64_t number = 0;
	int value = 0, err = 0;

	switch (key) {
	case KEY_GPU:
		err = option_parse_word("--gpu", arg, modes, "auto, off, require or inject",
					&value);
		options->mode = (enum gpu_mode)value;
		return err;
	case KEY_GPU_STRICT:
		merge->strict = true;
		return 0;
	case KEY_INJECT_TIMEOUT:
		err = option_parse_range("--inject-timeout", arg, 1, INJECT_TIMEOUT_MAX, &number);
		options->inject_timeout_ns = number * NS_PER_S;
		return err;
	case KEY_DRY_RUN:
		options->dry_run = true;
		return 0;
	case KEY_RANK:
		err = option_parse_range("--rank", arg, 0, RANK_MAX, &number);
		options->rank = (uint32_t)number;
		options->rank_given = true;
		return err;
	}
	return ARGP_ERR_UNKNOWN;
}

static int usage_error(const char *message)
{
	log_err("%s (see --help)", message);
	return -EINVAL;
}

int option_complete_gpu(struct option_gpu *options, const struct merge_options *merge, bool by_pid,
			bool kineto)
{
	if (options->rank_given && !kineto)
		return usage_error("--rank: goes with --trace-format kineto");
	if (merge->strict && options->mode == GPU_OFF)
		return usage_error("--gpu-strict: is about GPU records, and --gpu off takes none");
	if (options->inject_timeout_ns && options->mode != GPU_INJECT)
		return usage_error("--inject-timeout: goes with --gpu inject");
	if (options->dry_run && options->mode != GPU_INJECT)
		return usage_error("--dry-run: goes with --gpu inject");
	if (options->dry_run && !by_pid)
		return usage_error("--dry-run: needs processes, -p PID, and does nothing else");
	if (!options->inject_timeout_ns)
		options->inject_timeout_ns = INJECT_TIMEOUT_S * NS_PER_S;
	return 0;
}
