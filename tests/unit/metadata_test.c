/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "metadata.h"

/* The first line that metadata_resolve writes to stderr goes to message. */
static int resolve_quietly(const struct metadata_options *options, char message[256])
{
	struct metadata metadata;
	int pipe_fds[2], saved, err;
	ssize_t size;

	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
	saved = dup(STDERR_FILENO);
	dup2(pipe_fds[1], STDERR_FILENO);
	err = metadata_resolve(&metadata, options, NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipe_fds[1]);
	size = read(pipe_fds[0], message, 255);
	message[size > 0 ? size : 0] = '\0';
	close(pipe_fds[0]);
	metadata_clear(&metadata);
	return err;
}

static void expect_refused(const struct metadata_options *options, const char *reason)
{
	char message[256];

	assert_int_equal(resolve_quietly(options, message), -EINVAL);
	if (!strstr(message, reason))
		fail_msg("%s", message);
}

static struct metadata resolve(const struct metadata_options *options, char *const *environment)
{
	struct metadata metadata;

	assert_int_equal(metadata_resolve(&metadata, options, environment), 0);
	return metadata;
}

static void metadata_refuses_an_env_hash_without_its_prefix(void **state)
{
	expect_refused(&(struct metadata_options){.env_hash = "md5:1"},
		       ": --profile-env-hash must start with sha256:\n");
}

static void metadata_refuses_runtime_flags_that_are_no_object(void **state)
{
	expect_refused(&(struct metadata_options){.runtime_flags = "[1]"},
		       ": --profile-runtime-flags-json must be a JSON object\n");
	expect_refused(&(struct metadata_options){.runtime_flags = "null"},
		       ": --profile-runtime-flags-json must be a JSON object\n");
}

static void metadata_refuses_runtime_flags_that_are_no_json(void **state)
{
	expect_refused(&(struct metadata_options){.runtime_flags = "{"},
		       ": invalid --profile-runtime-flags-json: ");
	expect_refused(&(struct metadata_options){.runtime_flags = "{} {}"},
		       ": invalid --profile-runtime-flags-json: ");
}

static void metadata_refuses_a_bad_concurrency_with_rusts_words(void **state)
{
	expect_refused(&(struct metadata_options){.concurrency = ""},
		       "invalid --profile-concurrency: cannot parse integer from empty string");
	expect_refused(&(struct metadata_options){.concurrency = "+"},
		       "invalid --profile-concurrency: invalid digit found in string");
	expect_refused(&(struct metadata_options){.concurrency = "-1"}, "invalid digit");
	expect_refused(&(struct metadata_options){.concurrency = " 1"}, "invalid digit");
	expect_refused(&(struct metadata_options){.concurrency = "4294967296"},
		       "number too large to fit in target type");
	expect_refused(&(struct metadata_options){.concurrency = "0"},
		       "--profile-concurrency must be > 0");
}

static void metadata_refuses_blank_options(void **state)
{
	expect_refused(&(struct metadata_options){.model = "\u2003"},
		       "--profile-model must be non-empty");
	expect_refused(&(struct metadata_options){.commit_sha = ""},
		       "--profile-commit-sha must be non-empty");
}

static void metadata_falls_back_where_the_environment_is_wrong(void **state)
{
	char *environment[] = {
		"FERRUM_PROFILE_COMMIT_SHA= ",		"FERRUM_PROFILE_ENV_HASH=env",
		"FERRUM_PROFILE_MODEL=\u3000",		"FERRUM_PROFILE_CONCURRENCY=0",
		"FERRUM_PROFILE_RUNTIME_FLAGS_JSON=[]", NULL};
	struct metadata metadata = resolve(&(struct metadata_options){0}, environment);

	assert_null(metadata.commit_sha);
	assert_string_equal(metadata.env_hash, "sha256:unknown");
	assert_string_equal(metadata.model, "unknown");
	assert_int_equal(metadata.concurrency, 1);
	assert_string_equal(metadata.runtime_flags, "{}");
	metadata_clear(&metadata);
}

static void metadata_without_anything_is_the_seeds_default(void **state)
{
	struct metadata metadata = resolve(&(struct metadata_options){0}, NULL);

	assert_null(metadata.commit_sha);
	assert_string_equal(metadata.env_hash, "sha256:unknown");
	assert_string_equal(metadata.model, "unknown");
	assert_int_equal(metadata.concurrency, 1);
	assert_string_equal(metadata.runtime_flags, "{}");
	metadata_clear(&metadata);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metadata_refuses_an_env_hash_without_its_prefix),
		cmocka_unit_test(metadata_refuses_runtime_flags_that_are_no_object),
		cmocka_unit_test(metadata_refuses_runtime_flags_that_are_no_json),
		cmocka_unit_test(metadata_refuses_a_bad_concurrency_with_rusts_words),
		cmocka_unit_test(metadata_refuses_blank_options),
		cmocka_unit_test(metadata_falls_back_where_the_environment_is_wrong),
		cmocka_unit_test(metadata_without_anything_is_the_seeds_default),
		cmocka_unit_test(metadata_comes_from_the_environment),
		cmocka_unit_test(metadata_options_go_before_the_environment),
		cmocka_unit_test(metadata_keeps_the_order_of_runtime_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
