/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor_fixture.h"
#include "doctor_gpu.h"
#include "doctor_room.h"
#include "doctor_trial.h"

static struct doctor_room good(void)
{
	struct doctor_room room = {
		.clock_source = "tsc",
		.clock_ps = 25000,
		.cpu_count = 8,
		.memory_bytes = 8ull << 30,
		.folders = {{.path = ".", .free_bytes = 9ull << 30}},
		.folder_count = 1,
	};

	return room;
}

static struct doctor_checks judge(const struct doctor_room *room)
{
	struct doctor_checks checks = {.tgid = 0};

	doctor_room_judge(room, &checks);
	return checks;
}

static void a_good_room_has_nothing_to_mend(void **state)
{
	struct doctor_room room = good();
	struct doctor_checks checks = judge(&room);

	(void)state;
	assert_int_equal(doctor_count(&checks, DOCTOR_OK), checks.items.count);
	assert_check(&checks, "clock", DOCTOR_OK, "tsc, 25 ns", NULL);
	assert_check(&checks, "memory", DOCTOR_OK, "8.00 GiB available, 8 CPUs", NULL);
	assert_check(&checks, "files", DOCTOR_OK, "this folder can be written to, 9.00 GiB", NULL);
	end_checks(&checks);
}

static void a_slow_clock_is_a_limit(void **state)
{
	struct doctor_room room = good();
	struct doctor_checks checks;

	(void)state;
	strcpy(room.clock_source, "hpet");
	room.clock_ps = 1200000;
	checks = judge(&room);
	assert_check(&checks, "clock", DOCTOR_WARN, "hpet, 1.20 us", "dmesg");
	end_checks(&checks);
	/* One that nobody knows, but fast. */
	strcpy(room.clock_source, "xen");
	room.clock_ps = 60000;
	checks = judge(&room);
	assert_check(&checks, "clock", DOCTOR_OK, "xen", NULL);
	end_checks(&checks);
}

static void little_memory_and_disk_are_limits(void **state)
{
	struct doctor_room room = good();
	struct doctor_checks checks;

	(void)state;
	room.memory_bytes = DOCTOR_MEMORY_MIN - 1;
	room.folders[0].free_bytes = DOCTOR_DISK_MIN - 1;
	checks = judge(&room);
	assert_check(&checks, "memory", DOCTOR_WARN, "only", "--ring-records");
	assert_check(&checks, "files", DOCTOR_WARN, "only", "--dir");
	end_checks(&checks);
	room.memory_bytes = UINT64_MAX;
	checks = judge(&room);
	assert_check(&checks, "memory", DOCTOR_OK, "not known", NULL);
	end_checks(&checks);
}

static void less_than_is_kept_free_is_an_obstacle(void **state)
{
	struct doctor_room room = good();
	struct doctor_checks checks;

	(void)state;
	room.folders[0].free_bytes = (2ull << 30) - 1;
	room.folders[0].keep_bytes = 2ull << 30;
	checks = judge(&room);
	assert_check(&checks, "files", DOCTOR_NO, "2.00 GiB stay free", "--keep-free");
	end_checks(&checks);
	room.folders[0].free_bytes++;
	checks = judge(&room);
	assert_check(&checks, "files", DOCTOR_OK, "2.00 GiB free", NULL);
	end_checks(&checks);
}

static void a_folder_that_cannot_be_written_to_is_an_obstacle(void **state)
{
	struct doctor_room room = good();
	struct doctor_checks checks;

	(void)state;
	room.folders[0].err = -EROFS;
	checks = judge(&room);
	assert_check(&checks, "files", DOCTOR_NO, "Read-only", "--trace none");
	end_checks(&checks);
}

static void other_tracers_and_a_missing_libcurl_are_no_limits(void **state)
{
	struct doctor_room room = good();
	struct doctor_checks checks;

	(void)state;
	room.tracers = 2;
	strcpy(room.curl, "--otlp: not installed");
	checks = judge(&room);
	assert_check(&checks, "other tracers", DOCTOR_NOTE, "2 BPF programs", NULL);
	assert_check(&checks, "--otlp", DOCTOR_NOTE, "not installed", NULL);
	end_checks(&checks);
	room.tracers = -1;
	checks = judge(&room);
	assert_check(&checks, "other tracers", DOCTOR_NOTE, "CAP_SYS_ADMIN", NULL);
	end_checks(&checks);
}

/* 0 or -errno of the one folder that options have written to; 1: none. */
static int folder_of(const char *trace, const char *profile, const char *dir)
{
	struct options options = {.trace = trace, .profile = profile};
	struct doctor_room room;

	options.windows.dir = dir;
	doctor_room_read(&room, &options);
	assert_in_range(room.folder_count, 0, 1);
	return room.folder_count ? room.folders[0].err : 1;
}

static void the_folders_are_those_that_options_name(void **state)
{
	char folder[] = "/tmp/doctor_room_XXXXXX", path[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(folder_of(NULL, NULL, folder), 0);
	snprintf(path, sizeof(path), "%s/a/b/trace.json", folder);
	/* That would be made. */
	assert_int_equal(folder_of(path, "none", NULL), 0);
	assert_int_equal(folder_of("none", "none", NULL), 1);
	assert_int_equal(folder_of("/dev/stdout", "none", NULL), 1);
	assert_int_equal(folder_of("/proc/version/x/t", "none", NULL), -ENOTDIR);
	assert_int_equal(rmdir(folder), 0);
}

static void a_trial_says_why_it_failed(void **state)
{
	struct doctor_trial trial = {.err = -EINVAL};
	struct doctor_checks checks = {.tgid = 0};

	(void)state;
	trial.words.any = true;
	strcpy(trial.words.text, "load: what the kernel said");
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "trial", DOCTOR_NO, "what the kernel said", "-v");
	end_checks(&checks);
	trial.err = -ENOMEM;
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "trial", DOCTOR_NO, "load", "memory");
	end_checks(&checks);
	trial.skipped = true;
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "trial", DOCTOR_NOTE, "not loaded", NULL);
	end_checks(&checks);
	trial = (struct doctor_trial){.took_ns = 30000000, .ring_bytes = 1 << 20};
	trial.cost = (struct fbt_cost){.call_ps = 120000, .step_ns = 9000};
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "trial", DOCTOR_OK,
		     "30.0 ms; costs here 120 ns a call, 9.00 us a step", NULL);
	end_checks(&checks);
}

static void the_driver_is_named_as_nvidia_does(void **state)
{
	char driver[160];

	(void)state;
	doctor_gpu_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\n",
			  driver, sizeof(driver));
	assert_string_equal(driver, "NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun");
	doctor_gpu_driver("something else\n", driver, sizeof(driver));
	assert_string_equal(driver, "");
}

static void a_gpu_wants_its_devices_and_the_shim(void **state)
{
	struct doctor_gpu gpu = {.devices = 2, .driver = "NVIDIA 580"};
	struct doctor_checks checks = {.tgid = 0};

	(void)state;
	doctor_gpu_judge(&gpu, &checks);
	assert_check(&checks, "GPU", DOCTOR_OK, "2 NVIDIA devices, NVIDIA 580", NULL);
	assert_check(&checks, "shim", DOCTOR_WARN, "libferrum_cupti.so", "make install");
	end_checks(&checks);
	gpu.devices = 0;
	gpu.shim = "/x/libferrum_cupti.so";
	doctor_gpu_judge(&gpu, &checks);
	assert_check(&checks, "GPU", DOCTOR_WARN, "/dev/nvidia0", "nvidia-smi");
	assert_check(&checks, "shim", DOCTOR_OK, "/x/", NULL);
	end_checks(&checks);
	gpu = (struct doctor_gpu){.other_vendor = true};
	doctor_gpu_judge(&gpu, &checks);
	assert_check(&checks, "GPU", DOCTOR_NOTE, "AMD", NULL);
	assert_check(&checks, "shim", DOCTOR_NOTE, "", "make install");
	end_checks(&checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_room_has_nothing_to_mend),
		cmocka_unit_test(a_slow_clock_is_a_limit),
		cmocka_unit_test(little_memory_and_disk_are_limits),
		cmocka_unit_test(less_than_is_kept_free_is_an_obstacle),
		cmocka_unit_test(a_folder_that_cannot_be_written_to_is_an_obstacle),
		cmocka_unit_test(other_tracers_and_a_missing_libcurl_are_no_limits),
		cmocka_unit_test(the_folders_are_those_that_options_name),
		cmocka_unit_test(a_trial_says_why_it_failed),
		cmocka_unit_test(the_driver_is_named_as_nvidia_does),
		cmocka_unit_test(a_gpu_wants_its_devices_and_the_shim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
