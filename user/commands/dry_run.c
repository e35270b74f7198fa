/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/dry_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "inject/inject.h"
#include "shim/library.h"

static bool has_shim(void)
{
	char *shim = gpu_shim_path();

	if (!shim)
		log_err("--gpu inject: " GPU_SHIM_MISSING);
	free(shim);
	return shim;
}

/* Prints the verdict on one process. True if the shim would be loaded, or is there. */
static bool print_verdict(uint32_t pid, FILE *out)
{
	struct inject_verdict verdict = {0};
	int err = inject_try(pid, &verdict);
	bool would, answered = !err || inject_refused(&verdict) || verdict.present;

	if (answered)
		inject_verdict_print(&verdict, pid, out);
	else
		log_err("process %u: %s", pid, err == -ESRCH ? "no such process" : strerror(-err));
	would = answered && !inject_refused(&verdict);
	findings_free(&verdict.findings);
	return would;
}

bool inject_dry_run(const uint32_t *pids, size_t count, FILE *out)
{
	bool would = has_shim();

	for (size_t i = 0; i < count; i++)
		would = print_verdict(pids[i], out) && would;
	if (!fflush(out))
		return would;
	log_err("--dry-run: %s", strerror(errno));
	return false;
}
