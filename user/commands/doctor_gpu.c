/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_gpu.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/check.h"
#include "shim/library.h"
#include "shim/peer.h"
#include "shim/ring.h"

#define DRIVER_FILE "/proc/driver/nvidia/version"
#define DRIVER_MARK "NVRM version:"

void doctor_gpu_driver(const char *line, char *driver, size_t size)
{
	*driver = '\0';
	if (strncmp(line, DRIVER_MARK, strlen(DRIVER_MARK)) != 0)
		return;
	line += strlen(DRIVER_MARK);
	line += strspn(line, " ");
	snprintf(driver, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static uint32_t count_devices(void)
{
	glob_t found = {0};
	uint32_t count;

	glob("/dev/nvidia[0-9]*", GLOB_NOSORT, NULL, &found);
	count = (uint32_t)found.gl_pathc;
	globfree(&found);
	return count;
}

void doctor_gpu_read(struct doctor_gpu *gpu)
{
	FILE *file = fopen(DRIVER_FILE, "re");
	char line[256];

	*gpu = (struct doctor_gpu){.devices = count_devices()};
	if (file && fgets(line, sizeof(line), file))
		doctor_gpu_driver(line, gpu->driver, sizeof(gpu->driver));
	if (file)
		fclose(file);
	gpu->other_vendor = !access("/dev/kfd", F_OK);
	gpu->shim = gpu_shim_path();
}

static void judge_driver(const struct doctor_gpu *gpu, struct findings *checks)
{
	if (*gpu->driver && gpu->devices) {
		findings_add(checks, FINDING_OK, "GPU", "%" PRIu32 " NVIDIA device%s, %s",
			     gpu->devices, gpu->devices == 1 ? "" : "s", gpu->driver);
	} else if (*gpu->driver) {
		findings_add(checks, FINDING_WARN, "GPU",
			     "%s is loaded, but there is no /dev/nvidia0", gpu->driver);
		findings_advise(checks, "run nvidia-smi as root: it creates the device files, or "
					"says what is wrong");
	} else if (gpu->devices) {
		findings_add(checks, FINDING_NOTE, "GPU",
			     "%" PRIu32 " NVIDIA device%s, driver version unknown (no " DRIVER_FILE
			     ")",
			     gpu->devices, gpu->devices == 1 ? "" : "s");
	} else {
		findings_add(checks, FINDING_NOTE, "GPU",
			     "no NVIDIA driver found%s; everything except GPU records works",
			     gpu->other_vendor ? " (AMD GPUs are not supported)" : "");
	}
}

void doctor_gpu_judge(const struct doctor_gpu *gpu, struct findings *checks)
{
	bool wanted = *gpu->driver || gpu->devices;

	judge_driver(gpu, checks);
	if (gpu->shim) {
		findings_add(checks, FINDING_OK, "shim", "%s", gpu->shim);
		return;
	}
	findings_add(checks, wanted ? FINDING_WARN : FINDING_NOTE, "shim",
		     "libferrum_cupti.so is neither next to this program nor in "
		     "../lib/ferrum-bpftrace: engines cannot load it");
	findings_advise(checks, "run make install, or copy it next to this program");
}

void doctor_gpu_clear(struct doctor_gpu *gpu)
{
	free(gpu->shim);
	gpu->shim = NULL;
}

/* A process without a usable shim: why not, as a trace would tell it. */
static enum doctor_shim explain_no_shim(struct doctor_words *words, uint32_t tgid,
					const struct gpu_memfd *found, int err)
{
	int status;

	doctor_listen(words);
	status = gpu_peer_explain(tgid, err, found->version, found->holder);
	doctor_listen_end();
	if (status < 0)
		return DOCTOR_SHIM_UNKNOWN;
	return status == FBT_GPU_NOT_CUDA ? DOCTOR_SHIM_NOT_CUDA
	       : status == FBT_GPU_ABSENT ? DOCTOR_SHIM_ABSENT
					  : DOCTOR_SHIM_BAD;
}

void doctor_process_gpu_read(struct doctor_process_gpu *gpu, uint32_t tgid, enum gpu_mode mode)
{
	struct inject_target target = {.pidfd = -1};
	struct gpu_memfd found;
	int fd = gpu_memfd_open(tgid, &found);

	*gpu = (struct doctor_process_gpu){.mode = mode};
	if (fd >= 0) {
		gpu->shim = found.header.phase == FBT_GPU_DORMANT   ? DOCTOR_SHIM_REST
			    : found.header.phase == FBT_GPU_WORKING ? DOCTOR_SHIM_LEFT
								    : DOCTOR_SHIM_DEAD;
		close(fd);
		return;
	}
	gpu->shim = explain_no_shim(&gpu->words, tgid, &found, fd);
	if (gpu->shim != DOCTOR_SHIM_ABSENT)
		return;
	inject_check(&target, &gpu->verdict, tgid, INJECT_FOR_CUDA);
	gpu->verdict_made = !gpu->verdict.present;
	inject_target_clear(&target);
}

static void judge_injection(const struct doctor_process_gpu *gpu, struct findings *checks)
{
	char reason[INJECT_TEXT_MAX];

	inject_verdict_reason(&gpu->verdict, reason);
	if (inject_refused(&gpu->verdict))
		findings_add(checks, FINDING_NOTE, "--gpu=inject", "would do nothing: %s", reason);
	else
		findings_add(checks, FINDING_OK, "--gpu=inject",
			     "would load the shim, as far as can be told without stopping a thread "
			     "(-p %" PRIu32 " --gpu=inject --dry-run stops one to find out)",
			     checks->tgid);
}

static void judge_absent(const struct doctor_process_gpu *gpu, enum severity severity,
			 struct findings *checks)
{
	bool injects = gpu->verdict_made && !inject_refused(&gpu->verdict);

	if (injects && gpu->mode == GPU_INJECT) {
		findings_add(checks, FINDING_OK, "GPU records", "the shim would be loaded into it");
	} else {
		findings_add(checks, severity, "GPU records", "%s",
			     doctor_words_text(&gpu->words, checks,
					       "it uses CUDA, but was not started with the shim"));
		findings_advise(
			checks,
			"%srestart it with the settings that ferrum-bpftrace engine-env prints",
			injects ? "use --gpu=inject, or " : "");
	}
	if (gpu->verdict_made)
		judge_injection(gpu, checks);
}

void doctor_process_gpu_judge(const struct doctor_process_gpu *gpu, struct findings *checks)
{
	bool required = gpu->mode == GPU_REQUIRE;
	enum severity severity = required ? FINDING_FAIL : FINDING_WARN;

	if (gpu->mode == GPU_OFF) {
		findings_add(checks, FINDING_NOTE, "GPU records", "--gpu off");
		return;
	}
	switch (gpu->shim) {
	case DOCTOR_SHIM_NOT_CUDA:
		findings_add(checks, required ? FINDING_FAIL : FINDING_NOTE, "GPU records",
			     "none: it does not use CUDA");
		if (required)
			findings_advise(checks, "leave out --gpu require, or name the process that "
						"uses CUDA");
		break;
	case DOCTOR_SHIM_ABSENT:
		judge_absent(gpu, severity, checks);
		break;
	case DOCTOR_SHIM_REST:
		findings_add(checks, FINDING_OK, "GPU records", "the shim is loaded and idle");
		break;
	case DOCTOR_SHIM_LEFT:
		findings_add(
			checks, FINDING_OK, "GPU records",
			"the shim is loaded; a tracer has just left, and the shim becomes idle "
			"within three seconds");
		break;
	case DOCTOR_SHIM_DEAD:
		findings_add(checks, severity, "GPU records",
			     "the shim has given up and will not work again in this process");
		findings_advise(checks, "restart the process; -p %" PRIu32 " says why",
				checks->tgid);
		break;
	case DOCTOR_SHIM_BAD:
	case DOCTOR_SHIM_UNKNOWN:
		findings_add(checks, severity, "GPU records", "%s",
			     doctor_words_text(&gpu->words, checks,
					       "unknown: the process cannot be inspected"));
		findings_advise(checks, "use --gpu off to trace without GPU records");
		break;
	}
}

void doctor_process_gpu_clear(struct doctor_process_gpu *gpu)
{
	findings_free(&gpu->verdict.findings);
}
