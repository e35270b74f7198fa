/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which functions of a file are remembered, so that its symbols are not gone through again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/clock.h"
#include "elf_fixture.h"
#include "elf/symbols.h"
#include "stacks/files.h"
#include "stacks/functions.h"
#include "stderr_fixture.h"

/* first has 16 bytes, 48 without a function follow, second has 32, and inner 8 of these. */
#define CODE                                                                                       \
	"__asm__(\".text\\n.globl first\\n.type first, %%function\\nfirst: .skip 16\\n\"\n"        \
	"\".size first, %d\\n.skip 48\\n.globl second\\n.type second, %%function\\n\"\n"           \
	"\"second: .skip 32\\n.size second, 32\\n.globl inner\\n.type inner, %%function\\n\"\n"    \
	"\".set inner, second + 8\\n.size inner, 8\\n.skip 64\\n\");\n"
#define GAP 48

static uint64_t first, second;

static bool compile(struct elf_fixture *fixture, const char *name, int first_bytes)
{
	char text[1024];

	snprintf(text, sizeof(text), CODE, first_bytes);
	elf_fixture_write(fixture, "a.c", text);
	return elf_fixture_run(fixture, "gcc -shared -nostdlib -Wl,--build-id=none a.c -o %s",
			       name);
}

static int build(void **state)
{
	struct elf_symbols symbols;
	struct elf_file *elf = NULL;
	int fd;

	if (elf_fixture_set_up(state))
		return -1;
	/* In wide, first reaches up to second. */
	if (!compile(*state, "lib", 16) || !compile(*state, "wide", 16 + GAP))
		return 0;
	fd = elf_fixture_open(*state, "lib");
	assert_int_equal(elf_file__open(&elf, fd), 0);
	assert_int_equal(elf_symbols_read(&symbols, elf), 0);
	for (size_t i = 0; i < symbols.count; i++) {
		if (!strcmp(symbols.items[i].name, "first"))
			first = symbols.items[i].address;
		if (!strcmp(symbols.items[i].name, "second"))
			second = symbols.items[i].address;
	}
	elf_symbols_clear(&symbols);
	elf_file__free(elf);
	close(fd);
	return 0;
}

struct opened {
	int fd;
	struct elf_file *elf;
	struct functions functions;
};

static void open_lib(struct opened *opened, struct elf_fixture *fixture)
{
	*opened = (struct opened){.fd = elf_fixture_open(fixture, "lib")};
	assert_int_equal(elf_file__open(&opened->elf, opened->fd), 0);
}

static void close_lib(struct opened *opened)
{
	functions_clear(&opened->functions);
	elf_file__free(opened->elf);
	close(opened->fd);
}

static void read_all(struct opened *opened, struct elf_wanted *wanted, size_t count)
{
	bool complete = false;

	functions_read(&opened->functions, opened->elf, wanted, count, &complete);
	functions_keep_nameless(&opened->functions, wanted, count);
	assert_true(complete);
}

static void check_range(const struct functions *functions, uint64_t low, uint64_t high,
			uint64_t start, const char *name)
{
	const struct function *function = functions_find(functions, low);

	assert_non_null(function);
	assert_ptr_equal(functions_find(functions, high - 1), function);
	assert_ptr_not_equal(functions_find(functions, high), function);
	assert_int_equal(function->low, low);
	assert_int_equal(function->start, start);
	if (name)
		assert_string_equal(function->name, name);
	else
		assert_null(function->name);
}

static void the_gap_between_two_functions_is_remembered(void **state)
{
	struct opened opened;

	elf_fixture_need(*state, "gcc");
	open_lib(&opened, *state);
	read_all(&opened, &(struct elf_wanted){.address = first + 20}, 1);
	check_range(&opened.functions, first + 16, second, 0, NULL);
	assert_null(functions_find(&opened.functions, first + 15));
	read_all(&opened, &(struct elf_wanted){.address = first + 3}, 1);
	check_range(&opened.functions, first, first + 16, first, "first");
	check_range(&opened.functions, first + 16, second, 0, NULL);
	close_lib(&opened);
}

static void all_of_a_function_in_which_another_one_begins_is_remembered(void **state)
{
	struct elf_wanted wanted[] = {
		{.address = second + 4}, {.address = second + 8}, {.address = second + 20}};
	struct opened opened;

	elf_fixture_need(*state, "gcc");
	open_lib(&opened, *state);
	read_all(&opened, wanted, 3);
	assert_int_equal(opened.functions.items.count, 3);
	check_range(&opened.functions, second, second + 8, second, "second");
	check_range(&opened.functions, second + 8, second + 16, second + 8, "inner");
	check_range(&opened.functions, second + 16, second + 32, second, "second");
	close_lib(&opened);
}

static void a_file_without_symbols_is_gone_through_once(void **state)
{
	struct functions functions = {0};
	struct elf_wanted wanted = {.address = 100, .low = 0, .high = UINT64_MAX};

	(void)state;
	functions_keep_nameless(&functions, &wanted, 1);
	assert_non_null(functions_find(&functions, 7));
	assert_null(functions_find(&functions, 7)->name);
	functions_clear(&functions);
}

static uint32_t add_lib(struct code_files *files, struct elf_fixture *fixture)
{
	char path[128];
	struct mapping mapping = {.path = path};
	struct stat status;

	snprintf(path, sizeof(path), "%s/lib", fixture->folder);
	assert_int_equal(stat(path, &status), 0);
	mapping.inode = status.st_ino;
	return code_files__add(files, (uint32_t)getpid(), &mapping, 1);
}

/* Subvolumes of btrfs have one device in maps, and each its own inode numbers. */
static void files_of_one_number_are_told_apart_by_their_paths(void **state)
{
	struct code_files *files = code_files__new(&(struct symbol_files){NULL, 0});
	char paths[2][8] = {"/none/a", "/none/b"};
	struct mapping one = {.path = paths[0], .inode = 7}, other = {.path = paths[1], .inode = 7};
	uint32_t tgid = (uint32_t)getpid(), number;

	(void)state;
	number = code_files__add(files, tgid, &one, 1);
	assert_int_not_equal(code_files__add(files, tgid, &other, 1), number);
	assert_int_equal(code_files__add(files, tgid, &one, 1), number);
	code_files__free(files);
}

/* What was read of it is not the code of the processes that map it from then on. */
static void a_file_that_is_written_anew_in_place_is_another_one(void **state)
{
	struct elf_fixture *fixture = *state;
	struct code_files *files = code_files__new(&(struct symbol_files){NULL, 0});
	uint32_t number;

	elf_fixture_need(fixture, "gcc");
	number = add_lib(files, fixture);
	assert_int_equal(add_lib(files, fixture), number);
	assert_true(
		elf_fixture_run(fixture, "cp lib copy; printf x >>copy; cat copy >lib; rm copy"));
	assert_int_not_equal(add_lib(files, fixture), number);
	assert_non_null(code_files__elf(files, add_lib(files, fixture)));
	code_files__free(files);
}

static void a_file_that_could_not_be_opened_is_tried_again(void **state)
{
	struct elf_fixture *fixture = *state;
	struct code_files *files = code_files__new(&(struct symbol_files){NULL, 0});
	uint32_t tgid = (uint32_t)getpid(), number;
	char path[128];
	struct mapping mapping = {.path = path};
	struct stat status;

	elf_fixture_need(fixture, "gcc");
	snprintf(path, sizeof(path), "%s/lib", fixture->folder);
	assert_int_equal(stat(path, &status), 0);
	mapping.inode = status.st_ino;
	assert_true(elf_fixture_run(fixture, "mv lib away"));
	number = code_files__add(files, tgid, &mapping, NS_PER_S);
	assert_null(code_files__elf(files, number));
	assert_string_equal(code_files__path(files, number), path);
	assert_true(elf_fixture_run(fixture, "mv away lib"));
	/* Not for each stack. */
	assert_int_equal(code_files__add(files, tgid, &mapping, NS_PER_S + 1), number);
	assert_null(code_files__elf(files, number));
	assert_int_equal(code_files__add(files, tgid, &mapping, 2 * NS_PER_S), number);
	assert_non_null(code_files__elf(files, number));
	code_files__free(files);
}

static const char *name_of(struct code_files *files, uint32_t number, uint64_t address)
{
	struct code_name name = {.address = address};

	code_files__name(files, number, &name, 1);
	return name.name;
}

/* The symbols change in place, which only who reads them again can see. */
static void code_without_a_name_is_looked_for_once(void **state)
{
	struct code_files *files = code_files__new(&(struct symbol_files){NULL, 0});
	struct code_files *later = code_files__new(&(struct symbol_files){NULL, 0});
	uint32_t number;

	elf_fixture_need(*state, "gcc");
	number = add_lib(files, *state);
	assert_null(name_of(files, number, first + 20));
	assert_true(elf_fixture_run(*state, "cat wide > lib"));
	assert_string_equal(name_of(later, add_lib(later, *state), first + 40), "first");
	assert_null(name_of(files, number, first + 40));
	code_files__free(files);
	code_files__free(later);
}

/* The name of first in a file whose symbols are in another one of that size, which it links to. */
static const char *name_by_link(struct code_files *files, struct elf_fixture *fixture,
				const char *name, const char *size)
{
	char path[128];
	struct mapping mapping = {.path = path};
	struct stat status;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	assert_true(elf_fixture_run(fixture,
				    "cp local %s.debug && truncate -s %s %s.debug && "
				    "strip -o bare local && "
				    "objcopy --add-gnu-debuglink=%s.debug bare %s",
				    name, size, name, name, name));
	assert_int_equal(stat(path, &status), 0);
	mapping.inode = status.st_ino;
	return name_of(files, code_files__add(files, (uint32_t)getpid(), &mapping, 1), first);
}

/* A file may have any number of symbols. */
static void symbols_that_take_too_long_are_not_gone_through_again(void **state)
{
	struct code_files *files = code_files__new(&(struct symbol_files){NULL, 0});
	void *said = NULL;
	uint32_t number;

	elf_fixture_need(*state, "gcc");
	code_files__set_cpu_limit(files, 1);
	number = add_lib(files, *state);
	assert_int_equal(stderr_setup(&said), 0);
	assert_string_equal(name_of(files, number, first), "first");
	assert_null(name_of(files, number, second));
	assert_null(name_of(files, number, second));
	assert_string_equal(name_of(files, number, first), "first");
	assert_one_line(said, "have no names in stacks");
	stderr_teardown(&said);
	code_files__free(files);
}

/* Its checksum is made while stacks wait. */
static void a_large_debug_file_is_not_taken_by_its_checksum(void **state)
{
	struct code_files *files = code_files__new(&(struct symbol_files){NULL, 0});
	const char *name;

	elf_fixture_need(*state, "objcopy");
	/* Without symbols for the linker. */
	elf_fixture_write(*state, "map", "{ local: *; };");
	assert_true(elf_fixture_run(*state, "gcc -shared -nostdlib -Wl,--build-id=none "
					    "-Wl,--version-script=map a.c -o local"));
	name = name_by_link(files, *state, "small", "1M");
	assert_non_null(name);
	assert_string_equal(name, "first");
	assert_null(name_by_link(files, *state, "large", "40M"));
	code_files__free(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_gap_between_two_functions_is_remembered),
		cmocka_unit_test(all_of_a_function_in_which_another_one_begins_is_remembered),
		cmocka_unit_test(a_file_without_symbols_is_gone_through_once),
		cmocka_unit_test(files_of_one_number_are_told_apart_by_their_paths),
		cmocka_unit_test(a_file_that_is_written_anew_in_place_is_another_one),
		cmocka_unit_test(a_file_that_could_not_be_opened_is_tried_again),
		cmocka_unit_test(symbols_that_take_too_long_are_not_gone_through_again),
		cmocka_unit_test(a_large_debug_file_is_not_taken_by_its_checksum),
		cmocka_unit_test(code_without_a_name_is_looked_for_once),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
