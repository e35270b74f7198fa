/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/metadata.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/log.h"
#include "base/redact.h"
#include "base/text.h"
#include "model/env_host.h"
#include "proc/process.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define REASON_SIZE  192

/*
 * Checks a value and stores it. 0; -EBADMSG, with the reason, which names the option, and metadata
 * unchanged; or -ENOMEM.
 */
typedef int take_value(struct metadata *metadata, const char *text, char reason[REASON_SIZE]);

struct value {
	const char *option;
	const char *variable;
	take_value *take;
	size_t longest; /* maximum length of a value from the target */
};

static bool is_blank(const char *text)
{
	return whitespace_only(text, strlen(text));
}

static int copy_string(char **copy, const char *value)
{
	*copy = strdup(value);
	return *copy ? 0 : -ENOMEM;
}

static int refuse(char reason[REASON_SIZE], const char *text)
{
	snprintf(reason, REASON_SIZE, "%s", text);
	return -EBADMSG;
}

static int take_commit_sha(struct metadata *metadata, const char *text, char reason[REASON_SIZE])
{
	if (is_blank(text))
		return refuse(reason, "--profile-commit-sha must be non-empty");
	return copy_string(&metadata->commit_sha, text);
}

static int take_env_hash(struct metadata *metadata, const char *text, char reason[REASON_SIZE])
{
	if (strncmp(text, ENV_HASH_PREFIX, strlen(ENV_HASH_PREFIX)) != 0)
		return refuse(reason, "--profile-env-hash must start with " ENV_HASH_PREFIX);
	return copy_string(&metadata->env_hash, text);
}

static int take_model(struct metadata *metadata, const char *text, char reason[REASON_SIZE])
{
	if (is_blank(text))
		return refuse(reason, "--profile-model must be non-empty");
	return copy_string(&metadata->model, text);
}

static int take_concurrency(struct metadata *metadata, const char *text, char reason[REASON_SIZE])
{
	const char *error;
	uint32_t value = 0;

	error = rust_parse_u32(text, &value);
	if (error) {
		snprintf(reason, REASON_SIZE, "invalid --profile-concurrency: %s", error);
		return -EBADMSG;
	}
	if (!value)
		return refuse(reason, "--profile-concurrency must be > 0");
	metadata->concurrency = value;
	return 0;
}

/* The compact text of a JSON value, as serde_json writes it. */
static int write_compact(char **compact, struct json_object *value)
{
	struct json json = {.out = NULL};
	size_t size;

	json.out = open_memstream(compact, &size);
	if (!json.out)
		return -ENOMEM;
	json_write_value(&json, NULL, value);
	if (!fclose(json.out))
		return 0;
	free(*compact);
	*compact = NULL;
	return -ENOMEM;
}

static int redact_value(struct redactor *redactor, struct json_object *value);

static int redact_string(struct redactor *redactor, struct json_object *value)
{
	size_t length = (size_t)json_object_get_string_len(value);
	char *shown = redact_text(redactor, json_object_get_string(value), &length);
	int err = shown && json_object_set_string_len(value, shown, (int)length) ? 0 : -ENOMEM;

	free(shown);
	return err;
}

static bool is_secret(const char *name, struct json_object *value)
{
	enum json_type type = json_object_get_type(value);

	return redact_is_secret(name, strlen(name)) &&
	       (type == json_type_array || type == json_type_object ||
		(type == json_type_string &&
		 !redact_is_shown(json_object_get_string(value),
				  (size_t)json_object_get_string_len(value))));
}

static int redact_members(struct json_object *object)
{
	int err = 0;

	json_object_object_foreach(object, name, value)
	{
		struct redactor redactor = {false};

		if (err)
			break;
		if (!is_secret(name, value))
			err = redact_value(&redactor, value);
		else if (json_object_object_add(object, name, json_object_new_string(REDACTED)))
			err = -ENOMEM;
	}
	return err;
}

/* Replaces the secrets in a value. The items of an array may be arguments. 0 or -ENOMEM. */
static int redact_value(struct redactor *redactor, struct json_object *value)
{
	struct redactor items = {false};
	int err = 0;

	switch (json_object_get_type(value)) {
	case json_type_object:
		return redact_members(value);
	case json_type_array:
		for (size_t i = 0; !err && i < json_object_array_length(value); i++)
			err = redact_value(&items, json_object_array_get_idx(value, i));
		return err;
	case json_type_string:
		return redact_string(redactor, value);
	default:
		return 0;
	}
}

static int take_runtime_flags(struct metadata *metadata, const char *text, char reason[REASON_SIZE])
{
	/* Depth 1, because the value becomes a member of another object. */
	struct json_reader reader = {.at = text, .end = text + strlen(text), .depth = 1};
	struct json_object *value;
	char error[REASON_SIZE / 2] = "";
	int err = json_reader__whole(&reader, &value, error, sizeof(error));

	if (err == -EBADMSG)
		snprintf(reason, REASON_SIZE, "invalid --profile-runtime-flags-json: %s", error);
	else if (!err && !json_object_is_type(value, json_type_object))
		err = refuse(reason, "--profile-runtime-flags-json must be a JSON object");
	if (!err)
		err = redact_members(value);
	if (!err)
		err = write_compact(&metadata->runtime_flags, value);
	json_object_put(value);
	return err;
}

/* The last of equal names counts, as in ferrum, which collects the environment into a map. */
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

/*
 * Options end at "--". Ferrum accepts each of these options once; if another program accepts one
 * several times, the last value counts.
 */
static const char *find_option(char *const *arguments, const char *name)
{
	size_t length = strlen(name);
	const char *value = NULL;

	/* The first is the program's name. */
	for (size_t i = 1; arguments && arguments[0] && arguments[i]; i++) {
		if (!strcmp(arguments[i], "--"))
			break;
		if (!strcmp(arguments[i], name) && arguments[i + 1])
			value = arguments[++i];
		else if (!strncmp(arguments[i], name, length) && arguments[i][length] == '=')
			value = arguments[i] + length + 1;
	}
	return value;
}

/* Tries a value of a source other than an option. 0 or -ENOMEM: an invalid value is skipped. */
static int try_value(struct metadata *metadata, const struct value *value, const char *text,
		     size_t longest, const char *source, bool *taken)
{
	char reason[REASON_SIZE] = "";
	int err;

	if (*taken || !text)
		return 0;
	if (strnlen(text, longest + 1) > longest) {
		log_debug("%s %s: longer than %zu bytes, not used", source, value->variable,
			  longest);
		return 0;
	}
	err = value->take(metadata, text, reason);
	*taken = !err;
	if (err == -EBADMSG) {
		log_debug("%s: not used: %s", source, reason);
		err = 0;
	}
	return err;
}

static int resolve_value(struct metadata *metadata, const struct value *value, const char *option,
			 const struct metadata_sources *sources)
{
	char reason[REASON_SIZE] = "";
	bool taken = false;
	int err;

	if (option) {
		err = value->take(metadata, option, reason);
		if (err != -EBADMSG)
			return err;
		log_err("%s", reason);
		return -EINVAL;
	}
	err = try_value(metadata, value, find_variable(sources->environment, value->variable),
			SIZE_MAX - 1, "environment", &taken);
	if (!err)
		err = try_value(metadata, value,
				find_option(sources->target_arguments, value->option),
				value->longest, "target's command line", &taken);
	if (!err)
		err = try_value(metadata, value,
				find_variable(sources->target_environment, value->variable),
				value->longest, "target's environment", &taken);
	return err;
}

/* Sets the values that no source had. */
static int fill_defaults(struct metadata *metadata, const struct metadata_sources *sources)
{
	char hash[ENV_HASH_SIZE];
	int err = 0;

	if (!metadata->env_hash && sources->host &&
	    !env_collect_hash(hash, sources->host, metadata->commit_sha,
			      sources->target_environment))
		err = copy_string(&metadata->env_hash, hash);
	if (!err && !metadata->env_hash)
		err = copy_string(&metadata->env_hash, METADATA_ENV_HASH_UNKNOWN);
	if (!err && !metadata->model)
		err = copy_string(&metadata->model, "unknown");
	if (!err && !metadata->runtime_flags)
		err = copy_string(&metadata->runtime_flags, "{}");
	if (!metadata->concurrency)
		metadata->concurrency = 1;
	return err;
}

/* A variable of torchrun. False if it is not set or not a number; *number is unchanged then. */
static bool find_number(char *const *environment, const char *name, uint32_t *number)
{
	const char *value = find_variable(environment, name);

	return value && strnlen(value, METADATA_TARGET_VALUE_MAX) < METADATA_TARGET_VALUE_MAX &&
	       !rust_parse_u32(value, number);
}

static void find_rank(struct metadata *metadata, char *const *environment)
{
	if (!find_number(environment, "RANK", &metadata->rank))
		find_number(environment, "LOCAL_RANK", &metadata->rank);
	if (!find_number(environment, "WORLD_SIZE", &metadata->world_size) || !metadata->world_size)
		metadata->world_size = 1;
}

/* text may be NULL. */
static int redact_member(char **text)
{
	struct redactor redactor = {false};
	size_t length = *text ? strlen(*text) : 0;
	char *shown;

	if (!*text)
		return 0;
	shown = redact_text(&redactor, *text, &length);
	if (!shown)
		return -ENOMEM;
	free(*text);
	*text = shown;
	return 0;
}

int metadata_resolve_from(struct metadata *metadata, const struct metadata_options *options,
			  const struct metadata_sources *sources)
{
	static const struct value values[] = {
		{"--profile-commit-sha", "FERRUM_PROFILE_COMMIT_SHA", take_commit_sha,
		 METADATA_TARGET_VALUE_MAX},
		{"--profile-env-hash", "FERRUM_PROFILE_ENV_HASH", take_env_hash,
		 METADATA_TARGET_VALUE_MAX},
		{"--profile-model", "FERRUM_PROFILE_MODEL", take_model, METADATA_TARGET_VALUE_MAX},
		{"--profile-concurrency", "FERRUM_PROFILE_CONCURRENCY", take_concurrency,
		 METADATA_TARGET_VALUE_MAX},
		{"--profile-runtime-flags-json", "FERRUM_PROFILE_RUNTIME_FLAGS_JSON",
		 take_runtime_flags, METADATA_TARGET_FLAGS_MAX},
	};
	const char *const given[COUNT(values)] = {options->commit_sha, options->env_hash,
						  options->model, options->concurrency,
						  options->runtime_flags};
	int err = 0;

	memset(metadata, 0, sizeof(*metadata));
	find_rank(metadata, sources->target_environment);
	for (size_t i = 0; !err && i < COUNT(values); i++)
		err = resolve_value(metadata, &values[i], given[i], sources);
	if (!err)
		err = fill_defaults(metadata, sources);
	/* After the hash was computed, which includes the commit. */
	if (!err)
		err = redact_member(&metadata->commit_sha);
	if (!err)
		err = redact_member(&metadata->model);
	if (err)
		metadata_clear(metadata);
	return err;
}

int metadata_resolve(struct metadata *metadata, const struct metadata_options *options,
		     char *const *environment)
{
	struct metadata_sources sources = {.environment = environment};

	return metadata_resolve_from(metadata, options, &sources);
}

int metadata_for_target(struct metadata *metadata, const struct metadata_run *run, uint32_t tgid)
{
	struct metadata_sources sources = {.environment = run->environment};
	struct process_strings arguments = {0}, environment = {0};
	int err;

	if (run->command) {
		sources.target_arguments = run->command;
		sources.target_environment = run->environment;
	} else if (tgid) {
		process_strings_read(&arguments, tgid, "cmdline");
		process_strings_read(&environment, tgid, "environ");
		sources.target_arguments = arguments.items;
		sources.target_environment = environment.items;
	}
	if (sources.target_environment)
		sources.host = run->host;
	err = metadata_resolve_from(metadata, run->options, &sources);
	/* Without the target's FERRUM_* the hash would describe another environment. */
	if (!err && run->host && !sources.host &&
	    !strcmp(metadata->env_hash, METADATA_ENV_HASH_UNKNOWN))
		log_warn("--compute-env-hash: %s: the hash stays unknown",
			 tgid ? "the target's environment cannot be read"
			      : "needs one target: -p PID or -- COMMAND");
	process_strings_clear(&arguments);
	process_strings_clear(&environment);
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
