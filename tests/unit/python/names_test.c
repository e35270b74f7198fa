/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "python_fixture.h"

static int set_up(void **state)
{
	*state = fake_new(11);
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void reads_as(struct fake_memory *fake, uint64_t object, const char *wanted)
{
	char text[64];

	assert_true(python_text_read(&fake->layout, &fake->memory, &fake->types, object, text,
				     sizeof(text)));
	assert_string_equal(text, wanted);
}

static void is_no_text(struct fake_memory *fake, uint64_t object)
{
	char text[64] = "before";

	assert_false(python_text_read(&fake->layout, &fake->memory, &fake->types, object, text,
				      sizeof(text)));
	assert_string_equal(text, "");
}

static void texts_of_all_widths_become_utf8(void **state)
{
	struct fake_memory *fake = *state;

	reads_as(fake, fake_ascii(fake, "Engine.step"), "Engine.step");
	reads_as(fake, fake_ascii(fake, ""), "");
	reads_as(fake, fake_text(fake, "pr\xfc", 3, 1, false), "prü");
	reads_as(fake, fake_text(fake, u"中文", 2, 2, false), "中文");
	reads_as(fake, fake_text(fake, U"a😀", 2, 4, false), "a😀");
}

static void what_steers_a_terminal_is_written_by_its_number(void **state)
{
	struct fake_memory *fake = *state;

	reads_as(fake, fake_ascii(fake, "a\x1b[31m"), "a\\u001b[31m");
	reads_as(fake, fake_ascii(fake, "a\nb\\c"), "a\\u000ab\\u005cc");
	reads_as(fake, fake_text(fake, u"a\u202eb", 3, 2, false), "a\\u202eb");
	reads_as(fake, fake_text(fake, "a\x9b", 2, 1, false), "a\\u009b");
}

static void what_is_no_character_is_replaced(void **state)
{
	struct fake_memory *fake = *state;
	static const uint16_t surrogate[] = {'a', 0xd800};
	static const uint32_t large[] = {'a', 0x110000};

	reads_as(fake, fake_text(fake, surrogate, 2, 2, false), "a\uFFFD");
	reads_as(fake, fake_text(fake, large, 2, 4, false), "a\uFFFD");
}

static void of_a_long_text_the_end_is_kept(void **state)
{
	struct fake_memory *fake = *state;
	char text[64], own[401];
	uint64_t object;

	memset(own, 'x', sizeof(own) - 1);
	own[400] = '\0';
	memcpy(own + 395, "/y.py", 5);
	object = fake_ascii(fake, own);
	assert_true(python_text_read(&fake->layout, &fake->memory, &fake->types, object, text,
				     sizeof(text)));
	assert_int_equal(strlen(text), 63);
	assert_int_equal(strncmp(text, "...x", 4), 0);
	assert_string_equal(text + 58, "/y.py");
}

static void what_is_no_text_is_not_read(void **state)
{
	struct fake_memory *fake = *state;
	uint64_t text = fake_ascii(fake, "name");

	is_no_text(fake, 0);
	is_no_text(fake, 8);
	is_no_text(fake, text + 4);
	is_no_text(fake, fake_bytes(fake, "name", 4));
	is_no_text(fake, FAKE_BASE + FAKE_BYTES - 8);
	fake_byte(fake, text + PYTHON_TEXT_STATE, 1 << 2 | 1 << 6); /* not compact */
	is_no_text(fake, text);
	fake_byte(fake, text + PYTHON_TEXT_STATE, 3 << 2 | 1 << 5); /* three bytes wide */
	is_no_text(fake, text);
	fake_byte(fake, text + PYTHON_TEXT_STATE, 4 << 2 | 1 << 5 | 1 << 6); /* wide ASCII */
	is_no_text(fake, text);
}

static void a_length_is_not_believed(void **state)
{
	struct fake_memory *fake = *state;
	uint64_t text = fake_ascii(fake, "name");
	static const uint64_t lengths[] = {UINT64_MAX, 1ull << 63, 1u << 21, FAKE_BYTES};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fake_word(fake, text + PYTHON_TEXT_LENGTH, lengths[i]);
		is_no_text(fake, text);
	}
}

static uint32_t line_of(struct fake_memory *fake, uint64_t table, int64_t instr)
{
	return python_line_find(&fake->layout, &fake->memory, &fake->types, table, 10, instr);
}

static void locations_have_lines(void **state)
{
	struct fake_memory *fake = *state;
	static const uint8_t table[] = {
		0x80 | 0 << 3 | 0,  0x12,		     /* same line, 1 unit */
		0x80 | 11 << 3 | 1, 1,		 2,	     /* +1, 2 units */
		0x80 | 13 << 3 | 0, 0x40 | 0x08, 0x03,	     /* +100: 200 = 8 + 3 * 64 */
		0x80 | 15 << 3 | 0,			     /* none */
		0x80 | 14 << 3 | 3, 0x07,	 1,    2, 3, /* -3, 4 units */
	};
	uint64_t object = fake_bytes(fake, table, sizeof(table));
	static const uint32_t lines[] = {10, 11, 11, 111, 0, 108, 108, 108, 108, 0};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(line_of(fake, object, (int64_t)i * 2), lines[i]);
	assert_int_equal(line_of(fake, object, -2), 10);
}

static void ranges_have_lines(void **state)
{
	struct fake_memory *fake = fake_new(10);
	static const uint8_t table[] = {4, 0, 2, 5, 2, 0x80, 6, (uint8_t)-3};
	uint64_t object = fake_bytes(fake, table, sizeof(table));

	assert_int_equal(line_of(fake, object, 0), 10);
	assert_int_equal(line_of(fake, object, 4), 15);
	assert_int_equal(line_of(fake, object, 6), 0);
	assert_int_equal(line_of(fake, object, 12), 12);
	assert_int_equal(line_of(fake, object, 14), 0);
	free(fake);
}

static void an_lnotab_has_lines(void **state)
{
	struct fake_memory *fake = fake_new(9);
	static const uint8_t table[] = {0, 1, 6, 2, 4, (uint8_t)-1};
	uint64_t object = fake_bytes(fake, table, sizeof(table));

	assert_int_equal(line_of(fake, object, 0), 11);
	assert_int_equal(line_of(fake, object, 6), 13);
	assert_int_equal(line_of(fake, object, 9), 13);
	assert_int_equal(line_of(fake, object, 100), 12);
	free(fake);
}

static void a_long_table_is_read_in_pieces(void **state)
{
	struct fake_memory *fake = *state;
	uint8_t table[10001];

	/* One byte each: another unit, without a line; and then one line further. */
	memset(table, 0x80 | 15 << 3, sizeof(table));
	table[10000] = 0x80 | 12 << 3;
	assert_int_equal(line_of(fake, fake_bytes(fake, table, sizeof(table)), 20000), 12);
}

static void a_damaged_table_has_no_lines(void **state)
{
	struct fake_memory *fake = *state;
	static const uint8_t bad[] = {0x12, 0x80}, cut[] = {0x80 | 13 << 3, 0x40};
	static const uint8_t top[] = {0x80 | 13 << 3, 0xc0, 0xc0},
			     far[] = {0x80 | 13 << 3, 0x41, 0x40, 0x40, 0x40, 0x40, 0x40, 0x3f};
	uint64_t large = fake_bytes(fake, bad, sizeof(bad));

	assert_int_equal(line_of(fake, fake_bytes(fake, bad, sizeof(bad)), 0), 0);
	assert_int_equal(line_of(fake, fake_bytes(fake, cut, sizeof(cut)), 0), 0);
	assert_int_equal(line_of(fake, fake_bytes(fake, top, sizeof(top)), 0), 0);
	assert_int_equal(line_of(fake, fake_bytes(fake, far, sizeof(far)), 0), 0);
	assert_int_equal(line_of(fake, fake_ascii(fake, "text"), 0), 0);
	fake_word(fake, large + PYTHON_VAR_SIZE, 1u << 30);
	assert_int_equal(line_of(fake, large, 0), 0);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(texts_of_all_widths_become_utf8),
		FACT(what_steers_a_terminal_is_written_by_its_number),
		FACT(what_is_no_character_is_replaced),
		FACT(of_a_long_text_the_end_is_kept),
		FACT(what_is_no_text_is_not_read),
		FACT(a_length_is_not_believed),
		FACT(locations_have_lines),
		FACT(ranges_have_lines),
		FACT(an_lnotab_has_lines),
		FACT(a_long_table_is_read_in_pieces),
		FACT(a_damaged_table_has_no_lines),
	};

	return cmocka_run_group_tests_name("python/names", tests, NULL, NULL);
}
