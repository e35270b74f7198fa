/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "shim/library.h"
#include "stderr_fixture.h"

#define SHIM   "/opt/ferrum/lib/ferrum-bpftrace/libferrum_cupti.so"
#define PYTHON "/opt/ferrum/lib/ferrum-bpftrace/libferrum_python.so"

static const struct engine_libraries both = {SHIM, PYTHON};

struct fixture {
	char folder[64];
	char file[128]; /* what engine-env printed */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	strcpy(fixture->folder, "/tmp/fbt_shim_XXXXXX");
	if (!mkdtemp(fixture->folder))
		return -1;
	snprintf(fixture->file, sizeof(fixture->file), "%s/printed", fixture->folder);
	*state = fixture;
	return 0;
}

/* Runs a shell script; $FILE is the argument. */
static int run(const char *script, const char *argument)
{
	setenv("FILE", argument, 1);
	return system(script);
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	run("rm -rf \"$FILE\"", fixture->folder);
	free(fixture);
	return 0;
}

static void make_file(const struct fixture *fixture, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

static void make_folder(const struct fixture *fixture, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

/* Asserts which file is found for a program in the folder bin. */
static void assert_found(const struct fixture *fixture, const char *name)
{
	char program[256], path[256];
	char *found;

	snprintf(program, sizeof(program), "%s/bin/ferrum-bpftrace", fixture->folder);
	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	found = gpu_shim_path_from(program);
	assert_non_null(found);
	assert_string_equal(found, path);
	free(found);
}

static void without_a_file_there_is_no_path(void **state)
{
	struct fixture *fixture = *state;
	char program[256];

	snprintf(program, sizeof(program), "%s/ferrum-bpftrace", fixture->folder);
	assert_null(gpu_shim_path_from(program));
	assert_null(gpu_shim_path_from("ferrum-bpftrace"));
	assert_null(gpu_shim_path_from(""));
}

static void the_installed_one_is_found(void **state)
{
	struct fixture *fixture = *state;

	make_folder(fixture, "bin");
	make_folder(fixture, "lib");
	make_folder(fixture, "lib/ferrum-bpftrace");
	make_file(fixture, "lib/ferrum-bpftrace/libferrum_cupti.so");
	assert_found(fixture, "lib/ferrum-bpftrace/libferrum_cupti.so");
	/* The library beside the program, as in a build, is preferred. */
	make_file(fixture, "bin/libferrum_cupti.so");
	assert_found(fixture, "bin/libferrum_cupti.so");
}

static void print(const struct fixture *fixture)
{
	FILE *file = fopen(fixture->file, "we");

	assert_non_null(file);
	assert_int_equal(engine_env_print_for(file, &both), 0);
	fclose(file);
}

static void the_shell_lines_set_the_variables(void **state)
{
	struct fixture *fixture = *state;

	print(fixture);
	assert_int_equal(run("sh -c '. /dev/stdin; test \"$CUDA_INJECTION64_PATH $LD_PRELOAD\" = "
			     "\"" SHIM " " PYTHON "\"' <<END\n$(grep ^export \"$FILE\")\nEND\n",
			     fixture->file),
			 0);
	/* A library that is already in LD_PRELOAD stays there. */
	assert_int_equal(run("sh -c 'LD_PRELOAD=/x.so; . /dev/stdin; test \"$LD_PRELOAD\" = "
			     "\"" PYTHON ":/x.so\"' <<END\n$(grep ^export \"$FILE\")\nEND\n",
			     fixture->file),
			 0);
}

static void the_unit_has_a_line_for_each_variable(void **state)
{
	struct fixture *fixture = *state;

	print(fixture);
	assert_int_equal(
		run("test \"$(sed -n '/^\\[Service\\]/,/^$/p' \"$FILE\" | grep -v '^$')\" = "
		    "'[Service]\nEnvironment=\"CUDA_INJECTION64_PATH=" SHIM "\"\n"
		    "Environment=\"LD_PRELOAD=" PYTHON "\"'",
		    fixture->file),
		0);
}

/* "docker" is a shell function that compares its arguments. */
static void the_docker_command_has_mounts_and_variables(void **state)
{
	struct fixture *fixture = *state;

	print(fixture);
	assert_int_equal(run("docker() { test \"$1 $2 $3\" = \"run --mount type=bind,source=" SHIM
			     ",target=/opt/ferrum/libferrum_cupti.so,readonly\" &&"
			     " test \"$4 $5\" = \"--env "
			     "CUDA_INJECTION64_PATH=/opt/ferrum/libferrum_cupti.so\" &&"
			     " test \"$6 $7\" = \"--mount type=bind,source=" PYTHON
			     ",target=/opt/ferrum/libferrum_python.so,readonly\" &&"
			     " test \"$8 $9\" = \"--env "
			     "LD_PRELOAD=/opt/ferrum/libferrum_python.so\";"
			     " }; eval \"$(sed -n '/^docker/,/^$/p' \"$FILE\")\"",
			     fixture->file),
			 0);
}

static void the_pod_is_yaml(void **state)
{
	struct fixture *fixture = *state;

	if (system("python3 -c 'import yaml' 2>/dev/null"))
		skip();
	print(fixture);
	assert_int_equal(
		run("python3 - \"$FILE\" <<'END'\n"
		    "import sys, yaml\n"
		    "spec = yaml.safe_load(open(sys.argv[1]).read().split('--- Kubernetes')[1]"
		    ".split('\\n', 1)[1])['spec']\n"
		    "engine = spec['containers'][0]\n"
		    "mounts, volumes = engine['volumeMounts'], spec['volumes']\n"
		    "assert engine['env'] == [{'name': name, 'value': mount['mountPath']} for "
		    "name, "
		    "mount in zip(('CUDA_INJECTION64_PATH', 'LD_PRELOAD'), mounts)]\n"
		    "assert [mount['name'] for mount in mounts] == [volume['name'] for volume in "
		    "volumes]\n"
		    "assert all(mount['readOnly'] is True for mount in mounts)\n"
		    "assert [volume['hostPath'] for volume in volumes] == [{'path': path, 'type': "
		    "'File'} for path in ('" SHIM "', '" PYTHON "')]\n"
		    "END\n",
		    fixture->file),
		0);
}

static void a_library_that_is_not_there_is_left_out(void **state)
{
	const struct fixture *fixture = *state;
	FILE *file = fopen(fixture->file, "we");

	assert_int_equal(engine_env_print_for(file, &(struct engine_libraries){SHIM, NULL}), 0);
	fclose(file);
	assert_int_equal(run("! grep -q 'LD_PRELOAD\\|python' \"$FILE\"", fixture->file), 0);
	file = fopen(fixture->file, "we");
	assert_int_equal(engine_env_print_for(file, &(struct engine_libraries){NULL, PYTHON}), 0);
	fclose(file);
	assert_int_equal(run("! grep -qi 'cu[dp]' \"$FILE\"", fixture->file), 0);
}

static void a_path_that_cannot_be_quoted_is_refused(void **state)
{
	static const char *const paths[] = {"/o'/x", "/o\"/x", "/o\\/x", "/o$x", "/o,x", "/o%x"};
	void *text = NULL;
	FILE *file = fopen("/dev/null", "we");

	assert_int_equal(stderr_setup(&text), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(
			engine_env_print_for(file, &(struct engine_libraries){paths[i], NULL}),
			-EINVAL);
	assert_non_null(strstr(stderr_text(text),
			       "/o%x: install it where the path has none of ' \" \\ $ % ,"));
	/* LD_PRELOAD has no way to quote a space. */
	assert_int_equal(engine_env_print_for(file, &(struct engine_libraries){"/o x", NULL}), 0);
	assert_int_equal(engine_env_print_for(file, &(struct engine_libraries){NULL, "/o x"}),
			 -EINVAL);
	assert_int_equal(engine_env_print_for(file, &(struct engine_libraries){NULL, "/o:x"}),
			 -EINVAL);
	fclose(file);
	stderr_teardown(&text);
}

static void a_full_disk_is_told(void **state)
{
	void *text = NULL;
	FILE *file = fopen("/dev/full", "we");

	assert_int_equal(stderr_setup(&text), 0);
	assert_int_equal(engine_env_print_for(file, &both), -ENOSPC);
	assert_one_line(text, "engine-env: No space left");
	stderr_teardown(&text);
	fclose(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_file_there_is_no_path),
		TEST(the_installed_one_is_found),
		TEST(the_shell_lines_set_the_variables),
		TEST(the_unit_has_a_line_for_each_variable),
		TEST(the_docker_command_has_mounts_and_variables),
		TEST(the_pod_is_yaml),
		TEST(a_library_that_is_not_there_is_left_out),
		TEST(a_path_that_cannot_be_quoted_is_refused),
		TEST(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
