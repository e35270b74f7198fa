/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "confine_broker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "broker.h"
#include "confine_broker_filter.h"
#include "confine_capabilities.h"
#include "cuda_use.h"
#include "gpu_memfd.h"
#include "gpu_shim.h"
#include "hint.h"
#include "inject.h"
#include "log.h"
#include "place.h"
#include "uprobes.h"

/* As it was when the broker was forked. */
struct plan {
	const struct options *options;
	struct confine_works works;
	struct inject_service inject;
};

/* It has its standard error still. */
static void give_up(const void *ctx)
{
	const struct plan *plan = ctx;
	int err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	if (!err)
		err = confine_keep(confine_wanted_by_broker, &plan->works);
	if (!err && !plan->works.injects)
		err = confine_broker_filter_apply(false);
	if (err && err != -ENOSYS)
		log_warn("the process that uses our rights for us keeps more of them than it "
			 "needs: %s",
			 strerror(-err));
}

/* What cannot be given up stays: the user wants to know of candidates. */
static void look_for_candidates(const void *ctx, const struct broker_order *order, int output)
{
	const struct plan *plan = ctx;

	(void)confine_keep(confine_wanted_to_look, &plan->works);
	(void)confine_broker_filter_apply(true);
	hint_run(plan->options, order, output);
}

int confine_broker_start(const struct options *options)
{
	bool gpu = options->gpu.mode != GPU_OFF;
	struct plan plan = {
		.options = options,
		.works =
			{
				.injects = options->gpu.mode == GPU_INJECT,
				.appends = options->windows.flag && options->profile,
				.perf_probes = !uprobes_have_multi(),
			},
	};
	const struct broker_task tasks[BROKER_WORKS] = {
		[BROKER_HINT] = {.run = look_for_candidates, .ctx = &plan},
		[BROKER_INJECT] = {.run = plan.works.injects ? inject_serve : NULL,
				   .ctx = &plan.inject},
		[BROKER_LOOK] = {.open = gpu ? cuda_use_serve : NULL},
		[BROKER_APPEND] = {.open = plan.works.appends ? place_append_serve : NULL,
				   .ctx = options->profile,
				   .may_wait = true},
		[BROKER_MEMFD] = {.open = gpu ? gpu_memfd_serve : NULL},
	};
	char *shim = plan.works.injects ? gpu_shim_path() : NULL;
	int err;

	if (shim)
		(void)inject_service_open(&plan.inject, shim, options->gpu.inject_timeout_ns);
	err = broker_start(tasks, give_up, &plan);
	inject_service_clear(&plan.inject);
	free(shim);
	return err;
}
