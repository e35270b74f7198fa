/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "engine_fixture.h"
#include "stderr_fixture.h"

static void check_refused(struct elf_fixture *fixture, const char *program, const char *text,
			  struct target_options options, int wanted, const char *message)
{
	pid_t child = start(fixture, program);
	function_vec functions = {0};
	int found;

	elf_fixture_catch_log(fixture);
	found = find(child, text, options, &functions);
	elf_fixture_check_log(fixture, message);
	stop(child);
	assert_int_equal(found, wanted);
	assert_int_equal(functions.count, 0);
	release(&functions);
}

/* The address as nm prints it. */
static uint64_t address_of(struct elf_fixture *fixture, const char *symbol)
{
	char command[256];
	unsigned long long address = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "nm %s/engine | awk '$3 == \"%s\" {print $1}'",
		 fixture->folder, symbol);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%llx", &address), 1);
	pclose(pipe);
	return address;
}

static void target_refuses_a_process_that_is_not_there(void **state)
{
	function_vec functions = {0};
	int found;

	elf_fixture_catch_log(*state);
	found = find(0x7ffffff0, "step", (struct target_options){0}, &functions);
	elf_fixture_check_log(*state, "no such process");
	assert_int_equal(found, -ESRCH);
}

static void target_refuses_a_function_that_never_returns(void **state)
{
	check_refused(*state, "engine", "engine_spin", (struct target_options){0}, -ENOTSUP,
		      "no safe exit");
}

static void target_refuses_too_many_matches(void **state)
{
	check_refused(*state, "engine", "many_*", (struct target_options){0}, -E2BIG,
		      "more than 16 functions");
}

static void target_refuses_a_uretprobe_in_a_go_program(void **state)
{
	check_refused(*state, "go", "engine_step", (struct target_options){.uretprobe = true},
		      -ENOTSUP, "Go program");
}

static void target_refuses_symbols_of_another_build(void **state)
{
	struct elf_fixture *fixture = *state;
	const char *files[1];
	char path[128];

	elf_fixture_need(fixture, "gcc");
	elf_fixture_run(fixture, "gcc -O2 -Wl,--build-id engine.c -o other");
	snprintf(path, sizeof(path), "%s/other", fixture->folder);
	files[0] = path;
	check_refused(fixture, "stripped", "engine_step",
		      (struct target_options){.symbol_files = files, .symbol_file_count = 1},
		      -EINVAL, "build-id matches no file");
}

static void target_refuses_an_address_inside_a_function(void **state)
{
	char text[64];

	elf_fixture_need(*state, "gcc");
	snprintf(text, sizeof(text), "stripped+0x%llx",
		 (unsigned long long)address_of(*state, "engine_step") + 1);
	check_refused(*state, "stripped", text, (struct target_options){0}, -EINVAL,
		      "begins at 0x");
}

static void target_refuses_an_address_outside_of_the_code(void **state)
{
	check_refused(*state, "engine", "engine+0x10", (struct target_options){0}, -EINVAL,
		      "not in its code");
}

static void target_finds_nothing_without_an_error(void **state)
{
	pid_t child = start(*state, "engine");
	function_vec functions = {0};

	assert_int_equal(find(child, "no_such_step", (struct target_options){0}, &functions), 0);
	stop(child);
}

static void target_finds_a_function_where_nm_has_it(void **state)
{
	struct elf_fixture *fixture = *state;
	pid_t child = start(fixture, "engine");
	function_vec functions = {0};
	struct step_function *function;
	uint8_t bytes[4];

	assert_int_equal(find(child, "engine:engine_step", (struct target_options){0}, &functions),
			 1);
	function = functions.items[0];
	assert_string_equal(function->name, "engine_step");
	assert_int_equal(function->address, address_of(fixture, "engine_step"));
	assert_false(function->builtin);
	assert_true(function->exit_offsets.count > 0);
#ifdef __x86_64__
	/* The kernel emulates a push and a conditional jump. */
	assert_true(function->begin_emulated);
	assert_int_equal(pread(function->fd, bytes, 2, function->begin_offset), 2);
	assert_true((bytes[bytes[0] == 0x41] & 0xf8) == 0x50 || (bytes[0] & 0xf0) == 0x70);
	for (size_t i = 0; i < function->exit_offsets.count; i++) {
		assert_int_equal(pread(function->fd, bytes, 1, function->exit_offsets.items[i]), 1);
		assert_true(bytes[0] == 0xc3 || bytes[0] == 0xe9);
	}
#else
	(void)bytes;
#endif
	stop(child);
	release(&functions);
}

static void target_looks_at_a_file_once(void **state)
{
	pid_t child = start(*state, "engine");
	struct target_seen *seen = target_seen__new();
	struct target_options options = {.spec_count = 1};
	function_vec functions = {0};
	struct step_spec spec;

	options.specs = &spec;
	assert_int_equal(step_spec_parse(&spec, "engine_step"), 0);
	assert_int_equal(target_find(child, &options, seen, &functions), 1);
	assert_int_equal(target_find(child, &options, seen, &functions), 0);
	assert_int_equal(functions.count, 1);
	step_spec_clear(&spec);
	target_seen__free(seen);
	release(&functions);
	stop(child);
}

/* Subvolumes of btrfs have one device in maps, and each its own inode numbers. */
static void target_looks_at_a_file_with_the_number_of_another(void **state)
{
	struct target_seen *seen = target_seen__new();
	struct target_options options = {.spec_count = 1};
	function_vec functions = {0};
	struct step_spec spec;
	void *pages[2];

	elf_fixture_need(*state, "gcc");
	assert_true(elf_fixture_run(*state, "ln engine twin"));
	options.specs = &spec;
	assert_int_equal(step_spec_parse(&spec, "engine_step"), 0);
	for (int i = 0; i < 2; i++) {
		int fd = elf_fixture_open(*state, i ? "twin" : "engine");

		pages[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		assert_ptr_not_equal(pages[i], MAP_FAILED);
		close(fd);
		assert_int_equal(target_find(getpid(), &options, seen, &functions), 1);
	}
	munmap(pages[0], 4096);
	munmap(pages[1], 4096);
	step_spec_clear(&spec);
	target_seen__free(seen);
	release(&functions);
}

static void a_quiet_search_says_nothing(void **state)
{
	static const char *const no_symbols[] = {"/proc/self/exe.missing"};
	struct target_seen *seen = target_seen__new();
	struct target_options options = {.tells = TARGET_TELLS_NOTHING};
	function_vec functions = {0};
	void *said = NULL;

	assert_int_equal(stderr_setup(&said), 0);
	assert_int_equal(target_find(0x7ffffff0, &options, seen, &functions), -ESRCH);
	assert_int_equal(target_find(2, &options, seen, &functions), -ESRCH);
	options.symbol_files = no_symbols;
	options.symbol_file_count = 1;
	assert_int_equal(target_find(getpid(), &options, seen, &functions), -EINVAL);
	assert_string_equal(stderr_text(said), "");
	options.tells = TARGET_TELLS_ERRORS;
	assert_int_equal(target_find(getpid(), &options, seen, &functions), -EINVAL);
	assert_non_null(strstr(stderr_text(said), "--symbols"));
	stderr_teardown(&said);
	target_seen__free(seen);
}

static void target_gives_a_uretprobe_no_exits(void **state)
{
	pid_t child = start(*state, "engine");
	function_vec functions = {0};

	assert_int_equal(
		find(child, "engine_spin", (struct target_options){.uretprobe = true}, &functions),
		1);
	assert_true(functions.items[0]->uretprobe);
	assert_int_equal(functions.items[0]->exit_offsets.count, 0);
	release(&functions);
	stop(child);
}

static void target_finds_known_functions_by_itself(void **state)
{
	pid_t child = start(*state, "engine");
	function_vec functions = {0};

	assert_int_equal(find(child, NULL, (struct target_options){0}, &functions), 1);
	assert_string_equal(functions.items[0]->name, "llama_decode");
	assert_true(functions.items[0]->builtin);
	assert_int_equal(functions.items[0]->arg_count, 1);
	assert_string_equal(functions.items[0]->args[0].name, "n_tokens");
	release(&functions);
	stop(child);
}

static void target_gives_every_function_the_arguments_asked_for(void **state)
{
	pid_t child = start(*state, "engine");
	function_vec functions = {0};
	struct step_arg arg;

	assert_int_equal(step_arg_parse(&arg, "n_tokens=arg1"), 0);
	assert_int_equal(find(child, "llama_decode",
			      (struct target_options){.args = &arg, .arg_count = 1}, &functions),
			 1);
	assert_int_equal(functions.items[0]->arg_count, 1);
	assert_int_equal(functions.items[0]->args[0].base, 1);
	release(&functions);
	stop(child);
}

static void target_finds_a_nameless_function_by_address(void **state)
{
	struct elf_fixture *fixture = *state;
	pid_t child = start(fixture, "stripped");
	function_vec functions = {0}, named = {0};
	char text[64];
	pid_t other;

	snprintf(text, sizeof(text), "stripped+0x%llx",
		 (unsigned long long)address_of(fixture, "engine_step"));
	assert_int_equal(find(child, text, (struct target_options){0}, &functions), 1);
	assert_null(functions.items[0]->symbol);
	other = start(fixture, "engine");
	assert_int_equal(find(other, "engine_step", (struct target_options){0}, &named), 1);
	assert_int_equal(functions.items[0]->size, named.items[0]->size);
	assert_int_equal(functions.items[0]->begin_offset, named.items[0]->begin_offset);
	assert_int_equal(functions.items[0]->exit_offsets.count,
			 named.items[0]->exit_offsets.count);
	stop(child);
	stop(other);
	release(&functions);
	release(&named);
}

static void target_takes_names_from_a_symbol_file(void **state)
{
	struct elf_fixture *fixture = *state;
	pid_t child = start(fixture, "stripped");
	function_vec functions = {0};
	const char *files[1];
	char path[128];

	snprintf(path, sizeof(path), "%s/engine", fixture->folder);
	files[0] = path;
	assert_int_equal(
		find(child, "engine_step",
		     (struct target_options){.symbol_files = files, .symbol_file_count = 1},
		     &functions),
		1);
	assert_string_equal(functions.items[0]->symbol, "engine_step");
	assert_non_null(strstr(functions.items[0]->path, "/stripped"));
	release(&functions);
	stop(child);
}

static void target_finds_functions_of_a_deleted_program(void **state)
{
	struct elf_fixture *fixture = *state;
	function_vec functions = {0};
	pid_t child;
	char link[64];
	int found;

	elf_fixture_run(fixture, "cp engine gone");
	child = start(fixture, "gone");
	elf_fixture_run(fixture, "rm gone");
	snprintf(link, sizeof(link), "/proc/%d/map_files", child);
	if (geteuid()) {
		stop(child);
		print_message("SKIP only root may follow %s\n", link);
		skip();
	}
	found = find(child, "gone:engine_step", (struct target_options){0}, &functions);
	stop(child);
	assert_int_equal(found, 1);
	release(&functions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(target_refuses_a_process_that_is_not_there),
		cmocka_unit_test(target_refuses_a_function_that_never_returns),
		cmocka_unit_test(target_refuses_too_many_matches),
		cmocka_unit_test(target_refuses_a_uretprobe_in_a_go_program),
		cmocka_unit_test(target_refuses_symbols_of_another_build),
		cmocka_unit_test(target_refuses_an_address_inside_a_function),
		cmocka_unit_test(target_refuses_an_address_outside_of_the_code),
		cmocka_unit_test(target_finds_nothing_without_an_error),
		cmocka_unit_test(target_finds_a_function_where_nm_has_it),
		cmocka_unit_test(target_looks_at_a_file_once),
		cmocka_unit_test(target_looks_at_a_file_with_the_number_of_another),
		cmocka_unit_test(a_quiet_search_says_nothing),
		cmocka_unit_test(target_gives_a_uretprobe_no_exits),
		cmocka_unit_test(target_finds_known_functions_by_itself),
		cmocka_unit_test(target_gives_every_function_the_arguments_asked_for),
		cmocka_unit_test(target_finds_a_nameless_function_by_address),
		cmocka_unit_test(target_takes_names_from_a_symbol_file),
		cmocka_unit_test(target_finds_functions_of_a_deleted_program),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
