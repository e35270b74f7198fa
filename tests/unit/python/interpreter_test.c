/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "fbt_shared.h"
#include "python/interpreter.h"

enum { RDI = 5, RSP = 7, R8 = 8, RBP = 6 }; /* DWARF register numbers */

static void is_at(const char *arguments, uint32_t number, bool in_memory, int32_t offset)
{
	struct python_generation found = python_generation_parse(arguments);

	assert_int_equal(found.where, FBT_GC_REGISTERS + number);
	assert_int_equal(found.in_memory, in_memory);
	assert_int_equal(found.offset, offset);
}

static void a_generation_may_be_in_a_register(void **state)
{
	is_at("-4@%edi", RDI, false, 0);
	is_at("-4@%r8d", R8, false, 0);
	is_at("4@%edi 8@%rax", RDI, false, 0);
}

static void a_generation_may_be_on_the_stack(void **state)
{
	is_at("-4@112(%rsp)", RSP, true, 112);
	is_at("-4@-20(%rbp) -4@%eax", RBP, true, -20);
	is_at("-4@(%rsp)", RSP, true, 0);
}

static void what_has_another_form_is_nowhere(void **state)
{
	static const char *const forms[] = {
		"",
		"-4@",
		"-4@$2",
		"-8@%rdi",
		"-1@%dil",
		"-4@%xmm0",
		"-4@4(%rip)",
		"-4@(%",
		"-4@4(rsp)",
		"-4@4(%rsp,%rax,4)",
		"-4@gen(%rip)",
		"-4@%",
		"@",
		"-4@9999999999(%rsp)",
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct python_generation found = python_generation_parse(forms[i]);

		assert_int_equal(found.where, FBT_GC_NOWHERE);
		assert_false(found.in_memory);
	}
}

static void the_runtime_lies_where_its_file_is_mapped(void **state)
{
	const struct mapping mapping = {.start = 0x7f0000100000, .offset = 0x1000};
	struct python_interpreter interpreter = {.shift = 0x400000};

	assert_int_equal(python_interpreter_runtime(&interpreter, &mapping), 0);
	/* Code at offset 0x1000 has the address 0x401000. */
	interpreter.address = 0x900000;
	interpreter.size = 64;
	assert_int_equal(python_interpreter_runtime(&interpreter, &mapping),
			 0x7f0000100000 - 0x401000 + 0x900000);
}

static void a_process_without_python_has_none(void **state)
{
	struct mapping mapping;

	assert_false(python_mapping_find((uint32_t)getpid(), &mapping));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_generation_may_be_in_a_register),
		cmocka_unit_test(a_generation_may_be_on_the_stack),
		cmocka_unit_test(what_has_another_form_is_nowhere),
		cmocka_unit_test(the_runtime_lies_where_its_file_is_mapped),
		cmocka_unit_test(a_process_without_python_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
