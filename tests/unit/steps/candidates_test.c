/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "engine_fixture.h"

static void candidates_come_likeliest_first(void **state)
{
	pid_t child = start(*state, "engine");
	struct target_options options = {0};
	function_vec functions = {0};
	int found = target_find_candidates(child, &options, NULL, 4, &functions);

	stop(child);
	assert_true(found >= 1 && found <= 4);
	assert_string_equal(functions.items[0]->name, "llama_decode");
	release(&functions);
}

static void candidates_are_at_most_as_many_as_asked_for(void **state)
{
	pid_t child = start(*state, "engine");
	struct target_options options = {0};
	function_vec functions = {0};

	assert_int_equal(target_find_candidates(child, &options, NULL, 0, &functions), 0);
	assert_int_equal(functions.count, 0);
	stop(child);
}

static void candidates_have_safe_exits(void **state)
{
	pid_t child = start(*state, "engine");
	struct target_options options = {0};
	function_vec functions = {0};

	assert_true(target_find_candidates(child, &options, NULL, 16, &functions) > 0);
	vec_for_each (function, &functions)
		assert_true((*function)->exit_offsets.count > 0);
	release(&functions);
	stop(child);
}

/* An address within a function of the running engine, like a return address on a stack. */
static struct code_place place_in(pid_t child, const char *name)
{
	struct code_place place = {.samples = 1};
	function_vec functions = {0};
	mapping_vec maps = {0};

	assert_int_equal(find(child, name, (struct target_options){0}, &functions), 1);
	assert_int_equal(maps_read(child, &maps), 0);
	vec_for_each (mapping, &maps) {
		if (mapping->inode == functions.items[0]->inode)
			place.address = mapping->start - mapping->offset +
					functions.items[0]->begin_offset + 1;
	}
	assert_true(place.address != 0);
	maps_free(&maps);
	release(&functions);
	return place;
}

static void candidates_of_busy_threads_are_only_what_is_on_their_stacks(void **state)
{
	pid_t child = start(*state, "engine");
	struct target_options options = {0};
	function_vec functions = {0};
	code_place_vec busy = {0};

	assert_int_equal(target_find_candidates(child, &options, &busy, 16, &functions), 0);
	assert_int_equal(vec_push(&busy, place_in(child, "llama_decode")), 0);
	assert_int_equal(target_find_candidates(child, &options, &busy, 16, &functions), 1);
	assert_string_equal(functions.items[0]->name, "llama_decode");
	release(&functions);
	/* many_1 does not look like the name of a step. */
	busy.items[0] = place_in(child, "many_1");
	assert_int_equal(target_find_candidates(child, &options, &busy, 16, &functions), 0);
	vec_free(&busy);
	stop(child);
}

/*
 * Two overloads, one of them too small to be a candidate, and two static functions of the same
 * name.
 */
static const char namesakes_source[] =
	"#include <stdio.h>\n#include <unistd.h>\n"
	"#define WORK __asm__ volatile(\".rept 40; nop; .endr\"); return x + getpid()\n"
	"__attribute__((noipa)) int by_int(int x) __asm__(\"_ZN1e6decodeEi\");\n"
	"__attribute__((noipa)) int by_long(long x) __asm__(\"_ZN1e6decodeEl\");\n"
	"int by_int(int x) { WORK; }\n"
	"int by_long(long x) { return 1; }\n"
	"__attribute__((noipa, used)) static int run_step(int x) { WORK; }\n"
	"__attribute__((noipa, used)) int only_step(int x) { WORK; }\n"
	"#ifdef MAIN\n"
	"int main(void) { puts(\"ready\"); fflush(stdout); for (;;) pause(); }\n"
	"#endif\n";

/* The --step argument for the index-th candidate of that name; NULL if it has none. */
static const char *alone(const function_vec *functions, const char *name, size_t index)
{
	vec_for_each (function, functions)
		if (!strcmp((*function)->name, name) && !index--)
			return step_function_alone(*function);
	return NULL;
}

static void candidates_of_one_name_are_told_apart(void **state)
{
	struct target_options options = {0};
	function_vec functions = {0}, found = {0};
	const char *text;
	pid_t child;

	elf_fixture_write(*state, "namesakes.c", namesakes_source);
	elf_fixture_run(
		*state,
		"sed 's/by_int/int_b/g; s/1e6decode/1f6decode/; "
		"s/1e6decode/1f6decode/; s/only_step/more_step/; s/MAIN/NONE/' namesakes.c >b.c && "
		"gcc -O1 -DMAIN namesakes.c b.c -o namesakes");
	child = start(*state, "namesakes");
	assert_true(target_find_candidates(child, &options, NULL, 16, &functions) > 0);
	assert_string_equal(alone(&functions, "only_step", 0), "only_step");
	assert_string_equal(alone(&functions, "e::decode", 0), "_ZN1e6decodeEi");
	assert_null(alone(&functions, "e::decode", 1));
	for (size_t i = 0; i < 2; i++) {
		text = alone(&functions, "run_step", i);
		assert_non_null(text);
		assert_non_null(strstr(text, "/namesakes+0x"));
		assert_int_equal(find(child, text, options, &found), 1);
		release(&found);
	}
	assert_string_not_equal(alone(&functions, "run_step", 0), alone(&functions, "run_step", 1));
	assert_int_equal(find(child, "_ZN1e6decodeEi", options, &found), 1);
	release(&found);
	release(&functions);
	stop(child);
}

static void explain(struct elf_fixture *fixture, const char *program, const char *text,
		    const char *message)
{
	pid_t child = start(fixture, program);
	struct target_options options = {0};
	struct step_spec spec;

	if (text) {
		assert_int_equal(step_spec_parse(&spec, text), 0);
		options.specs = &spec;
		options.spec_count = 1;
	}
	elf_fixture_catch_log(fixture);
	target_explain_no_match(child, &options, TARGET_PYTHON_NONE);
	elf_fixture_check_log(fixture, message);
	if (text)
		step_spec_clear(&spec);
	stop(child);
}

static void explain_says_that_a_file_is_stripped(void **state)
{
	explain(*state, "stripped", "stripped:engine_step", "is stripped");
}

static void explain_says_that_a_file_is_no_elf_file(void **state)
{
	explain(*state, "engine", "/etc/passwd:engine_step", "it is not an ELF file");
}

static void explain_says_that_a_file_is_not_there(void **state)
{
	explain(*state, "engine", "/no/such/file:engine_step", "there is no such file");
}

static void explain_says_that_no_function_has_the_name(void **state)
{
	explain(*state, "engine", "no_such_step", "no such function");
}

static void explain_says_that_there_is_no_such_probe(void **state)
{
	explain(*state, "engine", "usdt:engine:begin,end", "has these probes");
}

static void explain_names_the_options_where_nothing_was_asked_for(void **state)
{
	explain(*state, "engine", NULL, "--list-steps");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidates_come_likeliest_first),
		cmocka_unit_test(candidates_are_at_most_as_many_as_asked_for),
		cmocka_unit_test(candidates_have_safe_exits),
		cmocka_unit_test(candidates_of_busy_threads_are_only_what_is_on_their_stacks),
		cmocka_unit_test(candidates_of_one_name_are_told_apart),
		cmocka_unit_test(explain_says_that_a_file_is_stripped),
		cmocka_unit_test(explain_says_that_a_file_is_no_elf_file),
		cmocka_unit_test(explain_says_that_a_file_is_not_there),
		cmocka_unit_test(explain_says_that_no_function_has_the_name),
		cmocka_unit_test(explain_says_that_there_is_no_such_probe),
		cmocka_unit_test(explain_names_the_options_where_nothing_was_asked_for),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
