/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "elf_fixture.h"
#include "steps/text_users.h"

/*
 * Each way in which code refers to a text has a text of its own. format has rustc's layout: its
 * length precedes the text.
 */
static const char source[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#define STEP __attribute__((noinline, used))\n"
	"STEP int by_address(int x) { return printf(\"text by address %d\", x) + 1; }\n"
	"const char *const words[] = {\"another word\", \"text in an array\", \"one more word\"};\n"
	"STEP const char *in_array(int x) { return words[x & 1]; }\n"
	"struct note { const char *text; long size; };\n"
	"struct note note = {\"text by a pointer\", 17};\n"
	"STEP int by_pointer(int x) { return puts(note.text) + x; }\n"
	"__attribute__((visibility(\"default\"))) struct note exported = {\"text by the GOT\", "
	"15};\n"
	"STEP int by_got(int x) { return puts(exported.text) + x; }\n"
	"const char format[] = \"\\xc0\\x1atext of a format in Rust: \\xc0\";\n"
	"STEP const char *by_format(int x) { return x ? format + 1 : 0; }\n"
	"STEP int first_of_two(int x) { return printf(\"text of two %d\", x) + 1; }\n"
	"STEP int second_of_two(int x) { return printf(\"text of two %d\", x) + 2; }\n"
	"__attribute__((cold, noreturn, noinline)) void die(const char *why) { puts(why); abort(); "
	"}\n"
	"STEP int split(int x) { if (x > 7) die(\"text of a cold piece\");\n"
	"	return printf(\"%d\", x) + 3; }\n"
	"int main(int argc, char **argv) { (void)argv; if (argc > 1) return by_address(argc)\n"
	"	+ by_pointer(argc) + by_got(argc) + *by_format(argc) + first_of_two(argc)\n"
	"	+ second_of_two(argc) + split(argc) + *in_array(argc); }\n";

static int build_texts(void **state)
{
	struct elf_fixture *fixture;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(fixture, "texts.c", source);
	elf_fixture_run(fixture, "gcc -O2 -fPIE -pie texts.c -o pie && strip -o pie_s pie");
	elf_fixture_run(fixture, "gcc -O2 -fPIC -shared texts.c -o shared && "
				 "strip -o shared_s shared");
	elf_fixture_run(fixture, "gcc -O2 -fno-pie -no-pie texts.c -o fixed && "
				 "strip -o fixed_s fixed");
	elf_fixture_run(fixture,
			"gcc -O2 -fPIE -pie -Wl,-z,pack-relative-relocs texts.c -o relr && "
			"strip -o relr_s relr");
	return 0;
}

static uint64_t address_of(struct elf_fixture *fixture, const char *file, const char *symbol)
{
	unsigned long long address = 0;
	char command[256];
	FILE *pipe;

	snprintf(command, sizeof(command), "nm %s/%s | awk '$3 == \"%s\" {print $1}'",
		 fixture->folder, file, symbol);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%llx", &address), 1);
	pclose(pipe);
	return address;
}

/* The functions that refer to text in the stripped program FILE_s. */
static text_user_vec users_of(struct elf_fixture *fixture, const char *file, const char *text)
{
	struct image image = {.fd = -1, .debug_fd = -1};
	text_user_vec users = {0};
	char stripped[64];

	snprintf(stripped, sizeof(stripped), "%s_s", file);
	image.fd = elf_fixture_open(fixture, stripped);
	assert_int_equal(elf_file__open(&image.elf, image.fd), 0);
	assert_int_equal(elf_fdes_read(&image.fdes, image.elf), 0);
	assert_int_equal(text_users_find(&users, &image, text, 0), 0);
	image_close(&image);
	return users;
}

static void check_one(struct elf_fixture *fixture, const char *file, const char *text,
		      const char *function)
{
	text_user_vec users = users_of(fixture, file, text);

	if (users.count != 1 || users.items[0].address != address_of(fixture, file, function))
		fail_msg("%s: '%s' is in %zu functions, not only in %s", file, text, users.count,
			 function);
	assert_true(users.items[0].size > 0);
	vec_free(&users);
}

static void check_all(struct elf_fixture *fixture, const char *file)
{
	elf_fixture_need(fixture, "gcc");
	check_one(fixture, file, "text by address", "by_address");
	check_one(fixture, file, "text by a pointer", "by_pointer");
	check_one(fixture, file, "text by the GOT", "by_got");
	check_one(fixture, file, "text in an array", "in_array");
	check_one(fixture, file, "text of a format in Rust: ", "by_format");
}

static void texts_are_found_in_a_program(void **state)
{
	check_all(*state, "pie");
}

static void texts_are_found_in_a_library(void **state)
{
	check_all(*state, "shared");
}

static void texts_are_found_in_a_program_with_fixed_addresses(void **state)
{
	check_all(*state, "fixed");
}

static void texts_are_found_where_relocations_are_packed(void **state)
{
	struct elf_fixture *fixture = *state;

	if (!elf_fixture_run(fixture, "test -e relr_s")) {
		print_message("SKIP this linker does not pack relocations\n");
		skip();
	}
	check_all(fixture, "relr");
}

static void a_text_in_two_functions_has_two_users(void **state)
{
	text_user_vec users;

	elf_fixture_need(*state, "gcc");
	users = users_of(*state, "pie", "text of two");
	assert_int_equal(users.count, 2);
	vec_free(&users);
}

static void a_text_in_a_cold_piece_belongs_to_its_function(void **state)
{
	elf_fixture_need(*state, "gcc");
	check_one(*state, "pie", "text of a cold piece", "split");
}

static void a_text_that_is_not_there_or_not_a_begin_has_no_users(void **state)
{
	text_user_vec users;

	elf_fixture_need(*state, "gcc");
	users = users_of(*state, "pie", "no such text");
	assert_int_equal(users.count, 0);
	vec_free(&users);
	users = users_of(*state, "pie", "ext by address");
	assert_int_equal(users.count, 0);
	vec_free(&users);
}

/* A file with holes may be of any size. */
static void the_search_ends_with_its_time(void **state)
{
	struct image image = {.fd = -1, .debug_fd = -1};
	text_user_vec users = {0};

	image.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file__open(&image.elf, image.fd), 0);
	assert_int_equal(elf_fdes_read(&image.fdes, image.elf), 0);
	assert_int_equal(text_users_find(&users, &image, "a text", 1), -ETIMEDOUT);
	image_close(&image);
	vec_free(&users);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_found_in_a_program),
		cmocka_unit_test(the_search_ends_with_its_time),
		cmocka_unit_test(texts_are_found_in_a_library),
		cmocka_unit_test(texts_are_found_in_a_program_with_fixed_addresses),
		cmocka_unit_test(texts_are_found_where_relocations_are_packed),
		cmocka_unit_test(a_text_in_two_functions_has_two_users),
		cmocka_unit_test(a_text_in_a_cold_piece_belongs_to_its_function),
		cmocka_unit_test(a_text_that_is_not_there_or_not_a_begin_has_no_users),
	};

	return cmocka_run_group_tests(tests, build_texts, elf_fixture_tear_down);
}
