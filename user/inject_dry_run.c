/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_dry_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_shim.h"
#include "inject_run.h"
#include "log.h"

static int check_shim(void)
{
	char *shim = gpu_shim_path();

	if (!shim) {
		log_err("--gpu inject: " GPU_SHIM_MISSING);
		return -ENOENT;
	}
	free(shim);
	return 0;
}

static int try(uint32_t pid, FILE *out)
{
	struct inject_verdict verdict = {0};
	int err = inject_try(pid, &verdict);

	if (!err || verdict.refused || verdict.present)
		inject_verdict_print(&verdict, pid, out);
	else
		log_err("process %u: %s", pid, err == -ESRCH ? "no such process" : strerror(-err));
	if (!err && verdict.refused)
		err = -EPERM;
	else if (verdict.present && !verdict.refused)
		err = 0;
	inject_verdict_clear(&verdict);
	return err;
}

int inject_dry_run(const uint32_t *pids, size_t count, FILE *out)
{
	int first_err = check_shim();

	for (size_t i = 0; i < count; i++) {
		int err = try(pids[i], out);

		if (!first_err)
			first_err = err;
	}
	if (fflush(out) && !first_err) {
		first_err = -errno;
		log_err("--dry-run: %s", strerror(-first_err));
	}
	return first_err;
}
