/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "steps/spec.h"

static void refuse_step(const char *text)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, text), -EINVAL);
	assert_null(spec.text);
}

static void refuse_arg(const char *text)
{
	struct step_arg arg;

	assert_int_equal(step_arg_parse(&arg, text), -EINVAL);
}

static struct step_arg take_arg(const char *text)
{
	struct step_arg arg;

	assert_int_equal(step_arg_parse(&arg, text), 0);
	return arg;
}

static void step_spec_refuses_an_empty_text(void **state)
{
	refuse_step("");
}

static void step_spec_refuses_a_path_without_symbol(void **state)
{
	refuse_step("libllama.so:");
}

static void step_spec_refuses_a_symbol_after_an_empty_path(void **state)
{
	refuse_step(":llama_decode");
}

static void step_spec_refuses_a_broken_regex(void **state)
{
	refuse_step("/decode(/");
}

static void step_spec_refuses_an_address_without_digits(void **state)
{
	refuse_step("engine+0x");
}

static void step_spec_refuses_an_address_over_64_bits(void **state)
{
	refuse_step("engine+0x10000000000000000");
}

static void step_spec_refuses_a_usdt_without_end(void **state)
{
	refuse_step("usdt:engine:begin");
}

static void step_spec_refuses_a_usdt_with_an_empty_name(void **state)
{
	refuse_step("usdt:engine:,end");
	refuse_step("usdt::begin,end");
	refuse_step("usdt:engine:begin,");
}

static void step_spec_takes_a_plain_symbol(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "llama_decode"), 0);
	assert_int_equal(spec.form, STEP_SPEC_SYMBOL);
	assert_string_equal(spec.pattern, "llama_decode");
	assert_null(spec.path);
	step_spec_clear(&spec);
}

static void step_spec_takes_double_colons_as_part_of_a_name(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "<a::B as c::D>::run::{{closure}}"), 0);
	assert_string_equal(spec.pattern, "<a::B as c::D>::run::{{closure}}");
	assert_null(spec.path);
	step_spec_clear(&spec);
}

static void step_spec_takes_an_abi_tag_as_part_of_a_name(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "engine::name[abi:cxx11]"), 0);
	assert_null(spec.path);
	step_spec_clear(&spec);
}

static void step_spec_splits_a_path_from_a_qualified_name(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "lib/libllama.so:llama_context::decode"), 0);
	assert_string_equal(spec.path, "lib/libllama.so");
	assert_string_equal(spec.pattern, "llama_context::decode");
	step_spec_clear(&spec);
}

static void step_spec_takes_a_regex_after_a_path(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "/usr/bin/engine:/^step_[0-9]+$/"), 0);
	assert_int_equal(spec.form, STEP_SPEC_REGEX);
	assert_string_equal(spec.path, "/usr/bin/engine");
	assert_int_equal(regexec(&spec.regex, "step_12", 0, NULL, 0), 0);
	step_spec_clear(&spec);
}

static void step_spec_takes_a_regex_with_a_colon(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "/a:b/"), 0);
	assert_int_equal(spec.form, STEP_SPEC_REGEX);
	assert_string_equal(spec.pattern, "a:b");
	step_spec_clear(&spec);
}

static void step_spec_takes_an_address(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "/opt/g++/engine+0x1f2170"), 0);
	assert_int_equal(spec.form, STEP_SPEC_ADDRESS);
	assert_string_equal(spec.path, "/opt/g++/engine");
	assert_int_equal(spec.address, 0x1f2170);
	step_spec_clear(&spec);
}

static void step_spec_takes_a_usdt(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "usdt:engine:step__begin,step__end"), 0);
	assert_int_equal(spec.form, STEP_SPEC_USDT);
	assert_string_equal(spec.provider, "engine");
	assert_string_equal(spec.begin_name, "step__begin");
	assert_string_equal(spec.end_name, "step__end");
	step_spec_clear(&spec);
}

static void step_arg_refuses_a_text_without_name(void **state)
{
	refuse_arg("s32(sp+8)");
	refuse_arg("=arg0");
}

static void step_arg_refuses_a_name_that_is_no_word(void **state)
{
	refuse_arg("1n=arg0");
	refuse_arg("a-b=arg0");
	refuse_arg("a_name_of_more_than_31_characters_=arg0");
}

static void step_arg_refuses_a_seventh_argument(void **state)
{
	refuse_arg("n=arg6");
}

static void step_arg_refuses_the_stack_pointer_itself(void **state)
{
	refuse_arg("n=sp");
}

static void step_arg_refuses_three_reads(void **state)
{
	refuse_arg("n=u64(u64(u64(arg0)))");
}

static void step_arg_refuses_an_address_of_32_bits(void **state)
{
	refuse_arg("n=s32(u32(arg0))");
}

static void step_arg_refuses_an_offset_over_32_bits(void **state)
{
	refuse_arg("n=s32(arg0+0x80000000)");
}

static void step_arg_refuses_text_after_the_end(void **state)
{
	refuse_arg("n=s32(arg0))");
	refuse_arg("n=s32(arg0");
	refuse_arg("n=arg0 ");
	refuse_arg("n=s32(arg0+)");
	refuse_arg("n=s32(arg0+-8)");
}

static void step_arg_takes_a_register(void **state)
{
	struct step_arg arg = take_arg("n=arg5");

	assert_int_equal(arg.base, 5);
	assert_int_equal(arg.reads, 0);
}

static void step_arg_takes_a_stack_slot(void **state)
{
	struct step_arg arg = take_arg("n_tokens=s32(sp+8)");

	assert_string_equal(arg.name, "n_tokens");
	assert_int_equal(arg.base, STEP_ARG_SP);
	assert_int_equal(arg.reads, 1);
	assert_int_equal(arg.offset[0], 8);
	assert_int_equal(arg.width[0], STEP_ARG_S32);
}

static void step_arg_orders_two_reads_from_the_inside(void **state)
{
	struct step_arg arg = take_arg("n=u32(u64(arg1-0x10)+24)");

	assert_int_equal(arg.reads, 2);
	assert_int_equal(arg.offset[0], -16);
	assert_int_equal(arg.width[0], STEP_ARG_U64);
	assert_int_equal(arg.offset[1], 24);
	assert_int_equal(arg.width[1], STEP_ARG_U32);
}

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
	found = step_spec_matches_symbol(&spec, symbol);
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
	assert_true(step_spec_matches_path("/usr/lib/libllama.so", "/usr/lib/libllama.so"));
	assert_true(step_spec_matches_path("libllama.so", "/usr/lib/libllama.so"));
	assert_true(step_spec_matches_path("lib/libllama.so", "/usr/lib/libllama.so"));
	assert_true(step_spec_matches_path("./libllama.so", "/usr/lib/libllama.so"));
	assert_false(step_spec_matches_path("llama.so", "/usr/lib/libllama.so"));
	assert_false(step_spec_matches_path("/lib/libllama.so", "/usr/lib/libllama.so"));
	assert_false(step_spec_matches_path("libllama.so.1", "/usr/lib/libllama.so"));
}

static void string_is_a_text_perhaps_of_one_file(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "string:cannot decode: %s"), 0);
	assert_int_equal(spec.form, STEP_SPEC_TEXT);
	assert_string_equal(spec.pattern, "cannot decode: %s");
	assert_null(spec.path);
	step_spec_clear(&spec);
	assert_int_equal(step_spec_parse(&spec, "bin/ferrum:string:a+0x10: b"), 0);
	assert_int_equal(spec.form, STEP_SPEC_TEXT);
	assert_string_equal(spec.path, "bin/ferrum");
	assert_string_equal(spec.pattern, "a+0x10: b");
	step_spec_clear(&spec);
	assert_int_equal(step_spec_parse(&spec, "std::string::at"), 0);
	assert_int_equal(spec.form, STEP_SPEC_SYMBOL);
	step_spec_clear(&spec);
	assert_int_equal(step_spec_parse(&spec, "my_string:symbol"), 0);
	assert_int_equal(spec.form, STEP_SPEC_SYMBOL);
	step_spec_clear(&spec);
}

static void string_needs_a_text_of_some_length(void **state)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, "string:short"), -EINVAL);
	assert_int_equal(step_spec_parse(&spec, "string:"), -EINVAL);
	assert_int_equal(step_spec_parse(&spec, ":string:longer text"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_spec_refuses_an_empty_text),
		cmocka_unit_test(step_spec_refuses_a_path_without_symbol),
		cmocka_unit_test(step_spec_refuses_a_symbol_after_an_empty_path),
		cmocka_unit_test(step_spec_refuses_a_broken_regex),
		cmocka_unit_test(step_spec_refuses_an_address_without_digits),
		cmocka_unit_test(step_spec_refuses_an_address_over_64_bits),
		cmocka_unit_test(step_spec_refuses_a_usdt_without_end),
		cmocka_unit_test(step_spec_refuses_a_usdt_with_an_empty_name),
		cmocka_unit_test(step_spec_takes_a_plain_symbol),
		cmocka_unit_test(step_spec_takes_double_colons_as_part_of_a_name),
		cmocka_unit_test(step_spec_takes_an_abi_tag_as_part_of_a_name),
		cmocka_unit_test(step_spec_splits_a_path_from_a_qualified_name),
		cmocka_unit_test(step_spec_takes_a_regex_after_a_path),
		cmocka_unit_test(step_spec_takes_a_regex_with_a_colon),
		cmocka_unit_test(step_spec_takes_an_address),
		cmocka_unit_test(step_spec_takes_a_usdt),
		cmocka_unit_test(step_arg_refuses_a_text_without_name),
		cmocka_unit_test(step_arg_refuses_a_name_that_is_no_word),
		cmocka_unit_test(step_arg_refuses_a_seventh_argument),
		cmocka_unit_test(step_arg_refuses_the_stack_pointer_itself),
		cmocka_unit_test(step_arg_refuses_three_reads),
		cmocka_unit_test(step_arg_refuses_an_address_of_32_bits),
		cmocka_unit_test(step_arg_refuses_an_offset_over_32_bits),
		cmocka_unit_test(step_arg_refuses_text_after_the_end),
		cmocka_unit_test(step_arg_takes_a_register),
		cmocka_unit_test(step_arg_takes_a_stack_slot),
		cmocka_unit_test(step_arg_orders_two_reads_from_the_inside),
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
		cmocka_unit_test(string_is_a_text_perhaps_of_one_file),
		cmocka_unit_test(string_needs_a_text_of_some_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
