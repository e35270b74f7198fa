/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "target_options.h"
#include "options.h"

struct target_options target_options_of(const struct options *options)
{
	return (struct target_options){
		.specs = options->specs.items,
		.spec_count = options->specs.count,
		.args = options->args.items,
		.arg_count = options->args.count,
		.symbol_files = options->symbol_files.items,
		.symbol_file_count = options->symbol_files.count,
		.uretprobe = options->uretprobe,
	};
}
