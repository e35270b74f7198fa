/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/env_document.h"

/* The engine's own test document (fixture_env), as serde_json writes it. */
static const char fixture[] =
	"{\"commit_sha\":\"b769bbd\",\"hw_id\":\"rtx-4090\",\"driver\":\"555.42.06\",\"cuda\":\"12."
	"4\","
	"\"rust\":\"1.78.0\",\"ferrum_features\":[\"cuda\",\"vllm-moe-marlin\"],"
	"\"gpu_clock_lock_mhz\":2520,\"gpu_power_limit_w\":350,\"gpu_persistence_mode\":true,"
	"\"gpu_auto_boost\":false,\"ferrum_env\":{\"FERRUM_KV_MAX_BLOCKS\":\"2048\","
	"\"FERRUM_PREFIX_CACHE\":\"0\"},\"runtime_config\":{\"entries\":[]}}";

/* The entries of a configuration that the engine published together with its hash. */
static const char entries[] =
	"[{\"key\":\"FERRUM_BACKEND\",\"effective_value\":\"cuda\",\"source\":\"cli\",\"affects\":["
	"\"performance\"]},"
	"{\"key\":\"FERRUM_FA2_SOURCE\",\"effective_value\":\"1\",\"source\":\"env\",\"affects\":["
	"\"performance\"]},"
	"{\"key\":\"FERRUM_FA_LAYOUT_VARLEN\",\"effective_value\":\"1\",\"source\":\"env\","
	"\"affects\":[\"performance\"]},"
	"{\"key\":\"FERRUM_GREEDY_ARGMAX\",\"effective_value\":\"1\",\"source\":\"cli\","
	"\"affects\":[\"performance\"]},"
	"{\"key\":\"FERRUM_KV_MAX_BLOCKS\",\"effective_value\":\"2048\",\"source\":\"cli\","
	"\"affects\":[\"memory\"]},"
	"{\"key\":\"FERRUM_MAX_BATCHED_TOKENS\",\"effective_value\":\"2048\",\"source\":\"memory_"
	"profile\",\"affects\":[\"performance\",\"memory\"]},"
	"{\"key\":\"FERRUM_MOE_DEVICE_ROUTE\",\"effective_value\":\"1\",\"source\":\"cli\","
	"\"affects\":[\"performance\"]},"
	"{\"key\":\"FERRUM_MOE_GRAPH\",\"effective_value\":\"1\",\"source\":\"cli\",\"affects\":["
	"\"performance\"]},"
	"{\"key\":\"FERRUM_MOE_STREAMS\",\"effective_value\":\"4\",\"source\":\"cli\",\"affects\":["
	"\"performance\"]},"
	"{\"key\":\"FERRUM_PAGED_MAX_SEQS\",\"effective_value\":\"32\",\"source\":\"cli\","
	"\"affects\":[\"performance\",\"memory\"]},"
	"{\"key\":\"FERRUM_PREFIX_CACHE\",\"effective_value\":\"0\",\"source\":\"cli\",\"affects\":"
	"[\"correctness\"]},"
	"{\"key\":\"FERRUM_USE_VLLM_PAGED_ATTN\",\"effective_value\":\"1\",\"source\":\"cli\","
	"\"affects\":[\"performance\"]},"
	"{\"key\":\"FERRUM_VLLM_MOE\",\"effective_value\":\"1\",\"source\":\"cli\",\"affects\":["
	"\"performance\"]},"
	"{\"key\":\"FERRUM_VLLM_MOE_PAIR_IDS\",\"effective_value\":\"1\",\"source\":\"cli\","
	"\"affects\":[\"performance\"]}]";

/* The smallest document, with its members in the order in which they are written. */
static const char empty[] =
	"{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
	"\"ferrum_env\":{},\"runtime_config\":{\"entries\":[]}}";

static void expect_hash(const char *text, const char *expected)
{
	char hash[ENV_HASH_SIZE], error[512] = "";

	if (env_document_hash_text(hash, text, strlen(text), error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	assert_string_equal(hash, expected);
}

static void expect_bytes(const char *text, const char *expected)
{
	struct json_object *document = NULL;
	char error[512] = "", *bytes;
	size_t size;
	FILE *out;

	if (json_read(text, strlen(text), &document, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	out = open_memstream(&bytes, &size);
	if (env_document_write(out, document, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	fclose(out);
	assert_string_equal(bytes, expected);
	assert_int_equal(size, strlen(expected));
	free(bytes);
	json_object_put(document);
}

static void expect_refused(const char *text, const char *reason)
{
	char hash[ENV_HASH_SIZE], error[512] = "";

	assert_int_equal(env_document_hash_text(hash, text, strlen(text), error, sizeof(error)),
			 -EBADMSG);
	assert_string_equal(error, reason);
}

/* Replaces part by text in the empty document and expects that it is refused for this reason. */
static void expect_changed_refused(const char *part, const char *text, const char *reason)
{
	const char *at = strstr(empty, part);
	char *changed;

	assert_non_null(at);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - empty), empty, text,
			     at + strlen(part)) > 0);
	expect_refused(changed, reason);
	free(changed);
}

static void env_document_has_the_engines_hash(void **state)
{
	expect_hash(fixture,
		    "sha256:9413cc099389e926ef0e2d87c444b81ce32b5ec593ad32a7928f8f163860973c");
	expect_hash(empty,
		    "sha256:b5883a1670118db0335d99aa8879920e336a39cd9bb18f2b3a658f903e9e504d");
}

static void env_document_of_entries_has_the_engines_hash(void **state)
{
	expect_hash(entries,
		    "sha256:6b56a1a3567d2ffd410cd1b6e3738bcf6869384a19e3a01fc37326cd5990a8d8");
	expect_hash("[]",
		    "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945");
}

static void env_document_is_written_as_the_engine_writes_it(void **state)
{
	expect_bytes(fixture, fixture);
	expect_bytes(entries, entries);
	expect_bytes(empty, empty);
}

static void env_document_does_not_depend_on_the_order_and_spaces_of_the_input(void **state)
{
	expect_bytes("\n{ \"runtime_config\" : { \"entries\" : [ ] },\n \"ferrum_env\" : {"
		     "\"FERRUM_PREFIX_CACHE\":\"0\",\t\"FERRUM_KV_MAX_BLOCKS\":\"2048\"},"
		     "\"gpu_auto_boost\":false,\"gpu_persistence_mode\":true,"
		     "\"gpu_power_limit_w\":350,\"gpu_clock_lock_mhz\":2520,"
		     "\"ferrum_features\":[\"cuda\",\"vllm-moe-marlin\"],\"rust\":\"1.78.0\","
		     "\"cuda\":\"12.4\",\"driver\":\"555.42.06\",\"hw_id\":\"rtx-4090\","
		     "\"commit_sha\":\"b769bbd\"}\r\n",
		     fixture);
	expect_bytes(
		"[{\"affects\":[],\"source\":\"cli\",\"effective_value\":\"v\",\"key\":\"k\"}]",
		"[{\"key\":\"k\",\"effective_value\":\"v\",\"source\":\"cli\",\"affects\":[]}]");
}

static void env_document_leaves_out_what_is_null(void **state)
{
	expect_bytes(
		"{\"commit_sha\":\"\",\"hw_id\":\"\",\"driver\":null,\"cuda\":null,"
		"\"rust\":\"\",\"ferrum_features\":[],\"gpu_clock_lock_mhz\":null,"
		"\"gpu_power_limit_w\":null,\"gpu_persistence_mode\":null,"
		"\"gpu_auto_boost\":null,\"ferrum_env\":{},\"runtime_config\":{\"entries\":[]},"
		"\"vllm_args\":null}",
		empty);
}

static void env_document_without_a_runtime_config_has_an_empty_one(void **state)
{
	expect_bytes("{\"commit_sha\":\"a\",\"hw_id\":\"b\",\"rust\":\"c\","
		     "\"ferrum_features\":[],\"ferrum_env\":{},\"vllm_args\":[]}",
		     "{\"commit_sha\":\"a\",\"hw_id\":\"b\",\"rust\":\"c\","
		     "\"ferrum_features\":[],\"ferrum_env\":{},\"runtime_config\":{\"entries\":[]},"
		     "\"vllm_args\":[]}");
}

/* A document of ferrum 0.18. */
static void env_document_has_what_an_http_client_sent(void **state)
{
	expect_bytes("{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"http_request_sampling\":"
		     "{\"seed\":18446744073709551615,\"repetition_penalty\":1,\"top_p\":null,"
		     "\"top_k\":20,\"temperature\":0.60000001},\"ferrum_features\":[],"
		     "\"http_connection_mode\":\"keep-alive\",\"ferrum_env\":{}}",
		     "{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		     "\"http_connection_mode\":\"keep-alive\",\"ferrum_env\":{},\"runtime_config\":"
		     "{\"entries\":[]},\"http_request_sampling\":{\"temperature\":0.6,\"top_k\":20,"
		     "\"repetition_penalty\":1.0,\"seed\":18446744073709551615}}");
}

static void env_document_writes_vllm_args_last(void **state)
{
	expect_bytes("{\"vllm_args\":[\"b\",\"a\",\"b\"],\"commit_sha\":\"\",\"hw_id\":\"\","
		     "\"rust\":\"\",\"ferrum_features\":[],\"ferrum_env\":{}}",
		     "{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		     "\"ferrum_env\":{},\"runtime_config\":{\"entries\":[]},"
		     "\"vllm_args\":[\"b\",\"a\",\"b\"]}");
}

static void env_document_keeps_arrays_as_they_are(void **state)
{
	static const char unsorted[] =
		"{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\","
		"\"ferrum_features\":[\"z\",\"a\",\"z\"],\"ferrum_env\":{},\"runtime_config\":"
		"{\"entries\":[{\"key\":\"b\",\"effective_value\":\"\",\"source\":\"default\","
		"\"affects\":[\"diagnostics\",\"memory\",\"performance\",\"correctness\","
		"\"memory\"]},"
		"{\"key\":\"a\",\"effective_value\":\"\",\"source\":\"script_case\",\"affects\":[]}"
		","
		"{\"key\":\"a\",\"effective_value\":\"\",\"source\":\"config_file\",\"affects\":[]}"
		"]}}";

	expect_bytes(unsorted, unsorted);
}

static void env_document_sorts_ferrum_env_by_bytes(void **state)
{
	expect_bytes("{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		     "\"ferrum_env\":{\"F_\\u00e4\":\"1\",\"F_a\":\"2\",\"F_\":\"3\",\"F_Z\":\"4\","
		     "\"F_\\ud83d\\ude00\":\"5\",\"F_\\uffff\":\"6\",\"\":\"7\",\"F_a_\":\"8\"},"
		     "\"runtime_config\":{\"entries\":[]}}",
		     "{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		     "\"ferrum_env\":{\"\":\"7\",\"F_\":\"3\",\"F_Z\":\"4\",\"F_a\":\"2\","
		     "\"F_a_\":\"8\",\"F_\u00e4\":\"1\",\"F_\uffff\":\"6\",\"F_\U0001f600\":\"5\"},"
		     "\"runtime_config\":{\"entries\":[]}}");
}

static void env_document_escapes_as_serde_json_does(void **state)
{
	expect_bytes("[{\"key\":\"\\u0041\\/\\\"\\\\\\b\\f\\n\\r\\t\",\"effective_value\":"
		     "\"\\u0000\\u001F\\u007f\\u00e9\\ud83d\\ude00\\u2028\",\"source\":\"env\","
		     "\"affects\":[]}]",
		     "[{\"key\":\"A/\\\"\\\\\\b\\f\\n\\r\\t\",\"effective_value\":"
		     "\"\\u0000\\u001f\x7f\u00e9\U0001f600\u2028\",\"source\":\"env\","
		     "\"affects\":[]}]");
}

static void env_document_takes_every_u32(void **state)
{
	static const char most[] = "{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\","
				   "\"ferrum_features\":[],\"gpu_clock_lock_mhz\":0,"
				   "\"gpu_power_limit_w\":4294967295,\"ferrum_env\":{},"
				   "\"runtime_config\":{\"entries\":[]}}";

	expect_bytes(most, most);
}

static void env_document_takes_every_source_and_effect(void **state)
{
	static const char *const sources[] = {"default", "config_file", "cli",
					      "env",	 "script_case", "memory_profile"};
	char text[256];

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		snprintf(text, sizeof(text),
			 "[{\"key\":\"\",\"effective_value\":\"\",\"source\":\"%s\",\"affects\":"
			 "[\"correctness\",\"performance\",\"memory\",\"diagnostics\"]}]",
			 sources[i]);
		expect_bytes(text, text);
	}
}

static void env_document_refuses_a_missing_field(void **state)
{
	expect_refused("{}", "missing field `commit_sha`");
	expect_changed_refused("\"commit_sha\":\"\",", "", "missing field `commit_sha`");
	expect_changed_refused("\"hw_id\":\"\",", "", "missing field `hw_id`");
	expect_changed_refused("\"rust\":\"\",", "", "missing field `rust`");
	expect_changed_refused("\"ferrum_features\":[],", "", "missing field `ferrum_features`");
	expect_changed_refused("\"ferrum_env\":{},", "", "missing field `ferrum_env`");
	expect_changed_refused("{\"entries\":[]}", "{}", "runtime_config: missing field `entries`");
	expect_refused("[{}]", "[0]: missing field `key`");
	expect_refused("[{\"key\":\"\"}]", "[0]: missing field `effective_value`");
	expect_refused("[{\"key\":\"\",\"effective_value\":\"\",\"affects\":[]}]",
		       "[0]: missing field `source`");
	expect_refused("[{\"key\":\"\",\"effective_value\":\"\",\"source\":\"cli\"}]",
		       "[0]: missing field `affects`");
}

static void env_document_names_the_unknown_fields_that_it_leaves_out(void **state)
{
	static const char text[] =
		"{\"rusty\":1,\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\","
		"\"ferrum_features\":[],\"ferrum_env\":{},\"runtime_config\":{\"entries\":[],"
		"\"version\":{\"a\":[null]}}}";
	char hash[ENV_HASH_SIZE], error[512] = "";

	expect_bytes(text, empty);
	assert_int_equal(env_document_hash_text(hash, text, strlen(text), error, sizeof(error)), 0);
	assert_string_equal(error, "rusty, runtime_config.version");
	expect_bytes("[{\"value\":\"\",\"key\":\"\",\"effective_value\":\"\",\"source\":\"cli\","
		     "\"affects\":[]}]",
		     "[{\"key\":\"\",\"effective_value\":\"\",\"source\":\"cli\",\"affects\":[]}]");
	/* A missing field is reported first, whatever else is wrong. */
	expect_refused("[{\"key\":\"\",\"value\":\"\"}]", "[0]: missing field `effective_value`");
}

static void env_document_refuses_what_is_no_string(void **state)
{
	expect_changed_refused("\"commit_sha\":\"\"", "\"commit_sha\":null",
			       "commit_sha: expected a string, found null");
	expect_changed_refused("\"hw_id\":\"\"", "\"hw_id\":true",
			       "hw_id: expected a string, found true");
	expect_changed_refused("\"rust\":\"\"", "\"rust\":1.78",
			       "rust: expected a string, found 1.78");
	expect_changed_refused(
		"\"rust\":", "\"driver\":555,\"rust\":", "driver: expected a string, found 555");
	expect_changed_refused(
		"\"rust\":", "\"cuda\":{},\"rust\":", "cuda: expected a string, found a map");
	expect_changed_refused("\"ferrum_env\":{}", "\"ferrum_env\":{\"A\":\"\",\"B\":1}",
			       "ferrum_env.B: expected a string, found 1");
	expect_changed_refused("\"ferrum_features\":[]", "\"ferrum_features\":[\"a\",null]",
			       "ferrum_features[1]: expected a string, found null");
	expect_refused("[{\"key\":[],\"effective_value\":\"\",\"source\":\"cli\",\"affects\":[]}]",
		       "[0].key: expected a string, found a sequence");
}

static void env_document_refuses_what_is_no_u32(void **state)
{
	static const struct {
		const char *text;
		const char *reason;
	} cases[] = {
		{"-0", "expected u32, found -0"},
		{"2520.0", "expected u32, found 2520.0"},
		{"2.52e3", "expected u32, found 2.52e3"},
		{"-1", "expected u32, found -1"},
		{"4294967296", "expected u32, found 4294967296"},
		{"18446744073709551615", "expected u32, found 18446744073709551615"},
		{"\"350\"", "expected u32, found \"350\""},
		{"true", "expected u32, found true"},
	};
	char text[64], reason[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "\"gpu_clock_lock_mhz\":%s,\"rust\":", cases[i].text);
		snprintf(reason, sizeof(reason), "gpu_clock_lock_mhz: %s", cases[i].reason);
		expect_changed_refused("\"rust\":", text, reason);
	}
	expect_changed_refused("\"rust\":", "\"gpu_power_limit_w\":350.5,\"rust\":",
			       "gpu_power_limit_w: expected u32, found 350.5");
}

static void env_document_refuses_what_is_no_boolean(void **state)
{
	expect_changed_refused("\"rust\":", "\"gpu_persistence_mode\":1,\"rust\":",
			       "gpu_persistence_mode: expected a boolean, found 1");
	expect_changed_refused("\"rust\":", "\"gpu_auto_boost\":\"no\",\"rust\":",
			       "gpu_auto_boost: expected a boolean, found \"no\"");
}

static void env_document_refuses_the_wrong_container(void **state)
{
	expect_changed_refused("\"ferrum_features\":[]", "\"ferrum_features\":{}",
			       "ferrum_features: expected a sequence, found a map");
	expect_changed_refused("\"ferrum_env\":{}", "\"ferrum_env\":[]",
			       "ferrum_env: expected a map, found a sequence");
	expect_changed_refused("\"ferrum_env\":{}", "\"ferrum_env\":null",
			       "ferrum_env: expected a map, found null");
	expect_changed_refused(
		"{\"entries\":[]}", "[]",
		"runtime_config: expected a runtime configuration, found a sequence");
	expect_changed_refused("{\"entries\":[]}", "null",
			       "runtime_config: expected a runtime configuration, found null");
	expect_changed_refused("\"entries\":[]", "\"entries\":null",
			       "runtime_config.entries: expected a sequence, found null");
	expect_changed_refused("\"entries\":[]", "\"entries\":[7]",
			       "runtime_config.entries[0]: expected an entry, found 7");
	expect_refused("[[]]", "[0]: expected an entry, found a sequence");
}

static void env_document_refuses_words_outside_their_enumeration(void **state)
{
	expect_refused(
		"[{\"key\":\"\",\"effective_value\":\"\",\"source\":\"Cli\",\"affects\":[]}]",
		"[0].source: unknown variant `Cli`");
	expect_refused("[{\"key\":\"\",\"effective_value\":\"\",\"source\":null,\"affects\":[]}]",
		       "[0].source: expected a string, found null");
	expect_refused("[{\"key\":\"\",\"effective_value\":\"\",\"source\":\"cli\",\"affects\":"
		       "[\"memory\",\"speed\"]}]",
		       "[0].affects[1]: unknown variant `speed`");
	expect_refused("[{\"key\":\"\",\"effective_value\":\"\",\"source\":\"cli\\u0000\","
		       "\"affects\":[]}]",
		       "[0].source: unknown variant `cli`");
}

static void env_document_refuses_what_is_none(void **state)
{
	expect_refused("null",
		       "expected an environment document or an array of its entries, found null");
	expect_refused(
		"\"sha256:\"",
		"expected an environment document or an array of its entries, found \"sha256:\"");
	expect_refused("{", "EOF while parsing a value at column 2");
	expect_refused("{} {}", "trailing characters at column 4");
}

static void env_document_says_which_part_of_a_file_is_meant(void **state)
{
	expect_refused("{\"model\":\"m\",\"env\":{\"hw_id\":\"\"},\"env_hash\":\"sha256:1\"}",
		       "a report: give its member env alone (jq .env)");
	expect_refused("{\"schema_version\":1,\"runtime_config\":{\"entries\":[]}}",
		       "an effective configuration: give its entries alone (jq "
		       ".runtime_config.entries)");
	/* With an env member, the whole is judged as a document. */
	expect_changed_refused("\"rust\":\"\"", "\"env\":{}", "missing field `rust`");
}

static void env_document_refuses_a_field_given_twice(void **state)
{
	expect_changed_refused("\"rust\":\"\"", "\"rust\":\"\",\"rust\":\"1\"",
			       "duplicate field `rust` at column 46");
	expect_changed_refused("\"rust\":\"\"", "\"rust\":\"\",\"\\u0072ust\":\"\"",
			       "duplicate field `rust` at column 51");
	expect_changed_refused("\"ferrum_env\":{}", "\"ferrum_env\":{\"F\":\"1\",\"F\":\"1\"}",
			       "duplicate field `F` at column 86");
	expect_refused("[{\"key\":\"\",\"effective_value\":\"\",\"source\":\"cli\",\"affects\":[],"
		       "\"key\":\"\"}]",
		       "duplicate field `key` at column 67");
}

static void env_document_cuts_what_it_repeats(void **state)
{
	char text[2048], name[1001], error[512] = "", hash[ENV_HASH_SIZE];

	memset(name, 'n', 1000);
	name[1000] = '\0';
	snprintf(text, sizeof(text),
		 "[{\"%s\":1,\"key\":\"\",\"effective_value\":\"\",\"source\":\"cli\",\"affects\":["
		 "]}]",
		 name);
	assert_int_equal(env_document_hash_text(hash, text, strlen(text), error, sizeof(error)), 0);
	assert_int_equal(strlen(error), strlen("[0].") + 64);
	assert_int_equal(env_document_hash_text(hash, text, strlen(text), error, 20), 0);
	assert_int_equal(strlen(error), 19);
	/* The path to the error is too long to print. */
	snprintf(text, sizeof(text),
		 "{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		 "\"ferrum_env\":{\"%s\":1}}",
		 name);
	assert_int_equal(env_document_hash_text(hash, text, strlen(text), error, sizeof(error)),
			 -EBADMSG);
	assert_non_null(strstr(error, "expected a string"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(env_document_has_the_engines_hash),
		cmocka_unit_test(env_document_of_entries_has_the_engines_hash),
		cmocka_unit_test(env_document_is_written_as_the_engine_writes_it),
		cmocka_unit_test(env_document_does_not_depend_on_the_order_and_spaces_of_the_input),
		cmocka_unit_test(env_document_leaves_out_what_is_null),
		cmocka_unit_test(env_document_without_a_runtime_config_has_an_empty_one),
		cmocka_unit_test(env_document_has_what_an_http_client_sent),
		cmocka_unit_test(env_document_writes_vllm_args_last),
		cmocka_unit_test(env_document_keeps_arrays_as_they_are),
		cmocka_unit_test(env_document_sorts_ferrum_env_by_bytes),
		cmocka_unit_test(env_document_escapes_as_serde_json_does),
		cmocka_unit_test(env_document_takes_every_u32),
		cmocka_unit_test(env_document_takes_every_source_and_effect),
		cmocka_unit_test(env_document_refuses_a_missing_field),
		cmocka_unit_test(env_document_names_the_unknown_fields_that_it_leaves_out),
		cmocka_unit_test(env_document_refuses_what_is_no_string),
		cmocka_unit_test(env_document_refuses_what_is_no_u32),
		cmocka_unit_test(env_document_refuses_what_is_no_boolean),
		cmocka_unit_test(env_document_refuses_the_wrong_container),
		cmocka_unit_test(env_document_refuses_words_outside_their_enumeration),
		cmocka_unit_test(env_document_refuses_what_is_none),
		cmocka_unit_test(env_document_says_which_part_of_a_file_is_meant),
		cmocka_unit_test(env_document_refuses_a_field_given_twice),
		cmocka_unit_test(env_document_cuts_what_it_repeats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
