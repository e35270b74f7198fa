/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Places without a name; what stacks are in words is in tests/golden/stacks.events. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include "judge/frames.h"

static int set_up(void **state)
{
	struct window *window = window__new();

	*state = window;
	return !window;
}

static int tear_down(void **state)
{
	window__free(*state);
	return 0;
}

static void know(struct window *window, uint32_t id, const char *function, const char *path,
		 const char *build_id)
{
	struct fbt_code code = {.id = id, .address = id};

	assert_int_equal(
		window__add_code(window, &code, (const char *const[]){function, path, build_id}),
		0);
}

static void places_without_a_name_are_listed_once(void **state)
{
	struct fbt_stack stack = {.count = 9, .codes = {1, 2, 3, 2, 4, 5, 6, 7, 99}};
	struct window *window = *state;
	char text[UNNAMED_SIZE];

	know(window, 1, "", "/lib/libc.so.6", "0c");
	know(window, 2, "", "/opt/liba.so", "0a");
	know(window, 3, "named", "/opt/liba.so", "0a");
	know(window, 4, "", "", "");
	know(window, 5, "", "/opt/none", "");
	/* In the middle libc is told too. */
	know(window, 6, "", "/lib/libc.so.6", "0c");
	know(window, 7, "step", "/opt/liba.so", "0a");
	frames_list_unnamed(&stack, window, text, sizeof(text));
	assert_string_equal(text,
			    "liba.so+0x2 (BuildId: 0a), none+0x5, libc.so.6+0x6 (BuildId: 0c)");
}

static void what_has_names_gives_nothing(void **state)
{
	struct fbt_stack stack = {.count = 2, .codes = {1, 3}};
	char text[UNNAMED_SIZE] = "before";

	know(*state, 1, "", "/lib/libc.so.6", "0c");
	know(*state, 3, "named", "/opt/liba.so", "0a");
	frames_list_unnamed(&stack, *state, text, sizeof(text));
	assert_string_equal(text, "");
	frames_list_unnamed(&(struct fbt_stack){.count = 0}, *state, text, sizeof(text));
	assert_string_equal(text, "");
}

static void no_place_is_cut(void **state)
{
	struct fbt_stack stack = {.count = 64};
	char text[UNNAMED_SIZE], id[3 * FRAMES_ID_MAX];
	size_t length;

	memset(id, 'a', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	for (uint32_t i = 0; i < stack.count; i++) {
		know(*state, i + 1, "", "/opt/liba.so", id);
		stack.codes[i] = i + 1;
	}
	frames_list_unnamed(&stack, *state, text, sizeof(text));
	length = strlen(text);
	assert_in_range(length, UNNAMED_SIZE - 200, UNNAMED_SIZE - 1);
	assert_string_equal(text + length - 2, "a)");
}

static void know_script(struct window *window, uint32_t id, const char *function)
{
	struct fbt_code code = {.header.flags = FBT_CODE_SCRIPT, .id = id, .address = id};

	assert_int_equal(window__add_code(window, &code,
					  (const char *const[]){function, "/srv/model.py", ""}),
			 0);
}

static void a_script_ends_with_the_function_of_its_step(void **state)
{
	const uint32_t codes[] = {1, 2, 3, 2, 4, 99};
	struct window *window = *state;

	know(window, 1, "gemm", "/opt/liba.so", "0a");
	know_script(window, 2, "Engine.step");
	know_script(window, 3, "forward");
	know_script(window, 4, "<module>");
	/* It calls itself: the outer call is that of the step. */
	assert_int_equal(frames_of_step(window, "Engine.step", codes, 6), 4);
	/* CPython 3.10 says step, or the kind is that of a class that inherits it. */
	assert_int_equal(frames_of_step(window, "step", codes, 6), 4);
	assert_int_equal(frames_of_step(window, "Core.forward", codes, 6), 3);
	assert_int_equal(frames_of_step(window, "Engine.other", codes, 6), 6);
	/* What is native was unwound up to the step only. */
	assert_int_equal(frames_of_step(window, "gemm", codes, 6), 6);
	assert_int_equal(frames_of_step(window, "gemm", codes, 0), 0);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(places_without_a_name_are_listed_once),
		FACT(what_has_names_gives_nothing),
		FACT(no_place_is_cut),
		FACT(a_script_ends_with_the_function_of_its_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
