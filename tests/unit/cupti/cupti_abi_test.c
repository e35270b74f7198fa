/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_library.h"
#include "shim_fixture.h"

#define PATH_BYTES 600

/* Finds a file of NVIDIA's toolkit below CUDA_HOME, CUDA_PATH or the usual folder. */
static bool find_file(char *path, const char *const *below, size_t count)
{
	const char *homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};

	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++)
		for (size_t k = 0; k < count; k++) {
			snprintf(path, PATH_BYTES, "%s/%s", homes[i] ? homes[i] : "", below[k]);
			if (homes[i] && access(path, R_OK) == 0)
				return true;
		}
	return false;
}

static bool find_library(char *path)
{
	static const char *const below[] = {
		"lib64/libcupti.so.13",
		"lib/libcupti.so.13",
		"extras/CUPTI/lib64/libcupti.so.13",
		"lib64/libcupti.so.12",
		"extras/CUPTI/lib64/libcupti.so.12",
		"lib64/libcupti.so.11.8",
		"extras/CUPTI/lib64/libcupti.so.11.8",
	};

	return find_file(path, below, sizeof(below) / sizeof(below[0]));
}

static void test_headers(void **state)
{
	static const char *const below[] = {"include/cupti.h", "extras/CUPTI/include/cupti.h"};
	char path[PATH_BYTES];
	char command[4 * PATH_BYTES];
	const char *compiler = getenv("CC");

	if (!find_file(path, below, 2)) {
		print_message("SKIP no CUPTI headers here (tests/e2e/cuda.sh fetches them)\n");
		skip();
	}
	*strrchr(path, '/') = '\0';
	/* Two -I options: cupti.h may lie in another folder than cuda.h. */
	snprintf(command, sizeof(command),
		 "echo '#include \"abi_check.h\"' | %s -std=gnu11 -fsyntax-only -x c -Icupti "
		 "-Iinclude -Itests/unit/cupti -I'%s' -I'%s/../../../include' - >&2",
		 compiler && *compiler ? compiler : "cc", path, path);
	assert_int_equal(system(command), 0); /* NOLINT: the command is ours */
}

/* The library's record sizes are at least the sizes that the shim reads. */
static void test_strides(void **state)
{
	static const struct {
		uint32_t kind;
		uint32_t least;
		uint32_t most;
	} rows[] = {
		{CUPTI_KIND_MEMCPY, 80, 128},
		{CUPTI_KIND_MEMSET, 80, 128},
		{CUPTI_KIND_DRIVER, 40, 40},
		{CUPTI_KIND_RUNTIME, 40, 40},
		{CUPTI_KIND_CONCURRENT_KERNEL, 160, 320},
		{CUPTI_KIND_OVERHEAD, 40, 96},
		{CUPTI_KIND_MEMCPY2, 88, 160},
		{CUPTI_KIND_SYNCHRONIZATION, 40, 96},
	};
	struct cupti_library library = {0};
	char detail[CUPTI_DETAIL_BYTES];
	char path[PATH_BYTES];

	if (!find_library(path)) {
		print_message("SKIP no libcupti here\n");
		skip();
	}
	setenv("FERRUM_CUPTI_LIBRARY", path, 1);
	assert_int_equal(cupti_library__load(&library, 0, detail), 0);
	assert_string_equal(library.path, path);
	assert_true(library.version >= CUPTI_VERSION_11_8);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("kind %u: %u bytes\n", rows[i].kind, library.strides[rows[i].kind]);
		assert_in_range(library.strides[rows[i].kind], rows[i].least, rows[i].most);
		assert_int_equal(library.strides[rows[i].kind] % 8, 0);
	}
	if (library.version == 130001) {
		assert_int_equal(library.strides[CUPTI_KIND_CONCURRENT_KERNEL], 216);
		assert_int_equal(library.strides[CUPTI_KIND_MEMCPY], 96);
		assert_int_equal(library.strides[CUPTI_KIND_MEMSET], 88);
		assert_int_equal(library.strides[CUPTI_KIND_OVERHEAD], 56);
	}
	assert_non_null(library.calls.register_timestamp);
}

/* Runs the shim with the real library but without a driver. Needs a process of its own. */
static int run_without_driver(const char *path)
{
	static struct peer peer;
	char shim[PATH_BYTES];
	const char *build = getenv("FBT_BUILD");
	int (*initialize)(void);
	void *handle;

	if (dlopen("libcuda.so.1", RTLD_NOW))
		return 77;
	snprintf(shim, sizeof(shim), "%s/libferrum_cupti.so", build ? build : "build/x86_64-gcc");
	setenv("FERRUM_CUPTI_LIBRARY", path, 1);
	handle = dlopen(shim, RTLD_NOW);
	if (!handle)
		return 1;
	*(void **)&initialize = dlsym(handle, "InitializeInjection");
	if (initialize() != 1 || initialize() != 1)
		return 2;
	if (!peer_open(&peer, getpid()))
		return 3;
	/* The shim came late here, so it refuses versions before 12.6 before it calls CUPTI. */
	for (uint32_t wish = 1; wish <= 3; wish += 2) {
		peer_wish(&peer, wish);
		if (!peer_await(&peer, wish) || peer.shared->phase != FBT_GPU_DORMANT)
			return 4;
		if (peer.state.status != (peer.state.cupti_version < CUPTI_VERSION_12_6
						  ? FBT_GPU_OLD_CUPTI
						  : FBT_GPU_NO_DRIVER) ||
		    strcmp(peer.path, path) != 0)
			return 5;
	}
	return peer.state.cupti_version >= CUPTI_VERSION_11_8 && peer.state.driver_version == 0 ? 0
												: 6;
}

static void test_no_driver(void **state)
{
	char path[PATH_BYTES];
	int status;
	pid_t pid;

	if (!find_library(path)) {
		print_message("SKIP no libcupti here\n");
		skip();
	}
	pid = fork();
	if (pid == 0)
		_exit(run_without_driver(path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("SKIP there is a driver here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_no_driver),
		cmocka_unit_test(test_strides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
