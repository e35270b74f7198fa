/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "step_match.h"

#define RUST_LEGACY                                                                                \
	"_ZN13ferrum_engine17continuous_engine21ContinuousBatchEngine10start_loop28_$u7b$$u7b$"    \
	"closure$u7d$$u7d$17h0123456789abcdefE"
#define RUST_DROP                                                                                  \
	"_ZN4core3ptr71drop_in_place$LT$ferrum_models..executor..llm_executor..LlmExecutor$GT$"    \
	"17h85b9a86724a2feceE"
#define CPP "_ZN13llama_context6decodeERK11llama_batch"

static bool matches(const char *text, const char *symbol)
{
	struct step_spec spec;
	bool found;

	assert_int_equal(step_spec_parse(&spec, text), 0);
	found = step_match_symbol(&spec, symbol);
	step_spec_clear(&spec);
	return found;
}

static void match_wants_the_whole_name(void **state)
{
	assert_true(matches("llama_decode", "llama_decode"));
	assert_false(matches("llama_decode", "llama_decode_impl"));
	assert_false(matches("decode", "llama_decode"));
}

static void match_leaves_cold_and_split_parts_out(void **state)
{
	assert_false(matches("step*", "step.cold"));
	assert_false(matches("step", "step.part.0"));
	assert_false(matches("/step/", "step.cold.1"));
}

static void match_sees_through_clone_suffixes(void **state)
{
	assert_true(matches("step", "step.constprop.0"));
	assert_true(matches(CPP, CPP ".llvm.123"));
	assert_true(matches("llama_context::decode", CPP ".llvm.123"));
}

static void match_takes_mangled_and_demangled_names(void **state)
{
	assert_true(matches(CPP, CPP));
	assert_true(matches("llama_context::decode", CPP));
	assert_true(matches("llama_context::decode(llama_batch const&)", CPP));
	assert_false(matches("llama_context::decode()", CPP));
	assert_true(matches("ferrum_engine::continuous_engine::ContinuousBatchEngine::start_loop::"
			    "{{closure}}",
			    RUST_LEGACY));
}

static void match_finds_names_that_mangling_abbreviates(void **state)
{
	assert_true(matches("std::allocator", "_ZSa"));
	assert_true(matches("Engine::operator()", "_ZN6EngineclEv"));
}

static void match_takes_globs(void **state)
{
	assert_true(matches("llama_*code", "llama_decode"));
	assert_true(matches("*::decode", CPP));
	assert_false(matches("llama_?code", "llama_decode"));
}

static void match_takes_a_name_with_brackets_as_it_is(void **state)
{
	assert_true(matches("Engine::name[abi:cxx11]", "_ZN6Engine4nameB5cxx11Ev"));
}

static void match_looks_for_a_regex_in_the_demangled_name(void **state)
{
	assert_true(matches("/context::dec/", CPP));
	assert_true(matches("/^llama_(de|en)code$/", "llama_encode"));
	assert_false(matches("/^_ZN13/", CPP));
}

static void match_leaves_drop_glue_to_who_names_it(void **state)
{
	assert_false(matches("/LlmExecutor/", RUST_DROP));
	assert_true(matches("/drop_in_place.*LlmExecutor/", RUST_DROP));
}

static void match_compares_paths_by_components(void **state)
{
	assert_true(step_match_path("/usr/lib/libllama.so", "/usr/lib/libllama.so"));
	assert_true(step_match_path("libllama.so", "/usr/lib/libllama.so"));
	assert_true(step_match_path("lib/libllama.so", "/usr/lib/libllama.so"));
	assert_true(step_match_path("./libllama.so", "/usr/lib/libllama.so"));
	assert_false(step_match_path("llama.so", "/usr/lib/libllama.so"));
	assert_false(step_match_path("/lib/libllama.so", "/usr/lib/libllama.so"));
	assert_false(step_match_path("libllama.so.1", "/usr/lib/libllama.so"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(match_wants_the_whole_name),
		cmocka_unit_test(match_leaves_cold_and_split_parts_out),
		cmocka_unit_test(match_sees_through_clone_suffixes),
		cmocka_unit_test(match_takes_mangled_and_demangled_names),
		cmocka_unit_test(match_finds_names_that_mangling_abbreviates),
		cmocka_unit_test(match_takes_globs),
		cmocka_unit_test(match_takes_a_name_with_brackets_as_it_is),
		cmocka_unit_test(match_looks_for_a_regex_in_the_demangled_name),
		cmocka_unit_test(match_leaves_drop_glue_to_who_names_it),
		cmocka_unit_test(match_compares_paths_by_components),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
