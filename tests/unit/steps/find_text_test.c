/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "engine_fixture.h"

/* Stripped engines. One text is in one function, one is in two, and ferrum's is in three. */
static const char text_source[] =
	"#include <stdio.h>\n#include <unistd.h>\n"
	"#define STEP __attribute__((noinline, used))\n"
	"#define LARGE(x) do { if (x > 900) { asm volatile(\".skip 2000, 0x90\"); } } while (0)\n"
	"STEP int lone_step(int x) { return printf(\"cannot step: %d\", x) + 1; }\n"
	"STEP int first_of_two(int x) { return printf(\"text of two %d\", x) + 1; }\n"
	"STEP int second_of_two(int x) { return printf(\"text of two %d\", x) + 2; }\n"
	"STEP int report(int x) {\n"
	"	return printf(\"synchronous model execution panicked: %d\", x) + 3; }\n"
	"STEP int execute(int x) { LARGE(x);\n"
	"	return printf(\"synchronous model execution panicked: %d\", x) + 4; }\n"
	"STEP int worker(int x) { LARGE(x);\n"
	"	return printf(\"synchronous model execution panicked: %d\", x) + 5; }\n"
	"int main(int argc, char **argv) { (void)argv; if (argc > 2) return lone_step(argc)\n"
	"	+ first_of_two(argc) + second_of_two(argc) + report(argc) + execute(argc)\n"
	"	+ worker(argc);\n"
	"	puts(\"ready\"); fflush(stdout); for (;;) pause(); }\n";

/* A library with a text that the program has too. */
static const char library_source[] =
	"#include <stdio.h>\n"
	"int library_step(int x) { return printf(\"cannot step: %d\", x) + 6; }\n";

static int build_text_engines(void **state)
{
	struct elf_fixture *fixture;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(fixture, "text.c", text_source);
	elf_fixture_write(fixture, "library.c", library_source);
	elf_fixture_run(fixture, "gcc -O2 text.c -o named && strip -o engine named && "
				 "cp engine ferrum && cp named ferrum_named && "
				 "gcc -O2 -shared -fPIC library.c -o libstep.so && "
				 "gcc -O2 text.c -Wl,--no-as-needed -L. -lstep "
				 "-Wl,-rpath,'$ORIGIN' -o two_files");
	return 0;
}

/*
 * The measurement's result for each function. Functions are in the order of their addresses, which
 * is also their order in the source.
 */
static struct function_rate answers[3];
static size_t asked;

static int measure(uint32_t tgid, struct step_function *const *functions, size_t count,
		   struct function_rate *rates)
{
	assert_true(tgid && count <= 3);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(functions[i]);
		rates[i] = answers[i];
	}
	asked = count;
	return 0;
}

static struct function_rate called(double per_s, uint64_t mean_ns, bool is_busy)
{
	return (struct function_rate){
		.calls = (uint64_t)per_s,
		.mean_ns = mean_ns,
		.calls_per_s = per_s,
		.is_busy = is_busy,
	};
}

static void a_text_of_one_function_names_it(void **state)
{
	pid_t child = start(*state, "engine");
	function_vec functions = {0};

	assert_int_equal(
		find(child, "string:cannot step: ", (struct target_options){0}, &functions), 1);
	assert_non_null(strstr(functions.items[0]->name, "engine+0x"));
	assert_non_null(strstr(functions.items[0]->name, " (by the text 'cannot step: ')"));
	assert_true(functions.items[0]->exit_offsets.count > 0);
	assert_false(functions.items[0]->builtin);
	release(&functions);
	stop(child);
}

static void a_text_of_a_function_with_a_name_keeps_the_name(void **state)
{
	pid_t child = start(*state, "named");
	function_vec functions = {0};

	assert_int_equal(
		find(child, "named:string:cannot step", (struct target_options){0}, &functions), 1);
	assert_string_equal(functions.items[0]->name, "lone_step (by the text 'cannot step')");
	release(&functions);
	stop(child);
}

static void check_two(struct elf_fixture *fixture, struct target_options options,
		      const char *message)
{
	pid_t child = start(fixture, "engine");
	function_vec functions = {0};
	int found;

	elf_fixture_catch_log(fixture);
	found = find(child, "string:text of two", options, &functions);
	elf_fixture_check_log(fixture, message);
	stop(child);
	assert_int_equal(found, -E2BIG);
	assert_int_equal(functions.count, 0);
}

static void a_text_of_two_functions_is_refused_with_their_rates(void **state)
{
	answers[0] = called(84, 5600000, true);
	answers[1] = called(0.5, 0, false);
	check_two(*state, (struct target_options){.measure = measure},
		  " (84.0 calls/s, mean 5.600 ms), ");
	assert_int_equal(asked, 2);
	check_two(*state, (struct target_options){0}, "the text is in 2 functions");
}

static void a_text_of_one_function_in_each_of_two_files_is_refused(void **state)
{
	struct elf_fixture *fixture = *state;
	struct target_options options = {.measure = measure};
	pid_t child = start(fixture, "two_files");
	function_vec functions = {0};
	int found;

	answers[0] = called(84, 5600000, true);
	answers[1] = called(2, 100000, true);
	elf_fixture_catch_log(fixture);
	found = find(child, "string:cannot step: ", options, &functions);
	elf_fixture_check_log(fixture, "the text is in 2 functions; name one of them: ");
	assert_int_equal(found, -E2BIG);
	assert_int_equal(functions.count, 0);
	assert_int_equal(asked, 2);
	/* With the library's name the text is unique. */
	assert_int_equal(find(child, "libstep.so:string:cannot step: ", options, &functions), 1);
	assert_non_null(strstr(functions.items[0]->name, "library_step"));
	release(&functions);
	stop(child);
}

static void a_text_that_nothing_refers_to_is_no_error(void **state)
{
	pid_t child = start(*state, "engine");
	function_vec functions = {0};

	assert_int_equal(find(child, "string:no such text", (struct target_options){0}, &functions),
			 0);
	stop(child);
}

/* Returns the number of functions with ferrum's text that remain after such a measurement. */
static int find_known(struct elf_fixture *fixture, bool measures, function_vec *functions)
{
	struct target_options options = {.measure = measures ? measure : NULL};
	pid_t child = start(fixture, "ferrum");
	int found = find(child, NULL, options, functions);

	stop(child);
	return found;
}

static void a_stripped_engine_is_known_by_the_function_that_is_called_as_a_step(void **state)
{
	function_vec functions = {0};

	answers[0] = called(84, 90000, true);
	answers[1] = called(84, 5600000, true);
	answers[2] = called(0, 0, false);
	assert_int_equal(find_known(*state, true, &functions), 1);
	assert_int_equal(asked, 3);
	assert_string_equal(functions.items[0]->name, "execute_tokens (by the text 'synchronous "
						      "model execution panicked: ')");
	assert_true(functions.items[0]->builtin);
	assert_true(functions.items[0]->size > 1024);
	assert_false(functions.items[0]->unverified);
	release(&functions);
}

static void what_no_step_does_is_not_taken_for_one(void **state)
{
	function_vec functions = {0};

	/* One is on no busy thread, one is too short, one is called too often. */
	answers[0] = called(84, 5600000, false);
	answers[1] = called(84, 20000, true);
	answers[2] = called(90000, 100000, true);
	answers[2].too_often = true;
	assert_int_equal(find_known(*state, true, &functions), 0);
}

static void of_an_engine_in_a_long_step_all_that_are_large_are_taken(void **state)
{
	function_vec functions = {0};

	memset(answers, 0, sizeof(answers));
	answers[0] = called(1, 0, false);
	assert_int_equal(find_known(*state, true, &functions), 2);
	assert_true(functions.items[0]->unverified && functions.items[1]->unverified);
	release(&functions);
}

static void of_an_idle_engine_all_that_are_large_are_taken(void **state)
{
	function_vec functions = {0};

	memset(answers, 0, sizeof(answers));
	elf_fixture_catch_log(*state);
	assert_int_equal(find_known(*state, true, &functions), 2);
	elf_fixture_check_log(*state, "no step has ended yet: its step is one of 2 functions");
	assert_true(functions.items[0]->unverified && functions.items[1]->unverified);
	release(&functions);
	functions = (function_vec){0};
	assert_int_equal(find_known(*state, false, &functions), 2);
	release(&functions);
}

static void a_known_text_is_not_looked_for_where_there_are_names(void **state)
{
	pid_t child = start(*state, "ferrum_named");
	function_vec functions = {0};

	assert_int_equal(find(child, NULL, (struct target_options){0}, &functions), 0);
	stop(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_of_one_function_names_it),
		cmocka_unit_test(a_text_of_a_function_with_a_name_keeps_the_name),
		cmocka_unit_test(a_text_of_two_functions_is_refused_with_their_rates),
		cmocka_unit_test(a_text_of_one_function_in_each_of_two_files_is_refused),
		cmocka_unit_test(a_text_that_nothing_refers_to_is_no_error),
		cmocka_unit_test(
			a_stripped_engine_is_known_by_the_function_that_is_called_as_a_step),
		cmocka_unit_test(what_no_step_does_is_not_taken_for_one),
		cmocka_unit_test(of_an_idle_engine_all_that_are_large_are_taken),
		cmocka_unit_test(of_an_engine_in_a_long_step_all_that_are_large_are_taken),
		cmocka_unit_test(a_known_text_is_not_looked_for_where_there_are_names),
	};

	return cmocka_run_group_tests(tests, build_text_engines, elf_fixture_tear_down);
}
