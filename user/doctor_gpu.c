/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_gpu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "gpu_memfd.h"
#include "gpu_shim.h"
#include "gpu_standing.h"
#include "inject_check.h"

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
	DIR *folder = opendir("/dev");
	struct dirent *entry;
	uint32_t count = 0;

	while (folder && (entry = readdir(folder)))
		count += !strncmp(entry->d_name, "nvidia", 6) &&
			 isdigit((unsigned char)entry->d_name[6]);
	if (folder)
		closedir(folder);
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

void doctor_gpu_clear(struct doctor_gpu *gpu)
{
	free(gpu->shim);
	gpu->shim = NULL;
}

static void judge_driver(const struct doctor_gpu *gpu, struct doctor_checks *checks)
{
	if (*gpu->driver && gpu->devices) {
		doctor_say(checks, DOCTOR_OK, "GPU", "%" PRIu32 " NVIDIA device%s, %s",
			   gpu->devices, gpu->devices == 1 ? "" : "s", gpu->driver);
	} else if (*gpu->driver) {
		doctor_say(checks, DOCTOR_WARN, "GPU", "%s is loaded, but no /dev/nvidia0 is here",
			   gpu->driver);
		doctor_advise(checks, "nvidia-smi, run as root, makes the files and says what is "
				      "wrong");
	} else if (gpu->devices) {
		doctor_say(checks, DOCTOR_NOTE, "GPU",
			   "%" PRIu32 " NVIDIA device%s, driver not known (" DRIVER_FILE
			   " is not there)",
			   gpu->devices, gpu->devices == 1 ? "" : "s");
	} else {
		doctor_say(checks, DOCTOR_NOTE, "GPU",
			   "no NVIDIA driver here%s: no GPU records, all else works",
			   gpu->other_vendor ? ", but AMD's, which is not supported" : "");
	}
}

void doctor_gpu_judge(const struct doctor_gpu *gpu, struct doctor_checks *checks)
{
	bool wanted = *gpu->driver || gpu->devices;

	judge_driver(gpu, checks);
	if (gpu->shim) {
		doctor_say(checks, DOCTOR_OK, "shim", "%s", gpu->shim);
		return;
	}
	doctor_say(checks, wanted ? DOCTOR_WARN : DOCTOR_NOTE, "shim",
		   "libferrum_cupti.so is not beside this program, nor in ../lib/ferrum-bpftrace "
		   "from there: engines cannot be given it");
	doctor_advise(checks, "make install puts it there, or copy it beside this program");
}

static void ignore(void *ctx, const void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
}

/* What a trace would say of that error. */
static void explain(struct doctor_process_gpu *gpu, uint32_t tgid, const struct gpu_memfd *found,
		    int err)
{
	struct record_output output = {.emit = ignore, .ctx = NULL};
	struct gpu_standing standing = {.output = &output};

	standing.state.tgid = tgid;
	doctor_listen(&gpu->words);
	gpu_standing_explain(&standing, err, found->version, found->holder,
			     clock_ns(CLOCK_MONOTONIC));
	doctor_listen_end();
	if (!standing.said)
		gpu->shim = DOCTOR_SHIM_UNKNOWN;
	else if (standing.state.status == FBT_GPU_NOT_CUDA)
		gpu->shim = DOCTOR_SHIM_NOT_CUDA;
	else if (standing.state.status == FBT_GPU_ABSENT)
		gpu->shim = DOCTOR_SHIM_ABSENT;
	else
		gpu->shim = DOCTOR_SHIM_BAD;
	gpu_standing_clear(&standing);
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
	explain(gpu, tgid, &found, fd);
	if (gpu->shim != DOCTOR_SHIM_ABSENT)
		return;
	inject_check(&target, &gpu->verdict, tgid, true);
	gpu->verdict_made = !gpu->verdict.present;
	inject_target_clear(&target);
}

void doctor_process_gpu_clear(struct doctor_process_gpu *gpu)
{
	inject_verdict_clear(&gpu->verdict);
}

/* --gpu require makes of what is missing what stands in the way. */
static enum doctor_status lack_of(const struct doctor_process_gpu *gpu)
{
	return gpu->mode == GPU_REQUIRE ? DOCTOR_NO : DOCTOR_WARN;
}

static void judge_injection(const struct doctor_process_gpu *gpu, uint32_t tgid,
			    struct doctor_checks *checks)
{
	char reason[INJECT_TEXT_MAX];

	inject_verdict_reason(&gpu->verdict, reason);
	if (gpu->verdict.refused)
		doctor_say(checks, DOCTOR_NOTE, "--gpu=inject", "would do nothing: %s", reason);
	else
		doctor_say(checks, DOCTOR_OK, "--gpu=inject",
			   "would load the shim, as far as can be seen without stopping a thread "
			   "(-p %" PRIu32 " --gpu=inject --dry-run does that)",
			   tgid);
}

static void judge_absent(const struct doctor_process_gpu *gpu, uint32_t tgid,
			 struct doctor_checks *checks)
{
	bool injects = gpu->verdict_made && !gpu->verdict.refused;

	if (injects && gpu->mode == GPU_INJECT) {
		doctor_say(checks, DOCTOR_OK, "GPU records", "the shim would be put into it");
	} else {
		doctor_say(checks, lack_of(gpu), "GPU records", "%s",
			   gpu->words.any ? doctor_words_text(&gpu->words, tgid, 0)
					  : "it uses CUDA, but was not started with the shim");
		doctor_advise(checks, "%srestart it with what ferrum-bpftrace gpu-env prints",
			      injects ? "--gpu=inject, or " : "");
	}
	if (gpu->verdict_made)
		judge_injection(gpu, tgid, checks);
}

void doctor_process_gpu_judge(const struct doctor_process_gpu *gpu, uint32_t tgid,
			      struct doctor_checks *checks)
{
	if (gpu->mode == GPU_OFF) {
		doctor_say(checks, DOCTOR_NOTE, "GPU records", "--gpu off");
		return;
	}
	switch (gpu->shim) {
	case DOCTOR_SHIM_NOT_CUDA:
		doctor_say(checks, gpu->mode == GPU_REQUIRE ? DOCTOR_NO : DOCTOR_NOTE,
			   "GPU records", "none: it does not use CUDA");
		if (gpu->mode == GPU_REQUIRE)
			doctor_advise(checks, "leave out --gpu require, or name the process that "
					      "uses CUDA");
		break;
	case DOCTOR_SHIM_ABSENT:
		judge_absent(gpu, tgid, checks);
		break;
	case DOCTOR_SHIM_REST:
		doctor_say(checks, DOCTOR_OK, "GPU records", "it has the shim, at rest and free");
		break;
	case DOCTOR_SHIM_LEFT:
		doctor_say(checks, DOCTOR_OK, "GPU records",
			   "it has the shim; a tracer has just left, and it comes to rest within "
			   "three seconds");
		break;
	case DOCTOR_SHIM_DEAD:
		doctor_say(checks, lack_of(gpu), "GPU records",
			   "its shim has given up, and will not work again in this process");
		doctor_advise(checks, "-p %" PRIu32 " says why; a restart of the process helps",
			      tgid);
		break;
	case DOCTOR_SHIM_BAD:
	case DOCTOR_SHIM_UNKNOWN:
		doctor_say(checks, lack_of(gpu), "GPU records", "%s",
			   gpu->words.any ? doctor_words_text(&gpu->words, tgid, 0)
					  : "not known: it cannot be looked at");
		doctor_advise(checks, "--gpu off goes without");
		break;
	}
}
