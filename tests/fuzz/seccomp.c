/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A seccomp filter of the target, run over the calls that an injection makes. */
#include <string.h>
#include "fuzz.h"
#include "inject/filters.h"

#define FILTER_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sock_filter *filter;
	uint32_t count = (uint32_t)(size / sizeof(*filter)), action;
	struct sock_fprog programs[2];
	const char *call;
	struct seccomp_data call_data = {.nr = 202, .arch = 0xc000003e, .args = {1, 2, 3, 4, 5, 6}};

	if (count > FILTER_MAX)
		return -1;
	/* Allocated with its exact size, so that ASan sees reads beyond the end. */
	filter = fuzz_copy(data, count * sizeof(*filter));
	inject_seccomp_run(filter, count, &call_data, &action);
	programs[0] = (struct sock_fprog){.len = (unsigned short)count, .filter = filter};
	programs[1] = (struct sock_fprog){.len = (unsigned short)(count / 2), .filter = filter};
	inject_seccomp_run_all(programs, 2, &call_data, &action);
	inject_seccomp_judge(programs, 1, &call, &action);
	free(filter);
	return 0;
}
