/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "steps/engines.h"

#define LEGACY(method)                                                                             \
	"_ZN119_$LT$ferrum_models..executor..llm_executor..LlmExecutor$u20$as$u20$ferrum_"         \
	"interfaces..model_executor..ModelExecutor$GT$" method
#define CLOSURE "28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE"
#define V0(method)                                                                                 \
	"_RNCNvXNtNtCs9qPaKr75brL_13ferrum_models8executor12llm_executorNtB4_11LlmExecutorNtB8_"   \
	"13ModelExecutor" method "0B8_"

/*
 * Names mangled by rustc: the trait of 2026, which is in another crate, and its two implementers.
 */
#define CURRENT "ferrum_execution..model_executor..ModelExecutor$GT$14execute_tokens"
#define CURRENT_LLM                                                                                \
	"_ZN118_$LT$ferrum_models..executor..llm_executor..LlmExecutor$u20$as$u20$" CURRENT
#define CURRENT_PROGRAM                                                                            \
	"_ZN118_$LT$ferrum_execution..driver..ProgramExecutor$LT$R$GT$$u20$as$u20$" CURRENT
#define CURRENT_V0_LLM                                                                             \
	"XNtNtCscBfqg34SqEo_13ferrum_models8executor12llm_executorNtB4_11LlmExecutorNtNtCslosVP"   \
	"YYRpHt_16ferrum_execution14model_executor13ModelExecutor14execute_tokens"
#define CURRENT_V0_PROGRAM                                                                         \
	"XNtCslosVPYYRpHt_16ferrum_execution6driverINtB4_15ProgramExecutorNtNtNtCscBfqg34SqEo_"    \
	"13ferrum_models8executor12llm_executor4PlanENtNtB6_14model_executor13ModelExecutor"       \
	"14execute_tokens"

static bool has(const char *symbol)
{
	return engines_know(symbol, "/opt/engine", true);
}

static void table_leaves_out_llama_names_in_other_libraries(void **state)
{
	assert_false(engines_know("llama_decode", "/usr/lib/libother.so", false));
	assert_true(engines_know("llama_decode", "/usr/lib/libllama.v0.5.0.so", false));
}

static void table_finds_llama_in_a_static_program(void **state)
{
	assert_true(has("llama_decode"));
	assert_true(has("llama_encode"));
	assert_true(has("llama_process"));
	assert_true(has("llama_decode.llvm.1"));
	assert_false(has("llama_decode_internal"));
	assert_false(has("llama_decode.cold"));
}

static void table_finds_the_closures_of_ferrum_in_both_manglings(void **state)
{
	assert_true(has(LEGACY("14unified_decode" CLOSURE)));
	assert_true(has(LEGACY("6decode" CLOSURE)));
	assert_true(has(LEGACY("12batch_decode" CLOSURE)));
	assert_true(has(LEGACY("7prefill" CLOSURE)));
	assert_true(has(LEGACY("13batch_prefill" CLOSURE)));
	assert_true(has(LEGACY("14forward_verify" CLOSURE)));
	assert_true(has(V0("14unified_decode")));
	assert_true(has(V0("6decode")));
	assert_true(has(LEGACY("6decode" CLOSURE ".llvm.7")));
}

static void table_finds_both_executors_of_current_ferrum(void **state)
{
	assert_true(has(CURRENT_LLM CLOSURE));
	assert_true(has(CURRENT_PROGRAM CLOSURE));
	assert_true(has("_RNCNv" CURRENT_V0_LLM "0Ba_"));
	assert_true(has("_RNCNv" CURRENT_V0_PROGRAM "0B1c_"));
	assert_int_equal(engines_rank(CURRENT_PROGRAM CLOSURE), 1);
}

static void table_finds_a_ferrum_whose_types_have_moved(void **state)
{
	assert_true(has("_ZN83_$LT$ferrum_runtime..exec..LlmExecutor$u20$as$u20$ferrum_api..v3.."
			"ModelExecutor$GT$14execute_tokens" CLOSURE));
	assert_true(has("_ZN74_$LT$ferrum..LlmExecutor$LT$B$C$T$GT$$u20$as$u20$ferrum.."
			"ModelExecutor$GT$6decode" CLOSURE));
}

static void table_leaves_out_executors_that_are_not_of_ferrum(void **state)
{
	assert_false(has("_ZN59_$LT$other..LlmExecutor$u20$as$u20$other..ModelExecutor$GT$"
			 "14execute_tokens" CLOSURE));
	assert_false(has("_ZN73_$LT$ferrum_models..MockExecutor$u20$as$u20$ferrum_api.."
			 "ModelExecutor$GT$14execute_tokens" CLOSURE));
	assert_false(has("_ZN77_$LT$ferrum_models..LlmExecutor$u20$as$u20$ferrum_api.."
			 "PlainModelExecutor$GT$14execute_tokens" CLOSURE));
	assert_false(has("_ZN99_$LT$ferrum_models..Wrap$LT$ferrum_models..LlmExecutor$GT$$u20$as"
			 "$u20$ferrum_api..ModelExecutor$GT$14execute_tokens" CLOSURE));
}

static void table_leaves_out_a_closure_within_the_step(void **state)
{
	assert_false(has(CURRENT_LLM "28_$u7b$$u7b$closure$u7d$$u7d$" CLOSURE));
}

static void table_leaves_out_what_only_makes_the_future(void **state)
{
	assert_false(has(LEGACY("14unified_decode17h0123456789abcdefE")));
	assert_false(has(CURRENT_LLM "17h0123456789abcdefE"));
	assert_false(has("_RNv" CURRENT_V0_LLM));
	assert_false(has("_RNvXNtNtCs6WPdJoZjvTJ_13ferrum_models8executor12llm_executorNtB2_"
			 "11LlmExecutorNtB2_13ModelExecutor14unified_decode"));
}

static void table_leaves_out_drop_glue(void **state)
{
	assert_false(
		has("_ZN4core3ptr180drop_in_place$LT$$LT$ferrum_models..executor..llm_executor.."
		    "LlmExecutor$u20$as$u20$ferrum_models..executor..llm_executor.."
		    "ModelExecutor$GT$..decode..$u7b$$u7b$closure$u7d$$u7d$$GT$"
		    "17h027864cb9e274e3bE"));
}

static void table_leaves_out_other_methods(void **state)
{
	assert_false(has(LEGACY("16reserve_kv_slots" CLOSURE)));
	assert_false(has(LEGACY("7decoder" CLOSURE)));
}

static void table_knows_where_n_tokens_lies(void **state)
{
	struct step_arg arg;

	assert_true(engines_find_arg("llama_decode", FBT_ARCH_X86_64, &arg));
	assert_string_equal(arg.name, "n_tokens");
	assert_int_equal(arg.base, STEP_ARG_SP);
	assert_int_equal(arg.offset[0], 8);
	assert_int_equal(arg.reads, 1);
	assert_int_equal(arg.width[0], STEP_ARG_S32);
	assert_true(engines_find_arg("llama_encode", FBT_ARCH_ARM64, &arg));
	assert_int_equal(arg.base, STEP_ARG_REG0 + 1);
	assert_int_equal(arg.offset[0], 0);
	/* The size of a vector of tokens; its capacity serves as a check. */
	assert_true(engines_find_arg("llama_process", FBT_ARCH_X86_64, &arg));
	assert_string_equal(arg.name, "n_tokens");
	assert_int_equal(arg.base, STEP_ARG_REG0 + 2);
	assert_int_equal(arg.element, 112);
	assert_false(engines_find_arg("step", FBT_ARCH_X86_64, &arg));
}

static void table_looks_only_into_files_that_may_hold_a_step(void **state)
{
	assert_true(engines_may_be_in("/usr/lib/libllama.so", false));
	assert_true(engines_may_be_in("/usr/bin/server", true));
	assert_false(engines_may_be_in("/usr/lib/llama/libtorch.so", false));
	assert_true(engines_is_runtime("/lib/x86_64-linux-gnu/libc.so.6"));
	assert_true(engines_is_runtime("/lib64/ld-linux-x86-64.so.2"));
	assert_false(engines_is_runtime("/usr/lib/libcuda_engine.so"));
}

static void table_ranks_known_functions_first(void **state)
{
	assert_int_equal(engines_rank("llama_decode"), 1);
	assert_int_equal(engines_rank(LEGACY("6decode" CLOSURE)), 1);
	assert_true(engines_rank("decode") > 1);
	assert_true(engines_rank("model_decode") > engines_rank("decode"));
	assert_true(engines_rank("_ZN6Engine11processBatchEv") == 0);
	assert_true(engines_rank("_ZN6Engine9enqueueV3EP11CUstream_st") > 1);
}

static void table_ranks_words_only_at_their_borders(void **state)
{
	assert_int_equal(engines_rank("stepping_stone"), 0);
	assert_int_equal(engines_rank("encoder"), 0);
	assert_true(engines_rank("engineStep") > 1);
	assert_true(engines_rank("run_step_once") > 1);
	assert_int_equal(engines_rank("main"), 0);
	assert_int_equal(engines_rank("decode.cold"), 0);
}

static void table_ranks_by_the_last_component_only(void **state)
{
	assert_int_equal(engines_rank("_ZN6decode4helpEv"), 0);
	assert_true(engines_rank("_ZN4help6decodeEv") > 1);
}

static void table_ranks_no_codec_and_no_compiler(void **state)
{
	assert_int_equal(engines_rank("_ZN2h25hpack7decoder7Decoder6decode17h0123456789abcdefE"),
			 0);
	assert_int_equal(
		engines_rank("_ZNK4llvm6object7ELFFileINS0_7ELFTypeILNS_10endiannessE1ELb1E"
			     "EEE6decodeEv"),
		0);
	assert_int_equal(engines_rank("_ZN6asmjit9_abi_1_133x8611InstDecoder6decodeEv"), 0);
	assert_int_equal(engines_rank("_ZN11CBORDecoder6decodeEv"), 0);
	assert_int_equal(engines_rank("_ZN54_$LT$h2..codec..Codec$u20$as$u20$futures..Sink$GT$"
				      "6decode17h0123456789abcdefE"),
			 0);
	assert_int_equal(engines_rank("_ZN11HfTokenizer6decodeEv"), 0);
	assert_true(engines_rank("_ZN7whisper7Decoder6decodeEv") > 1);
}

static void table_has_texts_for_files_of_known_engines_only(void **state)
{
	assert_string_equal(engines_text("/opt/ferrum", 0)->name, "execute_tokens");
	assert_string_equal(engines_text("/opt/ferrum", 1)->name, "unified_decode");
	assert_null(engines_text("/opt/ferrum", 2));
	assert_string_equal(engines_text("/usr/bin/llama-server", 0)->name, "llama_decode");
	assert_string_equal(engines_text("/usr/bin/llama-server", 1)->name, "llama_encode");
	assert_string_equal(engines_text("/usr/bin/llama-server", 2)->name,
			    "llama_context::decode");
	assert_string_equal(engines_text("/usr/bin/llama-server", 3)->name,
			    "llama_context::encode");
	assert_null(engines_text("/usr/bin/llama-server", 4));
	assert_null(engines_text("/opt/ferrum/server", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_leaves_out_llama_names_in_other_libraries),
		cmocka_unit_test(table_finds_llama_in_a_static_program),
		cmocka_unit_test(table_finds_the_closures_of_ferrum_in_both_manglings),
		cmocka_unit_test(table_finds_both_executors_of_current_ferrum),
		cmocka_unit_test(table_finds_a_ferrum_whose_types_have_moved),
		cmocka_unit_test(table_leaves_out_executors_that_are_not_of_ferrum),
		cmocka_unit_test(table_leaves_out_a_closure_within_the_step),
		cmocka_unit_test(table_leaves_out_what_only_makes_the_future),
		cmocka_unit_test(table_leaves_out_drop_glue),
		cmocka_unit_test(table_leaves_out_other_methods),
		cmocka_unit_test(table_knows_where_n_tokens_lies),
		cmocka_unit_test(table_looks_only_into_files_that_may_hold_a_step),
		cmocka_unit_test(table_ranks_known_functions_first),
		cmocka_unit_test(table_ranks_words_only_at_their_borders),
		cmocka_unit_test(table_ranks_by_the_last_component_only),
		cmocka_unit_test(table_ranks_no_codec_and_no_compiler),
		cmocka_unit_test(table_has_texts_for_files_of_known_engines_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
