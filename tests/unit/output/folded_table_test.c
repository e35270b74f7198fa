/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include "output/folded_table.h"

#define US 1000ull

struct fixture {
	struct window *window;
	struct folded_table *table;
	char *text;
	size_t size;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->window = window__new();
	fixture->table = folded_table__new();
	*state = fixture;
	return !fixture->window || !fixture->table;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	folded_table__free(fixture->table);
	window__free(fixture->window);
	free(fixture->text);
	free(fixture);
	return 0;
}

static void know(struct fixture *fixture, uint32_t id, const char *function, const char *path,
		 uint64_t address)
{
	struct fbt_code code = {.id = id, .address = address};

	assert_int_equal(
		window__add_code(fixture->window, &code, (const char *const[]){function, path, ""}),
		0);
}

static void add(struct fixture *fixture, struct folded_stack stack)
{
	assert_int_equal(folded_table__add(fixture->table, fixture->window, &stack), 0);
}

static const char *written(struct fixture *fixture)
{
	FILE *out = open_memstream(&fixture->text, &fixture->size);

	assert_int_equal(folded_table__write(fixture->table, out), 0);
	fclose(out);
	return fixture->text;
}

#define STACK(...)                                                                                 \
	.codes = (const uint32_t[]){__VA_ARGS__},                                                  \
	.count = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static void a_stack_is_a_line_from_the_step_inwards(void **state)
{
	struct fixture *fixture = *state;

	know(fixture, 1, "inner", "/l", 1);
	know(fixture, 2, "outer", "/l", 2);
	know(fixture, 3, "step", "/l", 3);
	add(fixture,
	    (struct folded_stack){.kind = "step", STACK(1, 2, 3), .end = "futex", .ns = 5 * US});
	assert_string_equal(written(fixture), "step;outer;inner;[futex] 5\n");
}

/* One that calls itself is there as often as it is on the stack. */
static void only_the_outermost_frame_is_the_step_itself(void **state)
{
	struct fixture *fixture = *state;

	know(fixture, 3, "step", "/l", 3);
	know(fixture, 2, "outer", "/l", 2);
	add(fixture, (struct folded_stack){.kind = "step", STACK(3, 3), .end = "read", .ns = US});
	add(fixture, (struct folded_stack){.kind = "step", STACK(3, 2), .end = "read", .ns = US});
	assert_string_equal(written(fixture), "step;outer;step;[read] 1\nstep;step;[read] 1\n");
}

static void equal_names_are_one_line_and_sums_are_rounded_down_once(void **state)
{
	struct fixture *fixture = *state;

	know(fixture, 1, "inner", "/l", 1);
	know(fixture, 2, "inner", "/l", 9);
	add(fixture, (struct folded_stack){.kind = "step", STACK(1), .end = "read", .ns = 1600});
	add(fixture, (struct folded_stack){.kind = "step", STACK(2), .end = "read", .ns = 1600});
	add(fixture, (struct folded_stack){.kind = "step", STACK(2), .end = "write", .ns = 1999});
	add(fixture, (struct folded_stack){.kind = "other", STACK(2), .end = "read", .ns = 0});
	assert_string_equal(written(fixture), "other;inner;[read] 0\nstep;inner;[read] 3\n"
					      "step;inner;[write] 1\n");
}

static void what_has_no_name_is_an_address_or_says_what_it_is(void **state)
{
	struct fixture *fixture = *state;

	know(fixture, 1, "", "/opt/a b/libx.so", 0x2bca);
	know(fixture, 2, "", "", 0x7f0000001000);
	add(fixture,
	    (struct folded_stack){.kind = "step", STACK(9, 1, 2), .end = "read", .ns = US});
	assert_string_equal(written(fixture),
			    "step;[generated code];libx.so+0x2bca;[unknown];[read] 1\n");
}

static void a_stack_that_is_not_whole_says_so_where_it_ends(void **state)
{
	struct fixture *fixture = *state;

	know(fixture, 1, "f", "/l", 1);
	add(fixture, (struct folded_stack){
			     .kind = "s", STACK(1), .flags = FBT_STACK_CUT, .end = "e", .ns = US});
	add(fixture, (struct folded_stack){.kind = "s",
					   STACK(1),
					   .flags = FBT_STACK_LOST | FBT_STACK_GUESSED,
					   .end = "e",
					   .ns = US});
	assert_string_equal(written(fixture), "s;[caller not found];[by frame pointers];f;[e] 1\n"
					      "s;[cut off];f;[e] 1\n");
}

static void hostile_names_break_no_line(void **state)
{
	struct fixture *fixture = *state;

	know(fixture, 1, "a;b\nc 7\r\x1b\xff\xe2\x80\xa8", "/l", 1);
	know(fixture, 2, "\xc3\xa9t\xc3\xa9 12", "/l", 2);
	add(fixture,
	    (struct folded_stack){.kind = "st\tep;", STACK(2, 1), .end = "re]ad", .ns = US});
	add(fixture, (struct folded_stack){.kind = "", .end = "read", .ns = US});
	assert_string_equal(written(fixture),
			    "?;[read] 1\n"
			    "st?ep:;a:b?c 7????;\xc3\xa9t\xc3\xa9 12;[re]ad] 1\n");
}

static void sums_do_not_wrap(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, (struct folded_stack){.kind = "s", .end = "e", .ns = UINT64_MAX - 5});
	add(fixture, (struct folded_stack){.kind = "s", .end = "e", .ns = UINT64_MAX - 5});
	assert_string_equal(written(fixture), "s;[e] 18446744073709551\n");
}

static void what_finds_no_room_is_summed_up(void **state)
{
	struct fixture *fixture = *state;
	uint32_t codes[FBT_STACK_FRAMES];
	char name[2000];
	uint64_t shown = 0, rest = 0;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	know(fixture, 1, name, "/l", 1);
	know(fixture, 2, "two", "/l", 2);
	/* A name is cut: 128 of 1,024 bytes for each of 100 stacks. */
	for (uint32_t i = 0; i < 100; i++) {
		for (size_t k = 0; k < FBT_STACK_FRAMES; k++)
			codes[k] = k == i ? 2 : 1;
		add(fixture, (struct folded_stack){.kind = "s",
						   .codes = codes,
						   .count = FBT_STACK_FRAMES,
						   .end = "e",
						   .ns = US});
	}
	/* What is known goes on to be summed up by itself. */
	for (size_t k = 0; k < FBT_STACK_FRAMES; k++)
		codes[k] = k == 0 ? 2 : 1;
	add(fixture,
	    (struct folded_stack){
		    .kind = "s", .codes = codes, .count = FBT_STACK_FRAMES, .end = "e", .ns = US});
	for (const char *line = written(fixture); *line; line = strchr(line, '\n') + 1) {
		const char *count = strpbrk(line, "]");
		bool is_rest = !strncmp(line, "s;[more stacks];[e]", 19);

		count = is_rest ? line + 19 : count + 1;
		*(is_rest ? &rest : &shown) += strtoull(count, NULL, 10);
	}
	assert_int_equal(shown + rest, 101);
	assert_in_range(rest, 30, 40);
	assert_true(fixture->size < FOLDED_BYTES_MAX + 4096);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(a_stack_is_a_line_from_the_step_inwards),
		FACT(only_the_outermost_frame_is_the_step_itself),
		FACT(equal_names_are_one_line_and_sums_are_rounded_down_once),
		FACT(what_has_no_name_is_an_address_or_says_what_it_is),
		FACT(a_stack_that_is_not_whole_says_so_where_it_ends),
		FACT(hostile_names_break_no_line),
		FACT(sums_do_not_wrap),
		FACT(what_finds_no_room_is_summed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
