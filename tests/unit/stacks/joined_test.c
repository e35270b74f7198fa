/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Native functions are written as letters: e runs the script, g is generated, t the trampoline. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "stacks/joined.h"

static struct native_function native(char letter)
{
	static const char *const names[128] = {
		['e'] = "_PyEval_EvalFrameDefault",
		['c'] = "_PyEval_EvalFrameDefault.cold",
		['l'] = "_PyEval_EvalFrameDefault.llvm.123",
		['b'] = "_PyEval_EvalFrameDefault/1",
		['x'] = "_PyEval_EvalFrameDefaultX",
		['i'] = "_TAIL_CALL_CALL_BUILTIN",
		['t'] = "py_trampoline_evaluator",
		['n'] = "take_gil",
		['m'] = "main",
	};

	return (struct native_function){names[(int)letter], letter == 'g'};
}

/*
 * script: a letter for each function, the innermost first, a capital for one that was called from
 * C;
 * "+" at its end: there are more. joined: what comes out, "-": they do not fit.
 */
static void joins(const char *natives, bool is_whole, const char *script, const char *joined)
{
	struct native_function functions[32];
	struct script_frame frames[32];
	struct script_stack stack = {frames, strcspn(script, "+"), strchr(script, '+') != NULL};
	struct joint joints[64];
	char got[65] = "-";
	uint32_t count;

	for (size_t i = 0; natives[i]; i++)
		functions[i] = native(natives[i]);
	for (size_t i = 0; i < stack.count; i++)
		frames[i] = (struct script_frame){"", "", 1, script[i] < 'a'};
	count = stacks_join(functions, (uint32_t)strlen(natives), is_whole, &stack, joints);
	for (uint32_t i = 0; i < count; i++)
		got[i] = joints[i].is_script ? script[joints[i].index] : natives[joints[i].index];
	if (count)
		got[count] = '\0';
	assert_string_equal(got, joined);
}

static void each_call_of_the_interpreter_has_its_functions(void **state)
{
	joins("nem", true, "A", "nAm");
	joins("nem", true, "abC", "nabCm");
	joins("nenem", true, "aBcD", "naBncDm");
	joins("eee", true, "ABC", "ABC");
}

static void parts_of_the_interpreter_are_it(void **state)
{
	joins("ncnlnbm", true, "AbCD", "nAnbCnDm");
	joins("nxm", false, "", "nxm");
	joins("niem", true, "A", "nAm");
}

static void calls_through_generated_code_are_one(void **state)
{
	joins("negtnegtm", true, "AB", "nAnBm");
	joins("ngem", true, "A", "ngAm");
	joins("negm", true, "A", "nAgm");
}

static void what_does_not_fit_is_not_joined(void **state)
{
	joins("nem", true, "AB", "-");
	joins("nenem", true, "A", "-");
	joins("nem", true, "ab", "-");
	joins("nm", true, "A", "-");
	joins("nem", true, "", "-");
	joins("nenem", false, "A", "-");
}

static void of_a_part_of_the_native_stack_the_inner_functions_are_used(void **state)
{
	joins("nenm", false, "aBCD", "naBnm");
	joins("nm", false, "AB", "nm");
}

static void functions_that_are_not_known_leave_the_interpreter(void **state)
{
	joins("nenenem", true, "aBc+", "naBncnem");
	joins("nem", true, "ab+", "nabm");
}

int main(void)
{
#define FACT(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		FACT(each_call_of_the_interpreter_has_its_functions),
		FACT(parts_of_the_interpreter_are_it),
		FACT(calls_through_generated_code_are_one),
		FACT(what_does_not_fit_is_not_joined),
		FACT(of_a_part_of_the_native_stack_the_inner_functions_are_used),
		FACT(functions_that_are_not_known_leave_the_interpreter),
	};

	return cmocka_run_group_tests_name("stacks/joined", tests, NULL, NULL);
}
