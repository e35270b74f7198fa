/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/demangle.h"

#define LEGACY                                                                                     \
	"_ZN119_$LT$ferrum_models..executor..llm_executor..LlmExecutor$u20$as$u20$ferrum_"         \
	"interfaces..model_executor..ModelExecutor$GT$14unified_decode28_$u7b$$u7b$closure$u7d$"   \
	"$u7d$17h0123456789abcdefE"
#define V0                                                                                         \
	"_RNCNvXNtNtCs9qPaKr75brL_13ferrum_models8executor12llm_executorNtB4_11LlmExecutorNtB8_"   \
	"13ModelExecutor14unified_decode0B8_"

static void check(const char *symbol, const char *wanted)
{
	char *name = demangle_symbol(symbol);

	assert_non_null(name);
	assert_string_equal(name, wanted);
	free(name);
}

static void demangle_refuses_a_name_without_end(void **state)
{
	char *symbol = malloc(DEMANGLE_NAME_MAX + 1);

	memset(symbol, 'a', DEMANGLE_NAME_MAX);
	symbol[DEMANGLE_NAME_MAX] = 0;
	assert_null(demangle_symbol(symbol));
	assert_null(demangle_with_arguments(symbol));
	free(symbol);
}

static void demangle_keeps_what_only_looks_mangled(void **state)
{
	check("_Znot_a_name", "_Znot_a_name");
	check("_R", "_R");
}

static void demangle_keeps_a_c_name(void **state)
{
	check("llama_decode", "llama_decode");
}

static void demangle_drops_the_hash_of_legacy_rust(void **state)
{
	check(LEGACY, "<ferrum_models::executor::llm_executor::LlmExecutor as "
		      "ferrum_interfaces::model_executor::ModelExecutor>::unified_decode::"
		      "{{closure}}");
}

static void demangle_reads_rust_v0(void **state)
{
	check(V0, "<ferrum_models::executor::llm_executor::LlmExecutor as "
		  "ferrum_models::ModelExecutor>::unified_decode::{closure#0}");
}

static void demangle_drops_the_arguments_of_cpp(void **state)
{
	check("_ZN13llama_context6decodeERK11llama_batch", "llama_context::decode");
}

static void demangle_drops_clone_suffixes(void **state)
{
	check("_ZN13llama_context6decodeERK11llama_batch.llvm.123456", "llama_context::decode");
	check("_ZN13llama_context6decodeERK11llama_batch.constprop.0.isra.0",
	      "llama_context::decode");
	check("step.lto_priv.0", "step");
	check(LEGACY ".llvm.42", "<ferrum_models::executor::llm_executor::LlmExecutor as "
				 "ferrum_interfaces::model_executor::ModelExecutor>::"
				 "unified_decode::{{closure}}");
}

static void demangle_keeps_dots_that_are_no_clone_suffix(void **state)
{
	check("main.runtime_step", "main.runtime_step");
	check("version.2", "version.2");
	check(".cold", ".cold");
	/* Go and Zig. */
	check("main.(*Cache).warm", "main.(*Cache).warm");
	check("main.(*Cache).cold", "main.(*Cache).cold");
	check("main.(*Runner).part", "main.(*Runner).part");
	check("array_list.ArrayListAligned(u8,null).clone",
	      "array_list.ArrayListAligned(u8,null).clone");
}

static void demangle_gives_arguments_when_asked(void **state)
{
	char *name = demangle_with_arguments("_ZN13llama_context6decodeERK11llama_batch");

	assert_string_equal(name, "llama_context::decode(llama_batch const&)");
	free(name);
	assert_null(demangle_with_arguments("llama_decode"));
}

/* Names of a few hundred bytes that expand to 2^34 and more. */
static void demangle_keeps_a_name_that_would_become_endless(void **state)
{
	/*
	 * f(A<int, int>, A<S0_, S0_>, A<S1_, S1_>, ...) and (((i32, i32), (i32, i32)), ...): each
	 * level doubles the size.
	 */
	char cpp[1024] = "_Z1f1AIiiE", rust[2048] = "_RIC1fTiiE";
	size_t at = strlen("IC1f");

	for (int i = 0; i < 34; i++) {
		char digit[2] = {(char)(i < 10 ? '0' + i : 'A' + i - 10), '\0'};

		sprintf(cpp + strlen(cpp), "S_IS%s_S%s_E", digit, digit);
	}
	for (int i = 0; i < 60; i++) {
		size_t next = strlen(rust) - strlen("_R");
		const char *digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
				     "WXYZ";
		char number[3] = {digits[(at - 1) / 62], digits[(at - 1) % 62], '\0'};

		sprintf(rust + strlen(rust), "TB%s_B%s_E", number, number);
		at = next;
	}
	strcat(rust, "E");
	check(cpp, "f");
	assert_null(demangle_with_arguments(cpp));
	check(rust, rust);
}

static void symbol_tells_cold_parts(void **state)
{
	assert_true(symbol_is_cold("step.cold"));
	assert_true(symbol_is_cold("step.cold.1"));
	assert_true(symbol_is_cold("step.constprop.0.cold"));
	assert_false(symbol_is_cold("step.colder"));
	assert_false(symbol_is_cold("cold"));
	assert_false(symbol_is_cold("main.(*Cache).cold"));
}

static void symbol_tells_split_parts(void **state)
{
	assert_true(symbol_is_part("step.part.0"));
	assert_true(symbol_is_part("step.__part.1"));
	assert_false(symbol_is_part("step.partial"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demangle_refuses_a_name_without_end),
		cmocka_unit_test(demangle_keeps_what_only_looks_mangled),
		cmocka_unit_test(demangle_keeps_a_c_name),
		cmocka_unit_test(demangle_drops_the_hash_of_legacy_rust),
		cmocka_unit_test(demangle_reads_rust_v0),
		cmocka_unit_test(demangle_drops_the_arguments_of_cpp),
		cmocka_unit_test(demangle_drops_clone_suffixes),
		cmocka_unit_test(demangle_keeps_dots_that_are_no_clone_suffix),
		cmocka_unit_test(demangle_gives_arguments_when_asked),
		cmocka_unit_test(demangle_keeps_a_name_that_would_become_endless),
		cmocka_unit_test(symbol_tells_cold_parts),
		cmocka_unit_test(symbol_tells_split_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
