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

#define SHIM "/opt/ferrum/lib/ferrum-bpftrace/libferrum_cupti.so"

struct fixture {
	char folder[64];
	char file[128]; /* what gpu-env printed */
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

/* Of a shell, to which the argument is $FILE. */
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

/* What is found for a program in the folder bin is the file of that name. */
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
	/* That of a build is nearer. */
	make_file(fixture, "bin/libferrum_cupti.so");
	assert_found(fixture, "bin/libferrum_cupti.so");
}

static void print(const struct fixture *fixture)
{
	FILE *file = fopen(fixture->file, "we");

	assert_non_null(file);
	assert_int_equal(gpu_env_print_for(file, SHIM), 0);
	fclose(file);
}

static void the_shell_lines_set_the_variable(void **state)
{
	struct fixture *fixture = *state;

	print(fixture);
	assert_int_equal(run("sh -c '. /dev/stdin; test \"$CUDA_INJECTION64_PATH\" = " SHIM
			     "' <<END\n$(grep ^export \"$FILE\")\nEND\n",
			     fixture->file),
			 0);
}

static void the_unit_has_one_environment_line(void **state)
{
	struct fixture *fixture = *state;

	print(fixture);
	assert_int_equal(
		run("test \"$(sed -n '/^\\[Service\\]/,/^$/p' \"$FILE\" | grep -v '^$')\" = "
		    "'[Service]\nEnvironment=\"CUDA_INJECTION64_PATH=" SHIM "\"'",
		    fixture->file),
		0);
}

/* "docker" is a function that looks at what it was given. */
static void the_docker_command_has_mount_and_variable(void **state)
{
	struct fixture *fixture = *state;

	print(fixture);
	assert_int_equal(run("docker() { test \"$1 $2 $3\" = \"run --mount type=bind,source=" SHIM
			     ",target=/opt/ferrum/libferrum_cupti.so,readonly\" &&"
			     " test \"$4 $5\" = \"--env "
			     "CUDA_INJECTION64_PATH=/opt/ferrum/libferrum_cupti.so\";"
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
		    "mount, volume = engine['volumeMounts'][0], spec['volumes'][0]\n"
		    "assert engine['env'] == [{'name': 'CUDA_INJECTION64_PATH',"
		    " 'value': mount['mountPath']}]\n"
		    "assert mount['name'] == volume['name'] and mount['readOnly'] is True\n"
		    "assert volume['hostPath'] == {'path': '" SHIM "', 'type': 'File'}\n"
		    "END\n",
		    fixture->file),
		0);
}

static void a_path_that_cannot_be_quoted_is_refused(void **state)
{
	static const char *const paths[] = {"/o'/x", "/o\"/x", "/o\\/x", "/o$x", "/o,x", "/o%x"};
	void *text = NULL;
	FILE *file = fopen("/dev/null", "we");

	assert_int_equal(stderr_setup(&text), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(gpu_env_print_for(file, paths[i]), -EINVAL);
	assert_non_null(strstr(stderr_text(text),
			       "/o%x: install it where the path has none of ' \" \\ $ % ,"));
	fclose(file);
	stderr_teardown(&text);
}

static void a_full_disk_is_told(void **state)
{
	void *text = NULL;
	FILE *file = fopen("/dev/full", "we");

	assert_int_equal(stderr_setup(&text), 0);
	assert_int_equal(gpu_env_print_for(file, SHIM), -ENOSPC);
	assert_one_line(text, "gpu-env: No space left");
	stderr_teardown(&text);
	fclose(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_file_there_is_no_path),
		TEST(the_installed_one_is_found),
		TEST(the_shell_lines_set_the_variable),
		TEST(the_unit_has_one_environment_line),
		TEST(the_docker_command_has_mount_and_variable),
		TEST(the_pod_is_yaml),
		TEST(a_path_that_cannot_be_quoted_is_refused),
		TEST(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
