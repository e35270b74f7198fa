/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "elf/symbol_files.h"
#include "elf_fixture.h"

static const uint8_t id[] = {0xab, 0xcd, 0xef};

static int build(void **state)
{
	struct elf_fixture *fixture;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(fixture, "a.c", "int main(void) { return 0; }");
	elf_fixture_run(
		fixture,
		"gcc -Wl,--build-id=0xabcdef a.c -o a && "
		"gcc -Wl,--build-id=0xabcd00 a.c -o b && "
		"mkdir -p gdb/.build-id/ab plain/ab cache/abcdef wrong/.build-id/ab empty && "
		"cp a gdb/.build-id/ab/cdef.debug && cp a plain/ab/cdef.debug && "
		"cp a cache/abcdef/debuginfo && cp b wrong/.build-id/ab/cdef.debug");
	return 0;
}

static int open_symbols(struct elf_fixture *fixture, const char *name, size_t id_size)
{
	struct elf_file *elf = NULL;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	fd = symbol_file_open(path, id, id_size, &elf);
	assert_true(fd < 0 ? !elf : !!elf);
	elf_file__free(elf);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void a_file_is_told_by_its_build_id(void **state)
{
	elf_fixture_need(*state, "gcc");
	assert_int_equal(open_symbols(*state, "a", 3), 0);
	assert_int_equal(open_symbols(*state, "b", 3), -ESTALE);
	assert_int_equal(open_symbols(*state, "a", 2), -ESTALE);
	assert_int_equal(open_symbols(*state, "a", 0), -ENOENT);
	assert_int_equal(open_symbols(*state, "a.c", 3), -ENOEXEC);
	assert_int_equal(open_symbols(*state, "nothing", 3), -ENOENT);
}

static void a_folder_is_as_gdb_or_debuginfod_has_it(void **state)
{
	elf_fixture_need(*state, "gcc");
	assert_int_equal(open_symbols(*state, "gdb", 3), 0);
	assert_int_equal(open_symbols(*state, "plain", 3), 0);
	assert_int_equal(open_symbols(*state, "cache", 3), 0);
	assert_int_equal(open_symbols(*state, "empty", 3), -ENOENT);
	assert_int_equal(open_symbols(*state, "gdb", 2), -ENOENT);
}

static void a_file_at_the_wrong_place_is_refused_in_words(void **state)
{
	elf_fixture_need(*state, "gcc");
	elf_fixture_catch_log(*state);
	assert_int_equal(open_symbols(*state, "wrong", 3), -ESTALE);
	elf_fixture_check_log(*state, "/.build-id/ab/cdef.debug has another build-id");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_told_by_its_build_id),
		cmocka_unit_test(a_folder_is_as_gdb_or_debuginfod_has_it),
		cmocka_unit_test(a_file_at_the_wrong_place_is_refused_in_words),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
