/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_fixture.h"
#include "inject/cuda_use.h"

struct fixture {
	char folder[64];
	pid_t child;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	strcpy(fixture->folder, "/tmp/fbt_cuda_XXXXXX");
	*state = fixture;
	return mkdtemp(fixture->folder) ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->child > 0) {
		kill(fixture->child, SIGKILL);
		waitpid(fixture->child, NULL, 0);
	}
	rmdir(fixture->folder);
	free(fixture);
	return 0;
}

/* Maps a file of that name, as the dynamic loader does. */
static void map_file(const struct fixture *fixture, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 4096) ||
	    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	close(fd);
	unlink(path);
}

/* Whether a child that has mapped these files lacks the shim. second may be NULL. */
static bool lacks_shim(struct fixture *fixture, const char *first, const char *second)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		map_file(fixture, first);
		if (second)
			map_file(fixture, second);
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return cuda_use_lacks_shim((uint32_t)fixture->child);
}

static void a_process_without_libcuda_does_not(void **state)
{
	assert_false(lacks_shim(*state, "libcudart.so.13", "libmycuda.so"));
}

static void a_process_with_libcuda_alone_does(void **state)
{
	assert_true(lacks_shim(*state, "libcuda.so.580.65.06", NULL));
}

static void a_process_with_both_does_not(void **state)
{
	assert_false(lacks_shim(*state, "libcuda.so.1", "libferrum_cupti.so"));
}

/* An injected shim is mapped from a memfd, so /proc shows a name without a path. */
static void a_process_with_a_shim_without_a_path_does_not(void **state)
{
	struct fixture *fixture = *state;
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		int fd = memfd_create("libferrum_cupti.so", MFD_CLOEXEC);

		map_file(fixture, "libcuda.so.1");
		if (fd < 0 || ftruncate(fd, 4096) ||
		    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(1);
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	assert_false(cuda_use_lacks_shim((uint32_t)fixture->child));
}

/* A forked child without a driver thread has libcuda mapped only because its parent has. */
static void what_a_fork_has_is_its_parents(void **state)
{
	struct fixture *fixture = *state;
	uint32_t pids[2];
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		map_file(fixture, "libcuda.so.1");
		if (!fork())
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		pids[0] = (uint32_t)getpid();
		if (write(ends[1], pids, sizeof(pids[0])) == sizeof(pids[0]))
			pause();
		_exit(1);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(ends[0], &pids[i], sizeof(pids[i])), sizeof(pids[i]));
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 2; i++) {
		assert_true(cuda_use_is_there(pids[i]));
		assert_int_equal(cuda_use_is_inherited(pids[i]),
				 pids[i] != (uint32_t)fixture->child);
	}
}

static void *rest(void *name)
{
	prctl(PR_SET_NAME, name);
	pause();
	return NULL;
}

/* A forked child with a driver thread uses CUDA itself. */
static void a_thread_of_the_driver_is_not_inherited(void **state)
{
	struct fixture *fixture = *state;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		map_file(fixture, "libcuda.so.1");
		child = fork();
		if (!child) {
			pthread_t thread;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pthread_create(&thread, NULL, rest, (void *)"cuda-EvtHandlr");
			child = getpid();
			usleep(10000);
			if (write(ends[1], &child, sizeof(child)) != sizeof(child))
				_exit(1);
		}
		pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &child, sizeof(child)), sizeof(child));
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 5000 && cuda_use_is_inherited((uint32_t)child); i++)
		usleep(1000);
	assert_false(cuda_use_is_inherited((uint32_t)child));
}

static void a_process_that_is_gone_does_not(void **state)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_false(cuda_use_lacks_shim((uint32_t)child));
}

/* A program must be started for this: /proc shows only the initial environment. */
static enum cuda_injection injection_of(struct fixture *fixture, const char *variable,
					char path[CUDA_PATH_SIZE])
{
	char script[256];
	char *const environment[] = {(char *)variable, NULL};
	int ends[2];
	char byte;

	snprintf(script, sizeof(script),
		 "import mmap, os\nf = open('%s/libcuda.so.1', 'w+b'); f.truncate(4096)\n"
		 "m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE)\nos.unlink(f.name)\n"
		 "os.write(1, b'x')\nimport signal; signal.pause()\n",
		 fixture->folder);
	assert_int_equal(pipe(ends), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		dup2(ends[1], STDOUT_FILENO);
		execle("/usr/bin/python3", "python3", "-S", "-c", script, NULL, environment);
		_exit(1);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		skip();
	close(ends[0]);
	assert_true(cuda_use_lacks_shim((uint32_t)fixture->child));
	return cuda_use_injection((uint32_t)fixture->child, path);
}

static void a_shim_that_is_named_is_found(void **state)
{
	struct fixture *fixture = *state;
	char path[128], variable[192], found[CUDA_PATH_SIZE];

	snprintf(path, sizeof(path), "%s/libferrum_cupti.so", fixture->folder);
	snprintf(variable, sizeof(variable), "CUDA_INJECTION64_PATH=%s", path);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(injection_of(fixture, variable, found), CUDA_INJECTION_SHIM);
	unlink(path);
	assert_string_equal(found, path);
	assert_int_equal(cuda_use_injection((uint32_t)fixture->child, found),
			 CUDA_INJECTION_MISSING);
}

static void a_path_where_nothing_is_is_missing(void **state)
{
	char found[CUDA_PATH_SIZE];

	assert_int_equal(
		injection_of(*state, "CUDA_INJECTION64_PATH=/opt/x/libferrum_cupti.so", found),
		CUDA_INJECTION_MISSING);
	assert_string_equal(found, "/opt/x/libferrum_cupti.so");
}

static void another_library_in_its_place_is_told(void **state)
{
	char found[CUDA_PATH_SIZE];

	assert_int_equal(
		injection_of(*state, "CUDA_INJECTION64_PATH=/opt/nsys/libInjection64.so", found),
		CUDA_INJECTION_OTHER);
	assert_string_equal(found, "/opt/nsys/libInjection64.so");
}

static void an_empty_name_is_none(void **state)
{
	char found[CUDA_PATH_SIZE];

	assert_int_equal(injection_of(*state, "CUDA_INJECTION64_PATH=", found),
			 CUDA_INJECTION_NONE);
	assert_string_equal(found, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_without_libcuda_does_not),
		TEST(a_process_with_libcuda_alone_does),
		TEST(a_process_with_both_does_not),
		TEST(a_process_with_a_shim_without_a_path_does_not),
		TEST(what_a_fork_has_is_its_parents),
		TEST(a_thread_of_the_driver_is_not_inherited),
		TEST(a_process_that_is_gone_does_not),
		TEST(a_shim_that_is_named_is_found),
		TEST(a_path_where_nothing_is_is_missing),
		TEST(another_library_in_its_place_is_told),
		TEST(an_empty_name_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
