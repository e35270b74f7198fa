/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "elf/elf_file.h"
#include "inject/python_use.h"

static void the_version_is_in_the_name_of_the_file(void **state)
{
	assert_int_equal(python_use_minor("python3.11"), 11);
	assert_int_equal(python_use_minor("libpython3.9.so.1.0"), 9);
	assert_int_equal(python_use_minor("libpython3.13t.so.1.0"), 13);
}

static void a_free_threaded_build_is_told_by_a_letter(void **state)
{
	assert_true(python_use_is_threaded("python3.14t"));
	assert_true(python_use_is_threaded("libpython3.13t.so.1.0"));
	assert_false(python_use_is_threaded("python3.14"));
	assert_false(python_use_is_threaded("libpython3.13.so.1.0"));
	assert_false(python_use_is_threaded("pythont"));
}

static void other_files_are_no_interpreters(void **state)
{
	assert_int_equal(python_use_minor("python3"), 0);
	assert_int_equal(python_use_minor("libpython3.so"), 0);
	assert_int_equal(python_use_minor("_json.cpython-311-x86_64-linux-gnu.so"), 0);
	assert_int_equal(python_use_minor("libboost_python311.so"), 0);
	assert_int_equal(python_use_minor(""), 0);
}

static void a_program_without_python_has_none(void **state)
{
	assert_false(python_use_is_there((uint32_t)getpid()));
}

/* What the interpreters of this machine export is what their names say. */
static void a_copy_is_known_by_what_it_exports(void **state)
{
	char path[] = "/usr/bin/python3.00";
	unsigned int found = 0;

	for (unsigned int minor = PYTHON_MINOR_MIN; minor <= PYTHON_MINOR_MAX; minor++) {
		struct elf_file *file = NULL;
		struct python_version version;
		int fd;

		snprintf(path, sizeof(path), "/usr/bin/python3.%u", minor);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || elf_file__open(&file, fd))
			continue;
		version = python_use_exports(file);
		/* One that is linked with libpython has nothing itself. */
		assert_true(!version.minor || version.minor == minor);
		assert_false(version.threaded);
		found += version.minor != 0;
		elf_file__free(file);
		close(fd);
	}
	if (!found)
		skip();
}

static void a_program_of_another_kind_exports_no_interpreter(void **state)
{
	struct elf_file *file = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(python_use_exports(file).minor, 0);
	elf_file__free(file);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_version_is_in_the_name_of_the_file),
		cmocka_unit_test(a_free_threaded_build_is_told_by_a_letter),
		cmocka_unit_test(other_files_are_no_interpreters),
		cmocka_unit_test(a_program_without_python_has_none),
		cmocka_unit_test(a_copy_is_known_by_what_it_exports),
		cmocka_unit_test(a_program_of_another_kind_exports_no_interpreter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
