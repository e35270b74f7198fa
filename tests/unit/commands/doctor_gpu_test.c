/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Doctor's checks of GPUs and shims, in every state. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "commands/doctor_gpu.h"
#include "doctor_fixture.h"

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
	struct findings checks = {.tgid = 0};

	(void)state;
	doctor_gpu_judge(&gpu, &checks);
	assert_check(&checks, "GPU", FINDING_OK, "2 NVIDIA devices, NVIDIA 580", NULL);
	assert_check(&checks, "shim", FINDING_WARN, "libferrum_cupti.so", "make install");
	end_checks(&checks);
	gpu.devices = 0;
	gpu.shim = "/x/libferrum_cupti.so";
	doctor_gpu_judge(&gpu, &checks);
	assert_check(&checks, "GPU", FINDING_WARN, "/dev/nvidia0", "nvidia-smi");
	assert_check(&checks, "shim", FINDING_OK, "/x/", NULL);
	end_checks(&checks);
	gpu = (struct doctor_gpu){.other_vendor = true};
	doctor_gpu_judge(&gpu, &checks);
	assert_check(&checks, "GPU", FINDING_NOTE, "AMD", NULL);
	assert_check(&checks, "shim", FINDING_NOTE, "", "make install");
	end_checks(&checks);
}

static struct findings judge(const struct doctor_process_gpu *gpu)
{
	struct findings checks = {.tgid = 42};

	doctor_process_gpu_judge(gpu, &checks);
	return checks;
}

static void each_state_of_a_shim_has_its_words(void **state)
{
	struct doctor_process_gpu gpu = {.shim = DOCTOR_SHIM_NOT_CUDA};
	struct findings checks = judge(&gpu);

	(void)state;
	assert_check(&checks, "GPU records", FINDING_NOTE, "does not use CUDA", NULL);
	end_checks(&checks);
	gpu.shim = DOCTOR_SHIM_REST;
	checks = judge(&gpu);
	assert_check(&checks, "GPU records", FINDING_OK, "loaded and idle", NULL);
	end_checks(&checks);
	gpu.shim = DOCTOR_SHIM_LEFT;
	checks = judge(&gpu);
	assert_check(&checks, "GPU records", FINDING_OK, "just left", NULL);
	end_checks(&checks);
	gpu.shim = DOCTOR_SHIM_DEAD;
	checks = judge(&gpu);
	assert_check(&checks, "GPU records", FINDING_WARN, "given up", "restart");
	end_checks(&checks);
	gpu.shim = DOCTOR_SHIM_BAD;
	hear(&gpu.words, "another tracer reads them");
	checks = judge(&gpu);
	assert_check(&checks, "GPU records", FINDING_WARN, "another tracer", "--gpu off");
	end_checks(&checks);
	gpu.mode = GPU_OFF;
	checks = judge(&gpu);
	assert_check(&checks, "GPU records", FINDING_NOTE, "off", NULL);
	end_checks(&checks);
}

static void what_gpu_require_lacks_is_an_obstacle(void **state)
{
	static const enum doctor_shim lacking[] = {DOCTOR_SHIM_UNKNOWN, DOCTOR_SHIM_NOT_CUDA,
						   DOCTOR_SHIM_ABSENT, DOCTOR_SHIM_DEAD,
						   DOCTOR_SHIM_BAD};
	struct doctor_process_gpu gpu = {.mode = GPU_REQUIRE};
	struct findings checks;

	(void)state;
	for (size_t i = 0; i < sizeof(lacking) / sizeof(*lacking); i++) {
		gpu.shim = lacking[i];
		checks = judge(&gpu);
		assert_check(&checks, "GPU records", FINDING_FAIL, "", "");
		end_checks(&checks);
	}
}

static void an_absent_shim_can_be_injected_or_not(void **state)
{
	struct doctor_process_gpu gpu = {.shim = DOCTOR_SHIM_ABSENT, .verdict_made = true};
	struct findings checks = judge(&gpu);

	(void)state;
	assert_check(&checks, "GPU records", FINDING_WARN, "uses CUDA", "--gpu=inject, or restart");
	assert_check(&checks, "--gpu=inject", FINDING_OK, "would load", NULL);
	end_checks(&checks);
	gpu.mode = GPU_INJECT;
	checks = judge(&gpu);
	assert_int_equal(findings_count(&checks, FINDING_OK), checks.items.count);
	end_checks(&checks);
	inject_refuse(&gpu.verdict, "libc", "is musl");
	checks = judge(&gpu);
	assert_check(&checks, "GPU records", FINDING_WARN, "uses CUDA", "restart it");
	assert_check(&checks, "--gpu=inject", FINDING_NOTE, "libc: is musl", NULL);
	end_checks(&checks);
	doctor_process_gpu_clear(&gpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_driver_is_named_as_nvidia_does),
		cmocka_unit_test(a_gpu_wants_its_devices_and_the_shim),
		cmocka_unit_test(each_state_of_a_shim_has_its_words),
		cmocka_unit_test(what_gpu_require_lacks_is_an_obstacle),
		cmocka_unit_test(an_absent_shim_can_be_injected_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
