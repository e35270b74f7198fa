/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "steps/image.h"
#include "elf_fixture.h"

static int build(void **state)
{
	struct elf_fixture *fixture;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(fixture, "a.c",
			  "int step(int x) { return x; } int main(void) { return 0; }");
	elf_fixture_run(fixture,
			"gcc -Wl,--build-id=0x0102 a.c -o a && strip -o a.stripped a && "
			"gcc -Wl,--build-id=0x0304 a.c -o b && "
			"gcc -Wl,--build-id=none a.c -o c && cp c c.debug && "
			"strip c -o c.linked && objcopy --add-gnu-debuglink=c.debug c.linked");
	return 0;
}

static int find(struct elf_fixture *fixture, const char *name, const char *symbols)
{
	char path[128], symbol_path[128];
	const char *symbol_files[] = {symbol_path};
	struct elf_file *file = NULL, *debug = NULL;
	int fd = elf_fixture_open(fixture, name), debug_fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	snprintf(symbol_path, sizeof(symbol_path), "%s/%s", fixture->folder, symbols);
	assert_int_equal(elf_file__open(&file, fd), 0);
	debug_fd = debug_file_find(file, getpid(), path, &(struct symbol_files){symbol_files, 1},
				   DEBUG_FILE_CHECKSUM_BYTES, &debug, NULL);
	assert_true(debug_fd < 0 ? !debug : !!debug);
	elf_file__free(debug);
	elf_file__free(file);
	if (debug_fd >= 0)
		close(debug_fd);
	close(fd);
	return debug_fd < 0 ? debug_fd : 0;
}

static void check_refused(struct elf_fixture *fixture, const char *name, const char *message)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	elf_fixture_catch_log(fixture);
	assert_int_equal(debug_file_check(path, false), -EINVAL);
	elf_fixture_check_log(fixture, message);
}

static void debug_file_refuses_another_build_id(void **state)
{
	elf_fixture_need(*state, "gcc");
	assert_int_equal(find(*state, "a.stripped", "b"), -ENOENT);
}

static void debug_file_refuses_files_without_build_id(void **state)
{
	elf_fixture_need(*state, "gcc");
	assert_int_equal(find(*state, "c", "c.debug"), -ENOENT);
	check_refused(*state, "c.debug", "no build-id");
}

static void debug_file_refuses_what_has_no_symbols(void **state)
{
	elf_fixture_need(*state, "gcc");
	check_refused(*state, "a.stripped", "no symbol table");
}

static void debug_file_refuses_what_is_no_elf_file(void **state)
{
	check_refused(*state, "a.c", "not a complete ELF");
	check_refused(*state, "nothing", "No such file");
}

static void debug_file_takes_the_same_build_id(void **state)
{
	elf_fixture_need(*state, "gcc");
	assert_int_equal(find(*state, "a.stripped", "a"), 0);
}

static void debug_file_follows_a_debug_link(void **state)
{
	elf_fixture_need(*state, "objcopy");
	assert_int_equal(find(*state, "c.linked", "nothing"), 0);
}

static void debug_file_refuses_a_debug_link_with_another_checksum(void **state)
{
	struct elf_fixture *fixture = *state;

	elf_fixture_need(fixture, "objcopy");
	assert_true(elf_fixture_run(fixture, "mv c.debug kept && cp kept c.debug && "
					     "printf x >>c.debug"));
	assert_int_equal(find(fixture, "c.linked", "nothing"), -ENOENT);
	assert_true(elf_fixture_run(fixture, "mv kept c.debug"));
}

/* A process shows what it likes beside a library that others map too. */
static void debug_file_refuses_one_of_another_user(void **state)
{
	struct elf_fixture *fixture = *state;

	elf_fixture_need(fixture, "objcopy");
	if (geteuid()) {
		print_message("SKIP only root can give a file to another user\n");
		skip();
	}
	assert_int_equal(find(fixture, "c.linked", "nothing"), 0);
	assert_true(elf_fixture_run(fixture, "chown 12345 c.debug"));
	assert_int_equal(find(fixture, "c.linked", "nothing"), -ENOENT);
	/* It may be of the owner of the file itself. */
	assert_true(elf_fixture_run(fixture, "chown 12345 c.linked"));
	assert_int_equal(find(fixture, "c.linked", "nothing"), 0);
	assert_true(elf_fixture_run(fixture, "chown 0 c.debug c.linked"));
}

static void a_debug_file_has_to_agree_with_the_unwind_table(void **state)
{
	struct elf_fixture *fixture = *state;
	struct image image = {.fd = elf_fixture_open(fixture, "c.linked"), .debug_fd = -1};
	struct elf_fde fde;
	uint64_t most;

	assert_int_equal(elf_file__open(&image.elf, image.fd), 0);
	assert_int_equal(elf_fdes_read(&image.fdes, image.elf), 0);
	assert_true(image.fdes.count);
	(void)elf_fdes_find(&image.fdes, image.elf, UINT64_MAX, &fde);
	assert_true(fde.start);
	/* Without a debug file nothing is said that could be wrong. */
	assert_false(image_contradicts(&image, fde.start + 1, &most));
	image.debug = image.elf;
	assert_false(image_contradicts(&image, fde.start, &most));
	assert_true(most > 0 && most < 1 << 20);
	assert_true(image_contradicts(&image, fde.start + 1, &most));
	image.debug_is_given = true;
	assert_false(image_contradicts(&image, fde.start + 1, &most));
	elf_fdes_clear(&image.fdes);
	elf_file__free(image.elf);
	close(image.fd);
}

static long resident_pages(void)
{
	long size, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident;
}

#define LINK_BYTES "67108864"

/* The section is as large as its owner likes; the link is its first bytes. */
static void only_the_begin_of_a_debug_link_is_read(void **state)
{
	struct elf_fixture *fixture = *state;
	struct elf_file *file = NULL, *debug = NULL;
	int fd, debug_fd;
	char path[128];
	long before;

	elf_fixture_need(fixture, "objcopy");
	assert_true(elf_fixture_run(
		fixture, "objcopy --dump-section .gnu_debuglink=link c.linked c.same && "
			 "truncate -s " LINK_BYTES " link && "
			 "objcopy --update-section .gnu_debuglink=link c.linked c.long"));
	fd = elf_fixture_open(fixture, "c.long");
	snprintf(path, sizeof(path), "%s/c.long", fixture->folder);
	assert_int_equal(elf_file__open(&file, fd), 0);
	before = resident_pages();
	debug_fd = debug_file_find(file, (uint32_t)getpid(), path, &(struct symbol_files){NULL, 0},
				   DEBUG_FILE_CHECKSUM_BYTES, &debug, NULL);
	assert_true(debug_fd >= 0);
	assert_true((resident_pages() - before) * sysconf(_SC_PAGESIZE) < atol(LINK_BYTES) / 2);
	elf_file__free(debug);
	elf_file__free(file);
	close(debug_fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debug_file_refuses_another_build_id),
		cmocka_unit_test(debug_file_refuses_files_without_build_id),
		cmocka_unit_test(debug_file_refuses_what_has_no_symbols),
		cmocka_unit_test(debug_file_refuses_what_is_no_elf_file),
		cmocka_unit_test(debug_file_takes_the_same_build_id),
		cmocka_unit_test(debug_file_follows_a_debug_link),
		cmocka_unit_test(debug_file_refuses_a_debug_link_with_another_checksum),
		cmocka_unit_test(debug_file_refuses_one_of_another_user),
		cmocka_unit_test(a_debug_file_has_to_agree_with_the_unwind_table),
		cmocka_unit_test(only_the_begin_of_a_debug_link_is_read),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
