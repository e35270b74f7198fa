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
#include <sys/stat.h>
#include <unistd.h>
#include "model/env_host.h"
#include "base/log.h"
#include "model/metadata.h"
#include "stderr_fixture.h"
#include "target_fixture.h"

static const struct env_host host = {.hw_id = "", .rust = ""};

/* The hash of this host's document without a commit and without variables. */
#define EMPTY_HASH "sha256:b5883a1670118db0335d99aa8879920e336a39cd9bb18f2b3a658f903e9e504d"

static void expect_refused(struct stderr_fixture *fixture, const struct metadata_options *options,
			   const char *reason)
{
	struct metadata metadata;
	char line[256];

	assert_int_equal(ftruncate(fixture->file, 0), 0);
	lseek(fixture->file, 0, SEEK_SET);
	assert_int_equal(metadata_resolve(&metadata, options, NULL), -EINVAL);
	metadata_clear(&metadata);
	snprintf(line, sizeof(line), "ferrum-bpftrace: %s", reason);
	assert_one_line(fixture, line);
}

static struct metadata resolve(const struct metadata_options *options, char *const *environment)
{
	struct metadata metadata;

	assert_int_equal(metadata_resolve(&metadata, options, environment), 0);
	return metadata;
}

static void metadata_refuses_an_env_hash_without_its_prefix(void **state)
{
	expect_refused(*state, &(struct metadata_options){.env_hash = "md5:1"},
		       "--profile-env-hash must start");
}

static void refuse_runtime_flags(void **state, const char *flags, const char *reason)
{
	expect_refused(*state, &(struct metadata_options){.runtime_flags = flags}, reason);
}

static void metadata_refuses_runtime_flags_that_are_no_object(void **state)
{
	refuse_runtime_flags(state, "[1]", "--profile-runtime-flags-json must be");
	refuse_runtime_flags(state, "null", "--profile-runtime-flags-json must be");
}

static void metadata_refuses_runtime_flags_that_are_no_json(void **state)
{
	refuse_runtime_flags(state, "{", "invalid --profile-runtime-flags-json: ");
	refuse_runtime_flags(state, "{} {}", "invalid --profile-runtime-flags-json: ");
}

static void metadata_refuses_a_bad_concurrency_with_rusts_words(void **state)
{
	static const char *const bad[][2] = {
		{"", "invalid --profile-concurrency: cannot"},
		{"+", "invalid --profile-concurrency: invalid"},
		{"-1", "invalid --profile-concurrency: invalid"},
		{" 1", "invalid --profile-concurrency: invalid"},
		{"4294967296", "invalid --profile-concurrency: number"},
		{"0", "--profile-concurrency must be > 0"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_refused(*state, &(struct metadata_options){.concurrency = bad[i][0]},
			       bad[i][1]);
}

static void metadata_refuses_blank_options(void **state)
{
	expect_refused(*state, &(struct metadata_options){.model = "\u2003"},
		       "--profile-model must be non-empty");
	expect_refused(*state, &(struct metadata_options){.commit_sha = ""},
		       "--profile-commit-sha must be non-empty");
}

/* Expects that the environment alone gives ferrum's defaults. */
static void expect_defaults(char *const *environment)
{
	struct metadata metadata = resolve(&(struct metadata_options){0}, environment);

	assert_null(metadata.commit_sha);
	assert_string_equal(metadata.env_hash, "sha256:unknown");
	assert_string_equal(metadata.model, "unknown");
	assert_int_equal(metadata.concurrency, 1);
	assert_string_equal(metadata.runtime_flags, "{}");
	metadata_clear(&metadata);
}

static void metadata_falls_back_where_the_environment_is_wrong(void **state)
{
	expect_defaults((char *[]){"FERRUM_PROFILE_COMMIT_SHA= ", "FERRUM_PROFILE_ENV_HASH=env",
				   "FERRUM_PROFILE_MODEL=\u3000", "FERRUM_PROFILE_CONCURRENCY=0",
				   "FERRUM_PROFILE_RUNTIME_FLAGS_JSON=[]", NULL});
}

static void metadata_without_anything_is_the_seeds_default(void **state)
{
	expect_defaults(NULL);
}

static void metadata_comes_from_the_environment(void **state)
{
	char *environment[] = {"FERRUM_PROFILE_COMMIT_SHA=abc123",
			       "FERRUM_PROFILE_ENV_HASH=sha256:env",
			       "FERRUM_PROFILE_MODEL=first",
			       "FERRUM_PROFILE_MODEL=model",
			       "FERRUM_PROFILE_MODELS=not this",
			       "FERRUM_PROFILE_CONCURRENCY=+32",
			       "FERRUM_PROFILE_RUNTIME_FLAGS_JSON={\"fa_layout\": true}",
			       NULL};
	struct metadata metadata = resolve(&(struct metadata_options){0}, environment);

	assert_string_equal(metadata.commit_sha, "abc123");
	assert_string_equal(metadata.env_hash, "sha256:env");
	assert_string_equal(metadata.model, "model");
	assert_int_equal(metadata.concurrency, 32);
	assert_string_equal(metadata.runtime_flags, "{\"fa_layout\":true}");
	metadata_clear(&metadata);
}

static void metadata_options_go_before_the_environment(void **state)
{
	char *environment[] = {"FERRUM_PROFILE_COMMIT_SHA=a",
			       "FERRUM_PROFILE_ENV_HASH=sha256:a",
			       "FERRUM_PROFILE_MODEL=a",
			       "FERRUM_PROFILE_CONCURRENCY=1",
			       "FERRUM_PROFILE_RUNTIME_FLAGS_JSON={\"a\":1}",
			       NULL};
	struct metadata metadata =
		resolve(&(struct metadata_options){"b", "sha256:b", "b", "4294967295", "{\"b\":1}"},
			environment);

	assert_string_equal(metadata.commit_sha, "b");
	assert_string_equal(metadata.env_hash, "sha256:b");
	assert_string_equal(metadata.model, "b");
	assert_true(metadata.concurrency == UINT32_MAX);
	assert_string_equal(metadata.runtime_flags, "{\"b\":1}");
	metadata_clear(&metadata);
}

static void metadata_keeps_the_order_of_runtime_flags(void **state)
{
	struct metadata metadata = resolve(
		&(struct metadata_options){.runtime_flags = "{ \"z\" : 1.0,\n\"a\":[\"/\"] }"},
		NULL);

	assert_string_equal(metadata.runtime_flags, "{\"z\":1.0,\"a\":[\"/\"]}");
	metadata_clear(&metadata);
}

static void metadata_has_no_secrets(void **state)
{
	struct metadata metadata = resolve(
		&(struct metadata_options){
			.commit_sha = "git://u:pw@h/r",
			.env_hash = "sha256:token=1a",
			.model = "https://u:pw@h/m",
			.runtime_flags = "{\"api_key\":\"x\",\"--hf-token\":[\"y\"],\"a_token\":7,"
					 "\"b-token\":\"8\",\"use_key\":true,\"url\":\"x://u:p@h\","
					 "\"args\":[\"--key\",\"z\",\"-v\",1,null],"
					 "\"more\":{\"passwd\":{\"c\":1}}}"},
		NULL);

	assert_string_equal(metadata.commit_sha, "git://u:[redacted]@h/r");
	assert_string_equal(metadata.env_hash, "sha256:token=1a");
	assert_string_equal(metadata.model, "https://u:[redacted]@h/m");
	assert_string_equal(metadata.runtime_flags,
			    "{\"api_key\":\"[redacted]\",\"--hf-token\":\"[redacted]\","
			    "\"a_token\":7,\"b-token\":\"8\",\"use_key\":true,"
			    "\"url\":\"x://u:[redacted]@h\","
			    "\"args\":[\"--key\",\"[redacted]\",\"-v\",1,null],"
			    "\"more\":{\"passwd\":\"[redacted]\"}}");
	metadata_clear(&metadata);
}

/* The four sources, in order of priority. */
enum { OPTION, TOOL, ARGUMENT, TARGET_VARIABLE, SOURCES };
enum { ABSENT, GOOD, BAD, CASES };

static const struct {
	const char *option;
	const char *variable;
	const char *good[SOURCES];
	const char *bad;
	const char *otherwise; /* ferrum's default */
} kinds[] = {
	{"--profile-commit-sha",
	 "FERRUM_PROFILE_COMMIT_SHA",
	 {"c0", "c1", "c2", "c3"},
	 "\u2003",
	 NULL},
	{"--profile-env-hash",
	 "FERRUM_PROFILE_ENV_HASH",
	 {"sha256:0", "sha256:1", "sha256:2", "sha256:3"},
	 "md5:1",
	 "sha256:unknown"},
	{"--profile-model", "FERRUM_PROFILE_MODEL", {"m0", "m1", "m2", "m3"}, "", "unknown"},
	{"--profile-concurrency", "FERRUM_PROFILE_CONCURRENCY", {"10", "11", "12", "13"}, "0", "1"},
	{"--profile-runtime-flags-json",
	 "FERRUM_PROFILE_RUNTIME_FLAGS_JSON",
	 {"{\"s\":0}", "{\"s\":1}", "{\"s\":2}", "{\"s\":3}"},
	 "[]",
	 "{}"},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char *text_of(size_t kind, int source, int what)
{
	return what == ABSENT ? NULL : what == GOOD ? kinds[kind].good[source] : kinds[kind].bad;
}

static void set_option(struct metadata_options *options, size_t kind, const char *text)
{
	const char **fields[] = {&options->commit_sha, &options->env_hash, &options->model,
				 &options->concurrency, &options->runtime_flags};

	*fields[kind] = text;
}

/* The resolved value as text. The buffer is reused. */
static const char *result_of(const struct metadata *metadata, size_t kind, char number[16])
{
	const char *const fields[] = {metadata->commit_sha, metadata->env_hash, metadata->model,
				      number, metadata->runtime_flags};

	snprintf(number, 16, "%u", metadata->concurrency);
	return fields[kind];
}

static void check_sources(size_t kind, const int what[SOURCES], bool with_equals)
{
	struct metadata_options options = {0};
	struct metadata_sources sources = {0};
	const char *const tool_text = text_of(kind, TOOL, what[TOOL]);
	const char *const argument_text = text_of(kind, ARGUMENT, what[ARGUMENT]);
	const char *const variable_text = text_of(kind, TARGET_VARIABLE, what[TARGET_VARIABLE]);
	char tool[128], variable[128], argument[128], value[64], number[16];
	char *environment[] = {tool_text ? tool : NULL, NULL};
	char *target_environment[] = {variable_text ? variable : NULL, NULL};
	char *arguments[] = {"ferrum", "serve", argument_text ? argument : NULL,
			     with_equals ? NULL : value, NULL};
	const char *expected = kinds[kind].otherwise;
	struct metadata metadata;

	set_option(&options, kind, text_of(kind, OPTION, what[OPTION]));
	snprintf(tool, sizeof(tool), "%s=%s", kinds[kind].variable, tool_text ? tool_text : "");
	snprintf(variable, sizeof(variable), "%s=%s", kinds[kind].variable,
		 variable_text ? variable_text : "");
	snprintf(value, sizeof(value), "%s", argument_text ? argument_text : "");
	snprintf(argument, sizeof(argument), "%s%s%s", kinds[kind].option, with_equals ? "=" : "",
		 with_equals ? value : "");
	sources.environment = environment;
	sources.target_arguments = arguments;
	sources.target_environment = target_environment;
	for (int source = SOURCES - 1; source >= 0; source--) {
		if (what[source] == GOOD)
			expected = kinds[kind].good[source];
	}
	if (what[OPTION] == BAD) {
		assert_int_equal(metadata_resolve_from(&metadata, &options, &sources), -EINVAL);
		assert_null(metadata.env_hash);
		return;
	}
	assert_int_equal(metadata_resolve_from(&metadata, &options, &sources), 0);
	if (expected)
		assert_string_equal(result_of(&metadata, kind, number), expected);
	else
		assert_null(result_of(&metadata, kind, number));
	/* The other values must be unchanged. */
	for (size_t other = 0; other < KINDS; other++) {
		const char *result = result_of(&metadata, other, number);

		if (other != kind && kinds[other].otherwise)
			assert_string_equal(result, kinds[other].otherwise);
		else if (other != kind)
			assert_null(result);
	}
	metadata_clear(&metadata);
}

static void metadata_takes_the_first_source_with_a_sound_value(void **state)
{
	int what[SOURCES];

	for (size_t kind = 0; kind < KINDS; kind++) {
		for (int code = 0; code < CASES * CASES * CASES * CASES; code++) {
			int rest = code;

			for (int source = 0; source < SOURCES; source++, rest /= CASES)
				what[source] = rest % CASES;
			check_sources(kind, what, false);
			check_sources(kind, what, true);
		}
	}
}

static struct metadata resolve_arguments(char *const *arguments)
{
	struct metadata_sources sources = {.target_arguments = arguments};
	struct metadata metadata;

	assert_int_equal(metadata_resolve_from(&metadata, &(struct metadata_options){0}, &sources),
			 0);
	return metadata;
}

static void expect_model(char *const *arguments, const char *expected)
{
	struct metadata metadata = resolve_arguments(arguments);

	assert_string_equal(metadata.model, expected);
	metadata_clear(&metadata);
}

static void metadata_finds_options_of_the_target(void **state)
{
	expect_model((char *[]){"f", "--profile-model", "m", NULL}, "m");
	expect_model((char *[]){"f", "--profile-model=m", NULL}, "m");
	expect_model((char *[]){"f", "--profile-model=a=b", NULL}, "a=b");
	/* The last argument counts. An invalid one counts as missing. */
	expect_model((char *[]){"f", "--profile-model", "a", "--profile-model=b", NULL}, "b");
	expect_model((char *[]){"f", "--profile-model", "a", "--profile-model=", NULL}, "unknown");
}

static void metadata_does_not_take_for_options_what_is_none(void **state)
{
	expect_model((char *[]){NULL}, "unknown");
	expect_model((char *[]){"--profile-model", "m", NULL}, "unknown");
	expect_model((char *[]){"--profile-model=m", NULL}, "unknown");
	expect_model((char *[]){"f", "--profile-model", NULL}, "unknown");
	expect_model((char *[]){"f", "--profile-models", "m", NULL}, "unknown");
	expect_model((char *[]){"f", "--profile-models=m", NULL}, "unknown");
	expect_model((char *[]){"f", "-profile-model", "m", NULL}, "unknown");
	expect_model((char *[]){"f", "--", "--profile-model", "m", NULL}, "unknown");
}

static void metadata_takes_no_long_values_from_the_target(void **state)
{
	char *text = malloc(METADATA_TARGET_FLAGS_MAX + 2);
	struct metadata metadata;

	memset(text, 'm', METADATA_TARGET_FLAGS_MAX + 1);
	text[METADATA_TARGET_VALUE_MAX] = '\0';
	expect_model((char *[]){"f", "--profile-model", text, NULL}, text);
	text[METADATA_TARGET_VALUE_MAX] = 'm';
	text[METADATA_TARGET_VALUE_MAX + 1] = '\0';
	expect_model((char *[]){"f", "--profile-model", text, NULL}, "unknown");
	/* An object of the maximum length, then one byte longer. */
	for (int more = 0; more < 2; more++) {
		memset(text, ' ', METADATA_TARGET_FLAGS_MAX + 1);
		memcpy(text, "{\"a\":1}", 7);
		text[METADATA_TARGET_FLAGS_MAX + more] = '\0';
		metadata = resolve_arguments(
			(char *[]){"f", "--profile-runtime-flags-json", text, NULL});
		assert_string_equal(metadata.runtime_flags, more ? "{}" : "{\"a\":1}");
		metadata_clear(&metadata);
	}
	free(text);
}

/* Values that the user gives are not limited in length. */
static void metadata_takes_long_values_from_the_user(void **state)
{
	char *text = malloc(100001), *variable;
	struct metadata metadata;

	memset(text, 'm', 100000);
	text[100000] = '\0';
	metadata = resolve(&(struct metadata_options){.model = text}, NULL);
	assert_string_equal(metadata.model, text);
	metadata_clear(&metadata);
	assert_true(asprintf(&variable, "FERRUM_PROFILE_MODEL=%s", text) > 0);
	metadata = resolve(&(struct metadata_options){0}, (char *[]){variable, NULL});
	assert_string_equal(metadata.model, text);
	metadata_clear(&metadata);
	free(variable);
	free(text);
}

/* {"a":{"a":… 1}}…} */
static char *nest(int depth)
{
	char *text = calloc(1, 6 * (size_t)depth + 2), *at = text;

	for (int i = 0; i < depth; i++)
		at = stpcpy(at, "{\"a\":");
	at = stpcpy(at, "1");
	memset(at, '}', (size_t)depth);
	return text;
}

/* serde reads 127 levels, of which the profile's line is the first. */
static void metadata_takes_no_runtime_flags_that_make_the_profile_unreadable(void **state)
{
	char *deepest = nest(126), *deeper = nest(127);
	struct metadata metadata =
		resolve(&(struct metadata_options){.runtime_flags = deepest}, NULL);

	assert_string_equal(metadata.runtime_flags, deepest);
	metadata_clear(&metadata);
	expect_refused(*state, &(struct metadata_options){.runtime_flags = deeper},
		       "invalid --profile-runtime-flags-json: recursion limit exceeded");
	free(deepest);
	free(deeper);
}

static void metadata_computes_a_hash_where_no_source_has_one(void **state)
{
	char *with_hash[] = {"FERRUM_PROFILE_ENV_HASH=sha256:t", NULL};
	char *without[] = {"HOME=/", NULL};
	struct metadata_sources sources = {.target_environment = without, .host = &host};
	struct metadata metadata;

	metadata_resolve_from(&metadata, &(struct metadata_options){0}, &sources);
	assert_string_equal(metadata.env_hash, EMPTY_HASH);
	metadata_clear(&metadata);
	/* The hash also covers the commit. */
	metadata_resolve_from(&metadata, &(struct metadata_options){.commit_sha = "c"}, &sources);
	assert_string_not_equal(metadata.env_hash, EMPTY_HASH);
	assert_int_equal(strlen(metadata.env_hash), strlen(EMPTY_HASH));
	metadata_clear(&metadata);
	sources.target_environment = with_hash;
	metadata_resolve_from(&metadata, &(struct metadata_options){0}, &sources);
	assert_string_equal(metadata.env_hash, "sha256:t");
	metadata_clear(&metadata);
}

static void metadata_of_a_target_is_what_it_was_started_with(void **state)
{
	const char *const arguments[] = {TARGET,
					 "--profile-model=from\xff"
					 "arguments",
					 "--profile-concurrency", "8", NULL};
	const char *const environment[] = {"FERRUM_PROFILE_MODEL=from environment",
					   "FERRUM_PROFILE_COMMIT_SHA=target's",
					   "FERRUM_PROFILE_RUNTIME_FLAGS_JSON={\"a\": 1}", NULL};
	char *own[] = {"FERRUM_PROFILE_CONCURRENCY=4", NULL};
	struct metadata_options options = {.env_hash = "sha256:option"};
	struct metadata_run run = {.options = &options, .environment = own};
	pid_t pid = target_start(arguments, environment);
	struct metadata metadata;

	assert_int_equal(metadata_for_target(&metadata, &run, (uint32_t)pid), 0);
	assert_string_equal(metadata.model, "from\xff"
					    "arguments");
	assert_string_equal(metadata.commit_sha, "target's");
	assert_string_equal(metadata.env_hash, "sha256:option");
	assert_int_equal(metadata.concurrency, 4);
	assert_string_equal(metadata.runtime_flags, "{\"a\":1}");
	metadata_clear(&metadata);
	target_stop(pid);
}

static void metadata_of_a_target_has_its_variables_in_the_hash(void **state)
{
	const char *const arguments[] = {TARGET, NULL};
	const char *const environments[][2] = {{"OTHER=1", NULL}, {"FERRUM_A=1", NULL}};
	struct metadata_options options = {0};
	struct metadata_run run = {.options = &options, .host = &host};
	struct metadata metadata;

	for (int i = 0; i < 2; i++) {
		pid_t pid = target_start(arguments, environments[i]);

		assert_int_equal(metadata_for_target(&metadata, &run, (uint32_t)pid), 0);
		assert_int_equal(!strcmp(metadata.env_hash, EMPTY_HASH), i == 0);
		metadata_clear(&metadata);
		target_stop(pid);
	}
}

static void metadata_of_a_command_is_that_of_its_arguments_and_our_environment(void **state)
{
	char *command[] = {"ferrum", "--profile-model", "m", NULL};
	char *own[] = {"FERRUM_PROFILE_COMMIT_SHA=c", NULL};
	struct metadata_options options = {0};
	struct metadata_run run = {.options = &options, .environment = own, .command = command};
	struct metadata metadata, computed;

	/*
	 * The command's pid does not matter: the command may have ended, or not have called
	 * execve() yet.
	 */
	assert_int_equal(metadata_for_target(&metadata, &run, (uint32_t)getpid()), 0);
	assert_string_equal(metadata.model, "m");
	assert_string_equal(metadata.commit_sha, "c");
	assert_string_equal(metadata.env_hash, METADATA_ENV_HASH_UNKNOWN);
	run.host = &host;
	assert_int_equal(metadata_for_target(&computed, &run, 0), 0);
	assert_string_not_equal(computed.env_hash, METADATA_ENV_HASH_UNKNOWN);
	metadata_clear(&metadata);
	metadata_clear(&computed);
	assert_silent(*state);
}

static void metadata_of_no_target_has_no_hash(void **state)
{
	char *own[] = {"FERRUM_PROFILE_MODEL=m", NULL};
	struct metadata_options options = {0};
	struct metadata_run run = {.options = &options, .environment = own, .host = &host};
	struct metadata metadata;

	assert_int_equal(metadata_for_target(&metadata, &run, 0), 0);
	assert_string_equal(metadata.model, "m");
	assert_string_equal(metadata.env_hash, METADATA_ENV_HASH_UNKNOWN);
	metadata_clear(&metadata);
	assert_one_line(*state, "--compute-env-hash: needs one target: -p PID or -- COMMAND: the "
				"hash stays unknown");
	/* With a given hash, none needs to be computed. */
	options.env_hash = "sha256:1";
	assert_int_equal(metadata_for_target(&metadata, &run, 0), 0);
	metadata_clear(&metadata);
	assert_one_line(*state, "stays unknown");
}

static void metadata_of_a_target_that_has_gone_is_that_of_the_tool(void **state)
{
	char *own[] = {"FERRUM_PROFILE_MODEL=m", NULL};
	struct metadata_options options = {0};
	struct metadata_run run = {.options = &options, .environment = own};
	pid_t pid = target_start((const char *const[]){TARGET, NULL}, (const char *const[]){NULL});
	struct metadata metadata;

	target_stop(pid);
	assert_int_equal(metadata_for_target(&metadata, &run, (uint32_t)pid), 0);
	assert_string_equal(metadata.model, "m");
	metadata_clear(&metadata);
	assert_silent(*state);
	run.host = &host;
	assert_int_equal(metadata_for_target(&metadata, &run, (uint32_t)pid), 0);
	assert_string_equal(metadata.env_hash, METADATA_ENV_HASH_UNKNOWN);
	metadata_clear(&metadata);
	assert_one_line(*state, "--compute-env-hash: ");
}

static void metadata_of_a_target_says_why_a_value_does_not_count(void **state)
{
	char *arguments[] = {"f", "--profile-concurrency=many", NULL};
	struct metadata metadata;

	metadata = resolve_arguments(arguments);
	metadata_clear(&metadata);
	assert_silent(*state);
	log_set_level(LOG_DEBUG);
	metadata = resolve_arguments(arguments);
	metadata_clear(&metadata);
	log_set_level(LOG_INFO);
	assert_one_line(*state, "--profile-concurrency: invalid digit");
}

static struct metadata resolve_in(char *const *target_environment)
{
	struct metadata_sources sources = {.target_environment = target_environment};
	struct metadata_options options = {0};
	struct metadata metadata;

	assert_int_equal(metadata_resolve_from(&metadata, &options, &sources), 0);
	return metadata;
}

static void expect_rank(char *const *target_environment, uint32_t rank, uint32_t world_size)
{
	struct metadata metadata = resolve_in(target_environment);

	assert_int_equal(metadata.rank, rank);
	assert_int_equal(metadata.world_size, world_size);
	metadata_clear(&metadata);
}

static void rank_is_that_of_the_targets_environment(void **state)
{
	expect_rank(NULL, 0, 1);
	expect_rank((char *[]){"RANK=3", "WORLD_SIZE=8", NULL}, 3, 8);
	expect_rank((char *[]){"LOCAL_RANK=1", "WORLD_SIZE=2", NULL}, 1, 2);
	expect_rank((char *[]){"LOCAL_RANK=1", "RANK=9", "WORLD_SIZE=16", NULL}, 9, 16);
}

static void rank_that_is_no_number_does_not_count(void **state)
{
	expect_rank((char *[]){"RANK=", "LOCAL_RANK=2", "WORLD_SIZE=x", NULL}, 2, 1);
	expect_rank((char *[]){"RANK=-1", "WORLD_SIZE=0", NULL}, 0, 1);
	expect_rank((char *[]){"RANK=4294967296", "XRANK=1", NULL}, 0, 1);
}

static void rank_of_the_tool_itself_does_not_count(void **state)
{
	struct metadata_options options = {0};
	struct metadata metadata = resolve(&options, (char *[]){"RANK=3", "WORLD_SIZE=8", NULL});

	assert_int_equal(metadata.rank, 0);
	assert_int_equal(metadata.world_size, 1);
	metadata_clear(&metadata);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(metadata_refuses_an_env_hash_without_its_prefix),
		TEST(metadata_refuses_runtime_flags_that_are_no_object),
		TEST(metadata_refuses_runtime_flags_that_are_no_json),
		TEST(metadata_refuses_a_bad_concurrency_with_rusts_words),
		TEST(metadata_refuses_blank_options),
		TEST(metadata_falls_back_where_the_environment_is_wrong),
		TEST(metadata_without_anything_is_the_seeds_default),
		TEST(metadata_comes_from_the_environment),
		TEST(metadata_options_go_before_the_environment),
		TEST(metadata_keeps_the_order_of_runtime_flags),
		TEST(metadata_has_no_secrets),
		TEST(metadata_takes_the_first_source_with_a_sound_value),
		TEST(metadata_finds_options_of_the_target),
		TEST(metadata_does_not_take_for_options_what_is_none),
		TEST(metadata_takes_no_long_values_from_the_target),
		TEST(metadata_takes_long_values_from_the_user),
		TEST(metadata_takes_no_runtime_flags_that_make_the_profile_unreadable),
		TEST(metadata_computes_a_hash_where_no_source_has_one),
		TEST(metadata_of_a_target_is_what_it_was_started_with),
		TEST(metadata_of_a_target_has_its_variables_in_the_hash),
		TEST(metadata_of_a_command_is_that_of_its_arguments_and_our_environment),
		TEST(metadata_of_no_target_has_no_hash),
		TEST(metadata_of_a_target_that_has_gone_is_that_of_the_tool),
		TEST(metadata_of_a_target_says_why_a_value_does_not_count),
		TEST(rank_is_that_of_the_targets_environment),
		TEST(rank_that_is_no_number_does_not_count),
		TEST(rank_of_the_tool_itself_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
