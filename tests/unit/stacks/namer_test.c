/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "record_keeper.h"
#include "stacks/namer.h"
#include "elf/symbols.h"
#include "elf_fixture.h"

#define ID "0102030405"

static uint64_t step_address;

static int build(void **state)
{
	struct elf_symbols symbols;
	struct elf_fixture *fixture;
	struct elf_file *elf = NULL;
	int fd;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(fixture, "a.c",
			  "int step(int x) { return x; } int main(void) { return 0; }");
	if (!elf_fixture_run(fixture,
			     "gcc -Wl,--build-id=0x" ID " a.c -o a && "
			     "gcc -Wl,--build-id=0x0304 a.c -o b && "
			     "mkdir -p d/.build-id/01 && cp a d/.build-id/01/02030405.debug"))
		return 0;
	fd = elf_fixture_open(fixture, "a");
	assert_int_equal(elf_file__open(&elf, fd), 0);
	assert_int_equal(elf_symbols_read(&symbols, elf), 0);
	for (size_t i = 0; i < symbols.count; i++)
		if (!strcmp(symbols.items[i].name, "step"))
			step_address = symbols.items[i].address;
	elf_symbols_clear(&symbols);
	elf_file__free(elf);
	close(fd);
	return 0;
}

static void send(struct record_keeper *keeper, uint32_t code_id, uint64_t address,
		 const char *function, const char *build_id)
{
	struct record_output output = keeper_output(keeper);
	struct fbt_code code = {.id = code_id, .tgid = 7, .address = address};
	const char *strings[] = {function, "/opt/eng", build_id};

	assert_int_equal(
		record_send_strings(&output, &code, sizeof(code), FBT_EVENT_CODE, strings, 3), 0);
}

/* Pushes what was sent, with the symbols of that name in the fixture's folder. */
static void push(struct elf_fixture *fixture, const struct record_keeper *sent,
		 struct record_keeper *got, const char *symbols, bool tells)
{
	struct record_output output = keeper_output(got);
	char path[128];
	const char *paths[] = {path};
	struct code_namer *namer;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, symbols);
	namer = code_namer__new(&(struct symbol_files){paths, 1});
	assert_non_null(namer);
	assert_int_equal(code_namer__push(namer, sent->bytes, sent->size, &output), 0);
	if (tells)
		code_namer__tell(namer);
	code_namer__free(namer);
}

static void code_without_a_name_gets_that_of_its_build_id(void **state)
{
	static const char *const symbols[] = {"a", "d"};

	elf_fixture_need(*state, "gcc");
	for (size_t i = 0; i < 2; i++) {
		struct record_keeper *sent = calloc(2, sizeof(*sent)), *got = sent + 1;
		struct fbt_hang hang = {.tid = 3};
		struct record_output output = keeper_output(sent);
		const struct fbt_code *code;

		record_send(&output, &hang, sizeof(hang), FBT_EVENT_HANG);
		send(sent, 1, step_address + 2, "", ID);
		send(sent, 2, step_address + 2, "known", ID);
		send(sent, 3, step_address + 3, "", ID);
		record_send(&output, &hang, sizeof(hang), FBT_EVENT_HANG);
		push(*state, sent, got, symbols[i], false);
		/* What is passed on unchanged comes in pieces of several records. */
		assert_int_equal(got->count, 5);
		kept(got, 0, FBT_EVENT_HANG);
		code = kept(got, 1, FBT_EVENT_CODE);
		assert_int_equal(code->id, 1);
		assert_int_equal(code->tgid, 7);
		assert_int_equal(code->offset, 2);
		assert_int_equal(code->address, step_address + 2);
		assert_string_equal(kept_string(code, sizeof(*code), 0), "step");
		assert_string_equal(kept_string(code, sizeof(*code), 1), "/opt/eng");
		assert_string_equal(kept_string(code, sizeof(*code), 2), ID);
		code = kept(got, 2, FBT_EVENT_CODE);
		assert_string_equal(kept_string(code, sizeof(*code), 0), "known");
		code = kept(got, 3, FBT_EVENT_CODE);
		assert_int_equal(code->offset, 3);
		kept(got, 4, FBT_EVENT_HANG);
		free(sent);
	}
}

static void expect_unchanged(struct elf_fixture *fixture, const char *build_id, const char *symbols)
{
	struct record_keeper *sent = calloc(2, sizeof(*sent)), *got = sent + 1;

	send(sent, 1, step_address + 2, "", build_id);
	send(sent, 2, 1, "", build_id);
	push(fixture, sent, got, symbols, false);
	assert_int_equal(got->size, sent->size);
	assert_memory_equal(got->bytes, sent->bytes, sent->size);
	free(sent);
}

static void what_is_of_another_build_keeps_its_address(void **state)
{
	elf_fixture_need(*state, "gcc");
	expect_unchanged(*state, ID, "b");
	expect_unchanged(*state, "0304", "a");
	expect_unchanged(*state, "", "a");
	expect_unchanged(*state, "01020304050", "a");
	expect_unchanged(*state, "010203040g", "a");
	expect_unchanged(*state,
			 "0102030405060708091011121314151617181920212223242526272829303132"
			 "0102030405060708091011121314151617181920212223242526272829303132"
			 "01",
			 "a");
	expect_unchanged(*state, "../../../../etc/passwd", "d");
}

static void symbols_of_another_build_are_refused_in_words(void **state)
{
	struct record_keeper *sent = calloc(2, sizeof(*sent)), *got = sent + 1;

	elf_fixture_need(*state, "gcc");
	send(sent, 1, step_address, "", ID);
	elf_fixture_catch_log(*state);
	push(*state, sent, got, "b", true);
	elf_fixture_check_log(*state, "not used: its build-id is that of no file that the "
				      "recording has functions without a name of; it has eng "
				      "(build-id " ID ")");
	got->size = got->count = 0;
	elf_fixture_catch_log(*state);
	push(*state, sent, got, "d/.build-id/01", true);
	elf_fixture_check_log(*state, "has no symbols for eng (build-id " ID ")");
	free(sent);
}

static void damaged_records_are_passed_on(void **state)
{
	struct record_keeper *sent = calloc(2, sizeof(*sent)), *got = sent + 1;

	elf_fixture_need(*state, "gcc");
	send(sent, 1, step_address, "", ID);
	sent->size -= 8;
	push(*state, sent, got, "a", false);
	assert_int_equal(got->size, sent->size);
	free(sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_without_a_name_gets_that_of_its_build_id),
		cmocka_unit_test(what_is_of_another_build_keeps_its_address),
		cmocka_unit_test(symbols_of_another_build_are_refused_in_words),
		cmocka_unit_test(damaged_records_are_passed_on),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
