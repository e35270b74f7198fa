/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include "json_expect.h"
#include "profile_event.h"
#include "whitespace.h"

#define ERROR_SIZE 256

/* In the seed's order: the first that is missing is the one that is named. */
static const char *const required_fields[] = {
	"event", "commit_sha", "env_hash",	"model",	 "concurrency",
	"shape", "stage_us",   "graph_enabled", "runtime_flags",
};

/* In the order in which serde_json visits a map: by name. runtime_flags may be anything here. */
static const struct {
	const char *name;
	bool (*expect)(struct json_object *value, char *error, size_t size);
} typed_fields[] = {
	{"commit_sha", json_expect_optional_string},
	{"concurrency", json_expect_u32},
	{"env_hash", json_expect_string},
	{"event", json_expect_string},
	{"graph_enabled", json_expect_bool},
	{"model", json_expect_string},
	{"shape", json_expect_map},
	{"source", json_expect_optional_string},
	{"source_line", json_expect_optional_string},
	{"stage_us", json_expect_map},
};

static bool refuse(char *error, size_t size, const char *message)
{
	snprintf(error, size, "%s", message);
	return false;
}

static bool check_types(struct json_object *event, char *error, size_t size)
{
	char reason[ERROR_SIZE];

	for (size_t i = 0; i < sizeof(typed_fields) / sizeof(typed_fields[0]); i++) {
		struct json_object *value;

		if (!json_object_object_get_ex(event, typed_fields[i].name, &value))
			continue;
		if (typed_fields[i].expect(value, reason, sizeof(reason)))
			continue;
		snprintf(error, size, "invalid profile event: %s", reason);
		return false;
	}
	return true;
}

static struct json_object *find_field(struct json_object *event, const char *name)
{
	return json_object_object_get(event, name);
}

static bool is_blank(struct json_object *string)
{
	return whitespace_only(json_object_get_string(string),
			       (size_t)json_object_get_string_len(string));
}

/* ProfileEvent::validate. */
static bool check_rules(struct json_object *event, char *error, size_t size)
{
	struct json_object *commit_sha = find_field(event, "commit_sha");
	const char *env_hash = json_object_get_string(find_field(event, "env_hash"));

	if (is_blank(find_field(event, "event")))
		return refuse(error, size, "event must be non-empty");
	if (commit_sha && is_blank(commit_sha))
		return refuse(error, size, "commit_sha must be non-empty when present");
	if (strncmp(env_hash, "sha256:", strlen("sha256:")))
		return refuse(error, size, "env_hash must start with sha256:");
	if (is_blank(find_field(event, "model")))
		return refuse(error, size, "model must be non-empty");
	if (!json_object_get_uint64(find_field(event, "concurrency")))
		return refuse(error, size, "concurrency must be > 0");
	if (!json_object_is_type(find_field(event, "runtime_flags"), json_type_object))
		return refuse(error, size, "runtime_flags must be an object");
	return true;
}

bool profile_event_check(struct json_object *value, char *error, size_t size)
{
	if (!json_object_is_type(value, json_type_object))
		return refuse(error, size, "profile event must be a JSON object");
	for (size_t i = 0; i < sizeof(required_fields) / sizeof(required_fields[0]); i++) {
		if (json_object_object_get_ex(value, required_fields[i], NULL))
			continue;
		snprintf(error, size, "missing required field: %s", required_fields[i]);
		return false;
	}
	return check_types(value, error, size) && check_rules(value, error, size);
}

const char *profile_event_name(struct json_object *value)
{
	return json_object_get_string(find_field(value, "event"));
}
