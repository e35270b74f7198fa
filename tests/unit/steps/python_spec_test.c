/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "steps/python_spec.h"
#include "steps/spec.h"

static struct python_spec take(const char *text)
{
	struct python_spec spec;

	assert_int_equal(python_spec_parse(&spec, text), 0);
	return spec;
}

static void refuse(const char *text)
{
	struct python_spec spec;

	assert_int_equal(python_spec_parse(&spec, text), -EINVAL);
}

static void a_function_is_module_and_name(void **state)
{
	struct python_spec spec = take("py:vllm.v1.engine.core:EngineCore.step");

	assert_string_equal(spec.function, "vllm.v1.engine.core:EngineCore.step");
	assert_int_equal(spec.count, 0);
}

static void numbers_have_names_and_expressions(void **state)
{
	struct python_spec spec = take("py:m:C.f(n_tokens=batch.total,n=len(batch.requests),x=y)");

	assert_string_equal(spec.function, "m:C.f");
	assert_int_equal(spec.count, 3);
	assert_string_equal(spec.names[0], "n_tokens");
	assert_string_equal(spec.expressions[0], "batch.total");
	assert_string_equal(spec.names[1], "n");
	assert_string_equal(spec.expressions[1], "len(batch.requests)");
	assert_string_equal(spec.expressions[2], "y");
}

static void calls_inside_of_a_step_may_give_its_numbers(void **state)
{
	struct python_spec spec = take("py:m:C.f(n=INNER,m=batch.total,pass_us=TIME(Runner.run))");

	assert_int_equal(spec.count, 3);
	assert_string_equal(spec.names[0], "n");
	assert_int_equal(spec.sources[0], STEP_ARG_INNER);
	assert_string_equal(spec.expressions[0], "");
	assert_int_equal(spec.sources[1], STEP_ARG_READ);
	assert_string_equal(spec.expressions[1], "batch.total");
	assert_string_equal(spec.names[2], "pass_us");
	assert_int_equal(spec.sources[2], STEP_ARG_TIME);
	assert_string_equal(spec.expressions[2], "Runner.run");
}

static void a_number_may_be_that_of_the_step_before(void **state)
{
	struct python_spec spec = take("py:m:C.f(n_waited=BEFORE(n),n=INNER)");

	assert_int_equal(spec.sources[0], STEP_ARG_BEFORE);
	assert_string_equal(spec.expressions[0], "n");
	assert_int_equal(spec.sources[1], STEP_ARG_INNER);
}

static void what_only_begins_like_these_forms_is_read(void **state)
{
	struct python_spec spec = take("py:m:f(a=INNERMOST,b=INNER.x,c=TIMES,d=len(INNER))");

	for (int i = 0; i < 4; i++)
		assert_int_equal(spec.sources[i], STEP_ARG_READ);
	assert_string_equal(spec.expressions[0], "INNERMOST");
	assert_string_equal(spec.expressions[1], "INNER.x");
}

static void names_that_differ_have_other_hashes(void **state)
{
	assert_int_equal(python_name_hash("n_tokens"), python_name_hash("n_tokens"));
	assert_int_not_equal(python_name_hash("n_tokens"), python_name_hash("n_requests"));
	assert_int_not_equal(python_name_hash(""), 0);
}

static void names_may_have_letters_of_any_script(void **state)
{
	assert_string_equal(take("py:модуль:Класс.шаг_1").function, "модуль:Класс.шаг_1");
}

static void what_is_no_such_form_is_refused(void **state)
{
	static const char *const texts[] = {
		"py:",
		"py:m",
		"py:m:",
		"py::f",
		"py:m:f.",
		"py:m..n:f",
		"py:1m:f",
		"py:m:f(",
		"py:m:f()",
		"py:m:f(n)",
		"py:m:f(n=)",
		"py:m:f(n=a",
		"py:m:f(n=a)x",
		"py:m:f(n=a,)",
		"py:m:f(n=g(a))",
		"py:m:f(n=len(a)",
		"py:m:f(n=a[0])",
		"py:m:f(n=TIME())",
		"py:m:f(n=TIME(a)",
		"py:m:f(n=TIME(m:f))",
		"py:m:f(n=TIME(len(a)))",
		"py:m:f(n=INNER())",
		"py:m:f(n=a,m=BEFORE(x))",
		"py:m:f(n=BEFORE(n))",
		"py:m:f(n=a,m=BEFORE(n.x))",
		"py:m:f(n=a,m=BEFORE(n),k=BEFORE(m))",
		"py:m:f(n=a b)",
		"py:m:f(=a)",
		"py:m:f (n=a)",
		"py:m:f(a=a,b=a,c=a,d=a,e=a)",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refuse(texts[i]);
}

static void what_is_too_long_is_refused(void **state)
{
	char text[600] = "py:m:";

	memset(text + 5, 'f', 300);
	refuse(text);
	strcpy(text, "py:m:f(");
	memset(text + 7, 'n', 40);
	strcpy(text + 47, "=a)");
	refuse(text);
	strcpy(text, "py:m:f(n=");
	memset(text + 9, 'a', 100);
	strcpy(text + 109, ")");
	refuse(text);
	strcpy(text, "py:m:f(n=TIME(");
	memset(text + 14, 'a', 100);
	strcpy(text + 114, "))");
	refuse(text);
}

static void step_takes_such_a_function(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "py:m:C.f(n=a)"), 0);
	assert_int_equal(spec.form, STEP_SPEC_PYTHON);
	assert_string_equal(spec.text, "py:m:C.f(n=a)");
	step_spec_clear(&spec);
	assert_int_equal(step_spec_parse(&spec, "py:m:C.f(n=)"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_module_and_name),
		cmocka_unit_test(numbers_have_names_and_expressions),
		cmocka_unit_test(calls_inside_of_a_step_may_give_its_numbers),
		cmocka_unit_test(a_number_may_be_that_of_the_step_before),
		cmocka_unit_test(what_only_begins_like_these_forms_is_read),
		cmocka_unit_test(names_that_differ_have_other_hashes),
		cmocka_unit_test(names_may_have_letters_of_any_script),
		cmocka_unit_test(what_is_no_such_form_is_refused),
		cmocka_unit_test(what_is_too_long_is_refused),
		cmocka_unit_test(step_takes_such_a_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
