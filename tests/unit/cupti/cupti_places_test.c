/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cupti_places.h"

/* The paths that were tried, one a line. The search ends at the path take. */
struct tries {
	char text[65536];
	const char *take;
};

static struct tries tries;

static bool note(void *ctx, const char *path)
{
	size_t used = strlen(tries.text);

	snprintf(tries.text + used, sizeof(tries.text) - used, "%s\n", path);
	return tries.take && strcmp(tries.take, path) == 0;
}

static bool try_all(const struct cupti_places *places, const char *take)
{
	memset(&tries, 0, sizeof(tries));
	tries.take = take;
	return cupti_places__try(places, note, NULL);
}

static void assert_tried(const char *path)
{
	char line[CUPTI_PATH_BYTES];

	snprintf(line, sizeof(line), "%s\n", path);
	if (!strstr(tries.text, line))
		fail_msg("%s was not tried", path);
}

static void test_wheel(void **state)
{
	struct cupti_places places = {0};

	cupti_places__add_library(&places,
				  "/v/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12");
	assert_true(try_all(&places, "/v/site-packages/nvidia/cuda_runtime/lib/../../cuda_cupti/"
				     "lib/libcupti.so.12"));
	/* The folder of the loaded library comes first. */
	assert_int_equal(strncmp(tries.text,
				 "/v/site-packages/nvidia/cuda_runtime/lib/libcupti.so.14\n", 56),
			 0);
	memset(&places, 0, sizeof(places));
	cupti_places__add_library(&places, "/v/site-packages/nvidia/cu13/lib/libcudart.so.13");
	assert_true(try_all(&places, "/v/site-packages/nvidia/cu13/lib/libcupti.so.13"));
	memset(&places, 0, sizeof(places));
	cupti_places__add_library(&places, "/v/site-packages/torch/lib/libtorch_cuda.so");
	assert_true(try_all(&places, "/v/site-packages/torch/lib/../../nvidia/cuda_cupti/lib/"
				     "libcupti.so.12"));
	assert_true(try_all(&places,
			    "/v/site-packages/torch/lib/../../nvidia/cu13/lib/libcupti.so.13"));
	memset(&places, 0, sizeof(places));
	cupti_places__add_library(&places, "/v/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
	assert_true(try_all(&places,
			    "/v/site-packages/nvidia/cudnn/lib/../../cu13/lib/libcupti.so.13"));
}

static void test_toolkit(void **state)
{
	struct cupti_places places = {.homes = {"/opt/cuda", "", "/usr/local/cuda"}};

	cupti_places__add_library(&places, "/usr/lib/x86_64-linux-gnu/libcudart-d0da41ae.so.11.0");
	assert_false(try_all(&places, NULL));
	assert_tried("/usr/lib/x86_64-linux-gnu/libcupti.so.11.8");
	assert_tried("/usr/lib/x86_64-linux-gnu/../extras/CUPTI/lib64/libcupti.so.12");
	assert_tried("/opt/cuda/lib64/libcupti.so.13");
	assert_tried("/opt/cuda/extras/CUPTI/lib64/libcupti.so.12");
	assert_tried("/usr/local/cuda/lib64/libcupti.so");
	/* The dynamic linker's search comes last. */
	assert_tried("libcupti.so.12");
	assert_string_equal(tries.text + strlen(tries.text) - strlen("libcupti.so\n"),
			    "libcupti.so\n");
	assert_null(strstr(tries.text, "\n/lib64"));
}

/* A CUDA 12 driver cannot run CUPTI 13. */
static void test_driver(void **state)
{
	struct cupti_places places = {.homes = {"/usr/local/cuda"}, .driver_major = 12};

	assert_false(try_all(&places, NULL));
	assert_null(strstr(tries.text, "libcupti.so.13"));
	assert_tried("/usr/local/cuda/lib64/libcupti.so.12");
	assert_tried("/usr/local/cuda/lib64/libcupti.so.11.8");
}

/*
 * The driver's folder comes after the dynamic linker's search, because the engine did not choose
 * it.
 */
static void test_driver_folder(void **state)
{
	struct cupti_places places = {.homes = {"/opt/cuda"}};

	cupti_places__add_library(&places, "/driver/libcuda.so.580.65.06");
	cupti_places__add_library(&places, "/other/libcuda.so.1");
	assert_false(try_all(&places, NULL));
	assert_tried("/driver/libcupti.so.13");
	assert_null(strstr(tries.text, "/other/"));
	assert_true(strstr(tries.text, "/driver/") > strstr(tries.text, "\nlibcupti.so.13\n"));
	assert_null(strstr(tries.text, "/driver/.."));
}

static void test_mapped(void **state)
{
	struct cupti_places places = {0};
	char path[2 * CUPTI_PATH_BYTES];

	cupti_places__add_library(&places, "/a/libcupti-af9ddbc7.so.12");
	cupti_places__add_library(&places, "/b/libcupti.so.13");
	cupti_places__add_library(&places, "linux-vdso.so.1");
	assert_string_equal(places.mapped, "/a/libcupti-af9ddbc7.so.12");
	assert_string_equal(places.folders[0], "");
	for (int i = 0; i < 9; i++) {
		snprintf(path, sizeof(path), "/%d/libcublas.so.12", i / 2);
		cupti_places__add_library(&places, path);
	}
	assert_string_equal(places.folders[3], "/3");
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	memcpy(path + sizeof(path) - 14, "/libcudart.so", 14);
	cupti_places__add_library(&places, path);
	assert_string_equal(places.folders[0], "/0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wheel),  cmocka_unit_test(test_toolkit),
		cmocka_unit_test(test_driver), cmocka_unit_test(test_driver_folder),
		cmocka_unit_test(test_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
