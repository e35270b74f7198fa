/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include <string.h>
#include <stdio.h>
#include <fcntl.h>
#include <errno.h>
#include "elf_fixture.h"
#include "steps/resolve.h"

/* Assembly, because a compiler would choose where the pieces lie. */
static const char source[] = ".globl main, sized, unsized, data_code\n"
			     ".type main,@function\n"
			     "main: xor %eax,%eax\n ret\n .size main,.-main\n"
			     ".type sized,@function\n"
			     "sized: endbr64\n test %edi,%edi\n je sized.cold\n ret\n"
			     ".size sized,.-sized\n"
			     ".type sized.cold,@function\n"
			     "sized.cold: ret\n .size sized.cold,.-sized.cold\n"
			     ".type tails,@function\n"
			     "tails: test %edi,%edi\n je 1f\n ret\n 1: jmp main\n"
			     ".size tails,.-tails\n"
			     ".type leaves,@function\n"
			     "leaves: test %edi,%edi\n je 1f\n jmp puts@PLT\n"
			     "1: jmp *getpid@GOTPCREL(%rip)\n"
			     ".size leaves,.-leaves\n"
			     ".type spins,@function\n"
			     "spins: jmp spins\n .size spins,.-spins\n"
			     ".type unsized,@function\n"
			     "unsized: ret\n"
			     ".section .note.GNU-stack,\"\",@progbits\n"
			     ".data\n .type data_code,@function\n"
			     "data_code: ret\n .size data_code,.-data_code\n";

struct opened {
	struct image image;
	struct step_function *function;
	char reason[RESOLVE_REASON_BYTES];
	int result;
};

static int build(void **state)
{
	if (elf_fixture_set_up(state))
		return -1;
	elf_fixture_write(*state, "a.s", source);
	elf_fixture_run(*state, "gcc a.s -o a");
	return 0;
}

static struct opened resolve(struct elf_fixture *fixture, const char *name, bool uretprobe)
{
	struct opened opened = {.image = {.debug_fd = -1}, .result = 1};

#ifndef __x86_64__
	print_message("SKIP the code is x86-64\n");
	skip();
#endif
	elf_fixture_need(fixture, "gcc");
	opened.image.fd = elf_fixture_open(fixture, "a");
	opened.image.path = strdup("/a");
	assert_int_equal(elf_file__open(&opened.image.elf, opened.image.fd), 0);
	assert_int_equal(image_read(&opened.image, getpid(), NULL, 0), 0);
	for (size_t i = 0; i < opened.image.symbols.count; i++) {
		const struct elf_symbol *symbol = &opened.image.symbols.items[i];

		if (!strcmp(symbol->name, name))
			opened.result = resolve_function(&opened.function, &opened.image, symbol,
							 symbol->address, uretprobe, opened.reason);
	}
	return opened;
}

static void release(struct opened *opened)
{
	step_function_free(opened->function);
	image_close(&opened->image);
}

static void resolve_refuses_a_function_without_known_end(void **state)
{
	struct opened opened = resolve(*state, "unsized", false);

	assert_int_equal(opened.result, -ENOENT);
	assert_non_null(strstr(opened.reason, "the end of"));
	release(&opened);
}

static void resolve_refuses_what_is_not_code(void **state)
{
	struct opened opened = resolve(*state, "data_code", false);

	assert_int_equal(opened.result, -ERANGE);
	assert_non_null(strstr(opened.reason, "not in its code"));
	release(&opened);
}

static void resolve_counts_the_exits_of_the_cold_part(void **state)
{
	struct opened opened = resolve(*state, "sized", false);

	assert_int_equal(opened.result, 0);
	assert_int_equal(opened.function->exit_offsets.count, 2);
	assert_string_equal(opened.function->path, "/a");
	release(&opened);
}

static void resolve_ends_a_function_with_a_tail_call_at_its_call_sites(void **state)
{
	struct opened opened = resolve(*state, "tails", false);

	assert_int_equal(opened.result, 0);
	assert_true(opened.function->has_sites);
	assert_int_equal(opened.function->exit_offsets.count, 0);
	assert_int_equal(opened.function->tail_calls, 1);
	assert_int_equal(opened.function->returns, 1);
	assert_string_equal(opened.function->tails[0], "main");
	assert_null(opened.function->tails[1]);
	release(&opened);
}

static void resolve_names_functions_of_other_files_that_it_jumps_to(void **state)
{
	struct opened opened = resolve(*state, "leaves", false);

	assert_int_equal(opened.result, 0);
	assert_int_equal(opened.function->returns, 0);
	assert_int_equal(opened.function->tail_calls, 2);
	assert_int_equal(opened.function->pointers, 0);
	assert_int_equal(opened.function->tail_count, 2);
	assert_string_equal(opened.function->tails[0], "puts");
	assert_string_equal(opened.function->tails[1], "getpid");
	release(&opened);
}

static void resolve_refuses_a_function_that_never_ends(void **state)
{
	struct opened opened = resolve(*state, "spins", false);

	assert_int_equal(opened.result, -ENOTSUP);
	release(&opened);
}

static void resolve_begins_at_an_instruction_that_is_emulated(void **state)
{
	struct opened opened = resolve(*state, "sized", false);
	uint8_t byte = 0;

	assert_int_equal(opened.result, 0);
	assert_true(opened.function->begin_emulated);
	assert_int_equal(pread(opened.function->fd, &byte, 1, (off_t)opened.function->begin_offset),
			 1);
	assert_true(byte == 0x74 || byte == 0x0f); /* je */
	release(&opened);
}

static void resolve_begins_after_the_marker_with_a_uretprobe_too(void **state)
{
	struct opened opened = resolve(*state, "sized", true);
	uint64_t offset;

	assert_int_equal(opened.result, 0);
	assert_int_equal(
		elf_file__offset(opened.image.elf, opened.function->address, true, &offset), 0);
	assert_int_equal(opened.function->begin_offset, offset + 4);
	assert_int_equal(opened.function->exit_offsets.count, 0);
	release(&opened);
}

static void resolve_gives_a_function_a_descriptor_of_its_own(void **state)
{
	struct opened opened = resolve(*state, "main", false);
	struct stat ours, theirs;

	assert_int_equal(opened.result, 0);
	assert_int_not_equal(opened.function->fd, opened.image.fd);
	assert_int_equal(fstat(opened.function->fd, &ours), 0);
	assert_int_equal(fstat(opened.image.fd, &theirs), 0);
	assert_int_equal(ours.st_ino, theirs.st_ino);
	release(&opened);
}

static void function_free_accepts_nothing(void **state)
{
	step_function_free(NULL);
}

static void function_free_closes_the_file(void **state)
{
	struct step_function *function = step_function_new();
	int fd;

	assert_int_equal(function->fd, -1);
	fd = function->fd = open("/dev/null", O_RDONLY);
	step_function_free(function);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void function_keeps_the_first_argument_of_a_name(void **state)
{
	struct step_function *function = step_function_new();
	struct step_arg first = {.name = "n", .base = 1}, second = {.name = "n", .base = 2};

	step_function_add_arg(function, &first);
	step_function_add_arg(function, &second);
	assert_int_equal(function->arg_count, 1);
	assert_int_equal(function->args[0].base, 1);
	step_function_free(function);
}

static void function_takes_no_more_arguments_than_a_record_holds(void **state)
{
	struct step_function *function = step_function_new();

	for (int i = 0; i < FBT_ARG_COUNT + 2; i++) {
		struct step_arg arg = {.base = 0};

		snprintf(arg.name, sizeof(arg.name), "n%d", i);
		step_function_add_arg(function, &arg);
	}
	assert_int_equal(function->arg_count, FBT_ARG_COUNT);
	step_function_free(function);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolve_refuses_a_function_without_known_end),
		cmocka_unit_test(resolve_refuses_what_is_not_code),
		cmocka_unit_test(resolve_counts_the_exits_of_the_cold_part),
		cmocka_unit_test(resolve_ends_a_function_with_a_tail_call_at_its_call_sites),
		cmocka_unit_test(resolve_names_functions_of_other_files_that_it_jumps_to),
		cmocka_unit_test(resolve_refuses_a_function_that_never_ends),
		cmocka_unit_test(resolve_begins_at_an_instruction_that_is_emulated),
		cmocka_unit_test(resolve_begins_after_the_marker_with_a_uretprobe_too),
		cmocka_unit_test(resolve_gives_a_function_a_descriptor_of_its_own),
		cmocka_unit_test(function_free_accepts_nothing),
		cmocka_unit_test(function_free_closes_the_file),
		cmocka_unit_test(function_keeps_the_first_argument_of_a_name),
		cmocka_unit_test(function_takes_no_more_arguments_than_a_record_holds),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
