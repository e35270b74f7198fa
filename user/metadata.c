/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "json_read.h"
#include "log.h"
#include "metadata.h"
#include "whitespace.h"

#define HASH_PREFIX  "sha256:"
#define MESSAGE_SIZE 160
#define U32_DIGITS   "0123456789"

static bool is_blank(const char *text)
{
	return whitespace_only(text, strlen(text));
}

static bool is_hash(const char *text)
{
	return !strncmp(text, HASH_PREFIX, strlen(HASH_PREFIX));
}

/* The seed collects the environment into a map, so the last of equal names counts. */
static const char *find_variable(char *const *environment, const char *name)
{
	size_t length = strlen(name);
	const char *value = NULL;

	for (; environment && *environment; environment++) {
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			value = *environment + length + 1;
	}
	return value;
}

static int copy_string(char **copy, const char *value)
{
	*copy = strdup(value);
	return *copy ? 0 : -ENOMEM;
}

/* As Rust's str::parse::<u32>. Returns NULL, or the text of its error. */
static const char *parse_u32(const char *text, uint32_t *value)
{
	const char *digits = text + (*text == '+');
	uint64_t sum = 0;

	if (!*text)
		return "cannot parse integer from empty string";
	if (!*digits || digits[strspn(digits, U32_DIGITS)])
		return "invalid digit found in string";
	for (; *digits; digits++) {
		sum = sum * 10 + (uint64_t)(*digits - '0');
		if (sum > UINT32_MAX)
			return "number too large to fit in target type";
	}
	*value = (uint32_t)sum;
	return NULL;
}

/*
 * Compact text of a JSON object, as serde_json would write it again: 0, -ENOMEM, or -EBADMSG with
 * the reason, an empty one if the text is JSON but no object.
 */
static int read_flags(const char *text, char **compact, char reason[MESSAGE_SIZE])
{
	struct json_object *value = NULL;
	struct json json = {.out = NULL};
	size_t size;
	int err;

	reason[0] = '\0';
	err = json_read(text, strlen(text), &value, reason, MESSAGE_SIZE);
	if (err)
		return err;
	if (!json_object_is_type(value, json_type_object)) {
		err = -EBADMSG;
		goto out;
	}
	json.out = open_memstream(compact, &size);
	if (!json.out) {
		err = -ENOMEM;
		goto out;
	}
	json_write_value(&json, NULL, value);
	if (fclose(json.out)) {
		free(*compact);
		*compact = NULL;
		err = -ENOMEM;
	}
out:
	json_object_put(value);
	return err;
}

static int resolve_commit_sha(struct metadata *metadata, const char *option, const char *variable)
{
	if (option && is_blank(option)) {
		log_err("--profile-commit-sha must be non-empty");
		return -EINVAL;
	}
	if (option)
		return copy_string(&metadata->commit_sha, option);
	if (variable && !is_blank(variable))
		return copy_string(&metadata->commit_sha, variable);
	return 0;
}

static int resolve_env_hash(struct metadata *metadata, const char *option, const char *variable)
{
	if (option && !is_hash(option)) {
		log_err("--profile-env-hash must start with " HASH_PREFIX);
		return -EINVAL;
	}
	if (option)
		return copy_string(&metadata->env_hash, option);
	if (variable && is_hash(variable))
		return copy_string(&metadata->env_hash, variable);
	return copy_string(&metadata->env_hash, HASH_PREFIX "unknown");
}

static int resolve_model(struct metadata *metadata, const char *option, const char *variable)
{
	if (option && is_blank(option)) {
		log_err("--profile-model must be non-empty");
		return -EINVAL;
	}
	if (option)
		return copy_string(&metadata->model, option);
	if (variable && !is_blank(variable))
		return copy_string(&metadata->model, variable);
	return copy_string(&metadata->model, "unknown");
}

static int resolve_concurrency(struct metadata *metadata, const char *option, const char *variable)
{
	const char *reason;
	uint32_t value = 0;

	metadata->concurrency = 1;
	if (option) {
		reason = parse_u32(option, &value);
		if (reason) {
			log_err("invalid --profile-concurrency: %s", reason);
			return -EINVAL;
		}
		if (!value) {
			log_err("--profile-concurrency must be > 0");
			return -EINVAL;
		}
		metadata->concurrency = value;
	} else if (variable && !parse_u32(variable, &value) && value) {
		metadata->concurrency = value;
	}
	return 0;
}

static int resolve_runtime_flags(struct metadata *metadata, const char *option,
				 const char *variable)
{
	char reason[MESSAGE_SIZE];
	int err;

	if (option) {
		err = read_flags(option, &metadata->runtime_flags, reason);
		if (err != -EBADMSG)
			return err;
		if (reason[0])
			log_err("invalid --profile-runtime-flags-json: %s", reason);
		else
			log_err("--profile-runtime-flags-json must be a JSON object");
		return -EINVAL;
	}
	if (variable) {
		err = read_flags(variable, &metadata->runtime_flags, reason);
		if (err != -EBADMSG)
			return err;
	}
	return copy_string(&metadata->runtime_flags, "{}");
}

int metadata_resolve(struct metadata *metadata, const struct metadata_options *options,
		     char *const *environment)
{
	int err;

	memset(metadata, 0, sizeof(*metadata));
	err = resolve_commit_sha(metadata, options->commit_sha,
				 find_variable(environment, "FERRUM_PROFILE_COMMIT_SHA"));
	if (err)
		goto out;
	err = resolve_env_hash(metadata, options->env_hash,
			       find_variable(environment, "FERRUM_PROFILE_ENV_HASH"));
	if (err)
		goto out;
	err = resolve_model(metadata, options->model,
			    find_variable(environment, "FERRUM_PROFILE_MODEL"));
	if (err)
		goto out;
	err = resolve_concurrency(metadata, options->concurrency,
				  find_variable(environment, "FERRUM_PROFILE_CONCURRENCY"));
	if (err)
		goto out;
	err = resolve_runtime_flags(
		metadata, options->runtime_flags,
		find_variable(environment, "FERRUM_PROFILE_RUNTIME_FLAGS_JSON"));
out:
	if (err)
		metadata_clear(metadata);
	return err;
}

void metadata_clear(struct metadata *metadata)
{
	if (!metadata)
		return;
	free(metadata->commit_sha);
	free(metadata->env_hash);
	free(metadata->model);
	free(metadata->runtime_flags);
	memset(metadata, 0, sizeof(*metadata));
}
