/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include "elf_fixture.h"
#include "steps/find.h"

/* A library with IFUNCs and a library that calls them. Both are loaded into this process. */
static const char chooser[] = "static volatile int wanted = 1;\n"
			      "__attribute__((noipa)) static int first(int x) { return x + 1; }\n"
			      "__attribute__((noipa)) static int second(int x) { return x + 2; }\n"
			      "static int (*pick(void))(int) { return wanted ? second : first; }\n"
			      "int chosen(int) __attribute__((ifunc(\"pick\")));\n"
			      "static int (*take(void))(int) { return wanted ? first : second; }\n"
			      "static int inner(int) __attribute__((ifunc(\"take\")));\n"
			      "void *where(void) { return second; }\n"
			      "int call_inner(int x) { return inner(x) + 1; }\n";
static const char user[] = "int chosen(int);\n"
			   "int call_chosen(int x) { return chosen(x) + 1; }\n";

static int build(void **state)
{
	if (elf_fixture_set_up(state))
		return -1;
	elf_fixture_write(*state, "chooser.c", chooser);
	elf_fixture_write(*state, "user.c", user);
	elf_fixture_run(*state, "gcc -O1 -fPIC -shared chooser.c -o libchooser.so && gcc -O1 -fPIC "
				"-shared -Wl,-z,lazy user.c -o libuser.so $PWD/libchooser.so");
	return 0;
}

static void *load(struct elf_fixture *fixture)
{
	char path[128];
	void *library;

	elf_fixture_need(fixture, "gcc");
	snprintf(path, sizeof(path), "%s/libuser.so", fixture->folder);
	library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	assert_non_null(library);
	return library;
}

/* Looks for one --step in this process. Returns the result of target_find(). */
static int find(const char *text, function_vec *functions)
{
	struct target_seen *seen = target_seen__new();
	struct step_spec spec;
	struct target_options options = {.specs = &spec, .spec_count = 1};
	int found;

	assert_int_equal(step_spec_parse(&spec, text), 0);
	found = target_find((uint32_t)getpid(), &options, seen, functions);
	step_spec_clear(&spec);
	target_seen__free(seen);
	return found;
}

static void an_ifunc_is_what_the_process_calls(void **state)
{
	void *library = load(*state);
	function_vec functions = {0};
	int (*call)(int) = (int (*)(int))dlsym(library, "call_chosen");
	void *(*where)(void) = (void *(*)(void))dlsym(library, "where");
	Dl_info info;

	assert_int_equal(call(1), 4);
	assert_int_equal(find("libchooser.so:chosen", &functions), 1);
	assert_true(dladdr(where(), &info));
	assert_int_equal(functions.items[0]->address,
			 (uintptr_t)where() - (uintptr_t)info.dli_fbase);
	assert_string_equal(functions.items[0]->name, "chosen");
	step_functions_free(&functions);
	dlclose(library);
}

static void an_ifunc_that_was_not_called_yet_names_its_implementations(void **state)
{
	void *library = load(*state);
	function_vec functions = {0};

	elf_fixture_catch_log(*state);
	assert_int_equal(find("libchooser.so:chosen", &functions), -EINVAL);
#ifdef __x86_64__
	elf_fixture_check_log(*state, "not called it yet: name one: first, second");
#else
	elf_fixture_check_log(*state, "not called it yet: name one");
#endif
	step_functions_free(&functions);
	dlclose(library);
}

static void an_ifunc_that_only_its_own_file_calls_is_found_too(void **state)
{
	void *library = load(*state);
	function_vec functions = {0};

	assert_int_equal(find("libchooser.so:inner", &functions), 1);
	assert_string_equal(functions.items[0]->name, "inner");
	step_functions_free(&functions);
	dlclose(library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ifunc_that_was_not_called_yet_names_its_implementations),
		cmocka_unit_test(an_ifunc_is_what_the_process_calls),
		cmocka_unit_test(an_ifunc_that_only_its_own_file_calls_is_found_too),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
