/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "steps/near.h"

static struct elf_symbol items[] = {
	{.name = "llama_decode"},
	{.name = "llama_decode.cold"},
	{.name = "llama_encode"},
	{.name = "ggml_compute"},
	{.name = "_ZN5llama7context6decodeEv"},
	{.name = "_ZN5other6decodeEi"},
	{.name = "a_name_that_is_much_longer_than_any_word_that_a_person_would_ever_type_at_a_"
		 "terminal"},
	{.name = "evil\033[31m_name"},
};

static const struct elf_symbols symbols = {.items = items,
					   .count = sizeof(items) / sizeof(items[0])};

static const char *near(const char *wanted)
{
	static char text[512];
	struct near_names names = {.wanted = wanted};

	near_names_add(&names, &symbols, 0);
	/* The same function in another file is no other name. */
	near_names_add(&names, &symbols, 0);
	near_names_text(&names, text, sizeof(text));
	return text;
}

static void a_mistyped_name_has_the_one_that_was_meant(void **state)
{
	assert_string_equal(near("lama_decode"), "; did you mean llama_decode, llama_encode?");
	assert_string_equal(near("llama_dceode"), "; did you mean llama_decode, llama_encode?");
	assert_string_equal(near("LLAMA_DECODE"), "; did you mean llama_decode, llama_encode?");
	assert_string_equal(near("LLAMA_ENCODE"), "; did you mean llama_encode, llama_decode?");
	assert_string_equal(near("ggml_compte"), "; did you mean ggml_compute?");
}

static void a_part_of_a_name_is_enough(void **state)
{
	assert_string_equal(near("decode"),
			    "; did you mean llama::context::decode, other::decode, llama_decode?");
	assert_string_equal(near("context::decoed"), "; did you mean llama::context::decode, "
						     "other::decode?");
}

static void nothing_is_like_another_word(void **state)
{
	assert_string_equal(near("forward_pass"), "");
	assert_string_equal(near("x"), "");
	assert_string_equal(near(""), "");
}

static void names_from_the_target_are_escaped(void **state)
{
	assert_string_equal(near("evil"), "; did you mean evil\\x1b[31m_name?");
}

static void after_the_deadline_nothing_is_looked_at(void **state)
{
	struct near_names names = {.wanted = "lama_decode"};

	near_names_add(&names, &symbols, 1);
	assert_int_equal(names.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mistyped_name_has_the_one_that_was_meant),
		cmocka_unit_test(a_part_of_a_name_is_enough),
		cmocka_unit_test(nothing_is_like_another_word),
		cmocka_unit_test(names_from_the_target_are_escaped),
		cmocka_unit_test(after_the_deadline_nothing_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
