/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/env_host.h"
#include "base/log.h"
#include "stderr_fixture.h"

static char *const no_environment[] = {NULL};

/* The host of the engine's test document, without the facts that another process cannot see. */
static const struct env_host gpu_host = {.hw_id = "rtx-4090",
					 .driver = "555.42.06",
					 .cuda = "12.4",
					 .rust = "1.78.0",
					 .has_clock = true,
					 .has_power_limit = true,
					 .has_persistence = true,
					 .persistence = true,
					 .clock_mhz = 2520,
					 .power_limit_w = 350};
static const struct env_host plain_host = {.hw_id = "", .rust = ""};

static void expect_document(const struct env_host *host, const char *commit_sha,
			    char *const *environment, const char *expected)
{
	char *text;

	assert_int_equal(env_collect_document(&text, host, commit_sha, environment), 0);
	assert_string_equal(text, expected);
	free(text);
}

/* Expects the effects that the engine infers from a name, in the document's form. */
static void expect_effects(const char *name, const char *effects)
{
	char variable[128], expected[512];

	snprintf(variable, sizeof(variable), "%s=", name);
	snprintf(expected, sizeof(expected),
		 "{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		 "\"ferrum_env\":{\"%s\":\"\"},\"runtime_config\":{\"entries\":[{\"key\":\"%s\","
		 "\"effective_value\":\"\",\"source\":\"env\",\"affects\":[%s]}]}}",
		 name, name, effects);
	expect_document(&plain_host, NULL, (char *const[]){variable, NULL}, expected);
}

static void env_collect_makes_the_engines_document(void **state)
{
	char *environment[] = {"FERRUM_PREFIX_CACHE=0", "PATH=/bin", "FERRUM_KV_MAX_BLOCKS=2048",
			       NULL};

	expect_document(
		&gpu_host, "b769bbd", environment,
		"{\"commit_sha\":\"b769bbd\",\"hw_id\":\"rtx-4090\",\"driver\":\"555.42.06\","
		"\"cuda\":\"12.4\",\"rust\":\"1.78.0\",\"ferrum_features\":[],"
		"\"gpu_clock_lock_mhz\":2520,\"gpu_power_limit_w\":350,"
		"\"gpu_persistence_mode\":true,\"ferrum_env\":{\"FERRUM_KV_MAX_BLOCKS\":\"2048\","
		"\"FERRUM_PREFIX_CACHE\":\"0\"},\"runtime_config\":{\"entries\":["
		"{\"key\":\"FERRUM_KV_MAX_BLOCKS\",\"effective_value\":\"2048\",\"source\":\"env\","
		"\"affects\":[\"memory\"]},"
		"{\"key\":\"FERRUM_PREFIX_CACHE\",\"effective_value\":\"0\",\"source\":\"env\","
		"\"affects\":[\"correctness\"]}]}}");
}

static void env_collect_leaves_out_what_is_not_known(void **state)
{
	expect_document(&plain_host, NULL, no_environment,
			"{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
			"\"ferrum_env\":{},\"runtime_config\":{\"entries\":[]}}");
}

static void env_collect_takes_only_the_engines_variables(void **state)
{
	char *environment[] = {"FERRUM=1", "XFERRUM_A=1", "ferrum_a=1", "FERRUM_NONE",
			       "",	   "=",		  NULL};

	expect_document(&plain_host, "", environment,
			"{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
			"\"ferrum_env\":{},\"runtime_config\":{\"entries\":[]}}");
}

static void env_collect_takes_the_last_of_equal_names(void **state)
{
	char *environment[] = {"FERRUM_X=1", "FERRUM_X=3", "FERRUM_=", "FERRUM_X=2=", NULL};

	expect_document(
		&plain_host, NULL, environment,
		"{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		"\"ferrum_env\":{\"FERRUM_\":\"\",\"FERRUM_X\":\"2=\"},\"runtime_config\":"
		"{\"entries\":[{\"key\":\"FERRUM_\",\"effective_value\":\"\",\"source\":\"env\","
		"\"affects\":[\"performance\"]},{\"key\":\"FERRUM_X\",\"effective_value\":\"2=\","
		"\"source\":\"env\",\"affects\":[\"performance\"]}]}}");
}

static void env_collect_replaces_what_is_no_utf8(void **state)
{
	char *environment[] = {"FERRUM_X=\xff\x01\"", NULL};
	char hash[ENV_HASH_SIZE];

	expect_document(
		&plain_host, "\xfe", environment,
		"{\"commit_sha\":\"\ufffd\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		"\"ferrum_env\":{\"FERRUM_X\":\"\ufffd\\u0001\\\"\"},\"runtime_config\":"
		"{\"entries\":[{\"key\":\"FERRUM_X\",\"effective_value\":\"\ufffd\\u0001\\\"\","
		"\"source\":\"env\",\"affects\":[\"performance\"]}]}}");
	assert_int_equal(env_collect_hash(hash, &plain_host, "\xfe", environment), 0);
}

/* The two names differ, but become equal in the document. */
static void env_collect_takes_names_that_are_no_utf8(void **state)
{
	char *environment[] = {"FERRUM_\xff=1", "FERRUM_\xfe=2", NULL};
	char hash[ENV_HASH_SIZE];

	assert_int_equal(env_collect_hash(hash, &plain_host, NULL, environment), 0);
	assert_silent(*state);
}

/* The effects of a published configuration, as far as the entries' names decide them. */
static void env_collect_infers_the_effects_of_published_entries(void **state)
{
	expect_effects("FERRUM_BACKEND", "\"performance\"");
	expect_effects("FERRUM_FA2_SOURCE", "\"performance\"");
	expect_effects("FERRUM_FA_LAYOUT_VARLEN", "\"performance\"");
	expect_effects("FERRUM_GREEDY_ARGMAX", "\"performance\"");
	expect_effects("FERRUM_KV_MAX_BLOCKS", "\"memory\"");
	expect_effects("FERRUM_MAX_BATCHED_TOKENS", "\"performance\",\"memory\"");
	expect_effects("FERRUM_MOE_DEVICE_ROUTE", "\"performance\"");
	expect_effects("FERRUM_MOE_GRAPH", "\"performance\"");
	expect_effects("FERRUM_MOE_STREAMS", "\"performance\"");
	expect_effects("FERRUM_PAGED_MAX_SEQS", "\"performance\",\"memory\"");
	expect_effects("FERRUM_PREFIX_CACHE", "\"correctness\"");
	expect_effects("FERRUM_USE_VLLM_PAGED_ATTN", "\"performance\"");
	expect_effects("FERRUM_VLLM_MOE", "\"performance\"");
	expect_effects("FERRUM_VLLM_MOE_PAIR_IDS", "\"performance\"");
}

static void env_collect_infers_effects_by_each_word(void **state)
{
	static const char *const words[][2] = {
		{"diagnostics", "DIAG PROF TRACE DUMP LOG_CONFIG CAPTURE DEBUG"},
		{"memory", "KV MEMORY STATE_MAX_SLOTS"},
		{"correctness", "PREFIX_CACHE MODEL_PATH NATIVE SPEC_ REF_ DTYPE"},
		{"performance", "MOE VLLM MARLIN PAGED GRAPH SCHED BATCH ATTN FLASH CUDA TRITON "
				"GREEDY FA OTHER"},
	};
	char list[128], name[64], effects[32];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		snprintf(list, sizeof(list), "%s", words[i][1]);
		snprintf(effects, sizeof(effects), "\"%s\"", words[i][0]);
		for (char *word = strtok(list, " "); word; word = strtok(NULL, " ")) {
			snprintf(name, sizeof(name), "FERRUM_X%sY", word);
			expect_effects(name, effects);
		}
	}
}

static void env_collect_infers_several_effects_in_their_order(void **state)
{
	expect_effects("FERRUM_MODEL_LEN", "\"correctness\",\"memory\"");
	expect_effects("FERRUM_FIT_POLICY", "\"correctness\",\"memory\"");
	expect_effects("FERRUM_RUNTIME_MEMORY_BUDGET_BYTES", "\"correctness\",\"memory\"");
	expect_effects("FERRUM_ATTENTION_POLICY", "\"correctness\",\"performance\"");
	expect_effects("FERRUM_REUSABLE_EXECUTION", "\"correctness\",\"performance\",\"memory\"");
	expect_effects("FERRUM_KV_DTYPE", "\"correctness\",\"memory\"");
	expect_effects("FERRUM_BATCH_DECODE_PROF", "\"performance\",\"diagnostics\"");
	expect_effects("FERRUM_DEBUG_KV_SPEC_N_MOE",
		       "\"correctness\",\"performance\",\"memory\",\"diagnostics\"");
	/* The name contains FA. */
	expect_effects("FERRUM_ARTIFACT", "\"correctness\",\"performance\"");
	/* Only upper case counts. */
	expect_effects("FERRUM_kv", "\"performance\"");
}

static void env_collect_hashes_its_document(void **state)
{
	char hash[ENV_HASH_SIZE], again[ENV_HASH_SIZE], error[256], *text;
	char *environment[] = {"FERRUM_B=1", "FERRUM_A=2", NULL};

	assert_int_equal(env_collect_hash(hash, &plain_host, NULL, no_environment), 0);
	assert_string_equal(
		hash, "sha256:b5883a1670118db0335d99aa8879920e336a39cd9bb18f2b3a658f903e9e504d");
	assert_int_equal(env_collect_hash(hash, &gpu_host, "x", environment), 0);
	assert_int_equal(env_collect_document(&text, &gpu_host, "x", environment), 0);
	assert_int_equal(env_document_hash_text(again, text, strlen(text), error, sizeof(error)),
			 0);
	assert_string_equal(hash, again);
	free(text);
}

static void env_collect_shows_the_document_when_it_is_to_say_more(void **state)
{
	char hash[ENV_HASH_SIZE];

	log_set_level(LOG_DEBUG);
	env_collect_hash(hash, &plain_host, NULL, no_environment);
	log_set_level(LOG_INFO);
	assert_one_line(*state, "environment document: {\"commit_sha\":\"\",\"hw_id\":\"\"");
}

static void env_collect_hashes_secrets_and_does_not_show_them(void **state)
{
	char *one[] = {"FERRUM_API_KEY=secret one", "OTHER=x", "FERRUM_A=1", NULL};
	char *two[] = {"FERRUM_API_KEY=secret two", "FERRUM_A=1", NULL};
	char hash[ENV_HASH_SIZE], other[ENV_HASH_SIZE];

	assert_int_equal(env_collect_hash(other, &plain_host, NULL, two), 0);
	log_set_level(LOG_DEBUG);
	assert_int_equal(env_collect_hash(hash, &plain_host, NULL, one), 0);
	log_set_level(LOG_INFO);
	assert_string_not_equal(hash, other);
	assert_one_line(*state, "\"ferrum_env\":{\"FERRUM_A\":\"1\",\"FERRUM_API_KEY\":"
				"\"[redacted]\"}");
	assert_null(strstr(stderr_text(*state), "secret"));
}

static void env_collect_takes_a_large_environment(void **state)
{
	enum { COUNT = 5000, EACH = 1000 };
	char **environment = calloc(COUNT + 1, sizeof(*environment));
	char hash[ENV_HASH_SIZE];

	for (int i = 0; i < COUNT; i++)
		assert_true(asprintf(&environment[i], "FERRUM_%d=%0*d", (i * 7919) % COUNT, EACH,
				     i) > 0);
	assert_int_equal(env_collect_hash(hash, &plain_host, NULL, environment), 0);
	for (int i = 0; i < COUNT; i++)
		free(environment[i]);
	free(environment);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(env_collect_makes_the_engines_document),
		cmocka_unit_test(env_collect_leaves_out_what_is_not_known),
		cmocka_unit_test(env_collect_takes_only_the_engines_variables),
		cmocka_unit_test(env_collect_takes_the_last_of_equal_names),
		cmocka_unit_test(env_collect_replaces_what_is_no_utf8),
		TEST(env_collect_takes_names_that_are_no_utf8),
		cmocka_unit_test(env_collect_infers_the_effects_of_published_entries),
		cmocka_unit_test(env_collect_infers_effects_by_each_word),
		cmocka_unit_test(env_collect_infers_several_effects_in_their_order),
		cmocka_unit_test(env_collect_hashes_its_document),
		TEST(env_collect_shows_the_document_when_it_is_to_say_more),
		TEST(env_collect_hashes_secrets_and_does_not_show_them),
		cmocka_unit_test(env_collect_takes_a_large_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
