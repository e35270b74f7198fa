/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/env_document.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define REASON_SIZE  400
#define PLACE_SIZE   160

struct writer {
	struct json json;
	char place[PLACE_SIZE]; /* of the current value, e.g. runtime_config.entries[3].source */
	char *error;		/* why it was refused, or until then the members left out */
	size_t error_size;
};

/* Checks and writes a value. 0; -EBADMSG, with writer->error filled in; or -ENOMEM. */
typedef int write_value(struct writer *writer, const char *key, struct json_object *value);

struct field {
	const char *name;
	write_value *write;
	bool optional; /* may be null */
	bool required;
	const char *default_text; /* what is written if it is absent; NULL: nothing */
};

__attribute__((format(printf, 2, 3))) static int refuse(struct writer *writer, const char *format,
							...)
{
	char reason[REASON_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	snprintf(writer->error, writer->error_size, "%s%s%s", writer->place,
		 *writer->place ? ": " : "", reason);
	return -EBADMSG;
}

/* Appends a part of the current value to the place. Returns the old length, for leave(). */
__attribute__((format(printf, 2, 3))) static size_t enter(struct writer *writer, const char *format,
							  ...)
{
	size_t length = strlen(writer->place);
	va_list args;

	va_start(args, format);
	vsnprintf(writer->place + length, sizeof(writer->place) - length, format, args);
	va_end(args);
	return length;
}

static void leave(struct writer *writer, size_t length)
{
	writer->place[length] = '\0';
}

static size_t enter_member(struct writer *writer, const char *name)
{
	return enter(writer, "%s%s", *writer->place ? "." : "", name);
}

static int write_checked(struct writer *writer, const char *key, struct json_object *value,
			 bool (*expect)(struct json_object *value, char *error, size_t size))
{
	char reason[REASON_SIZE];

	if (!expect(value, reason, sizeof(reason)))
		return refuse(writer, "%s", reason);
	json_write_value(&writer->json, key, value);
	return 0;
}

static int write_string(struct writer *writer, const char *key, struct json_object *value)
{
	return write_checked(writer, key, value, json_expect_string);
}

static int write_bool(struct writer *writer, const char *key, struct json_object *value)
{
	return write_checked(writer, key, value, json_expect_bool);
}

static int write_u32(struct writer *writer, const char *key, struct json_object *value)
{
	return write_checked(writer, key, value, json_expect_u32);
}

static int write_u64(struct writer *writer, const char *key, struct json_object *value)
{
	return write_checked(writer, key, value, json_expect_u64);
}

static int write_f32(struct writer *writer, const char *key, struct json_object *value)
{
	char reason[REASON_SIZE];

	if (!json_expect_number(value, reason, sizeof(reason)))
		return refuse(writer, "%s", reason);
	json_float(&writer->json, key, (float)json_object_get_double(value));
	return 0;
}

static int refuse_type(struct writer *writer, struct json_object *value, const char *expected)
{
	char reason[REASON_SIZE];

	json_refuse(value, expected, reason, sizeof(reason));
	return refuse(writer, "%s", reason);
}

static int write_array(struct writer *writer, const char *key, struct json_object *value,
		       write_value *write_item)
{
	size_t count, place;
	int err = 0;

	if (!json_object_is_type(value, json_type_array))
		return refuse_type(writer, value, "a sequence");
	count = json_object_array_length(value);
	json_array_begin(&writer->json, key);
	for (size_t i = 0; !err && i < count; i++) {
		place = enter(writer, "[%zu]", i);
		err = write_item(writer, NULL, json_object_array_get_idx(value, i));
		if (!err)
			leave(writer, place);
	}
	json_array_end(&writer->json);
	return err;
}

static int write_strings(struct writer *writer, const char *key, struct json_object *value)
{
	return write_array(writer, key, value, write_string);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A BTreeMap<String, String>, which is sorted by the bytes of the keys. */
static int write_map(struct writer *writer, const char *key, struct json_object *value)
{
	size_t count = 0, place;
	const char **names;
	int err = 0;

	if (!json_object_is_type(value, json_type_object))
		return refuse_type(writer, value, "a map");
	names = calloc((size_t)json_object_object_length(value) + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	json_object_object_foreach(value, name, unused)
	{
		(void)unused;
		names[count++] = name;
	}
	qsort(names, count, sizeof(*names), compare_names);
	json_object_begin(&writer->json, key);
	for (size_t i = 0; !err && i < count; i++) {
		place = enter_member(writer, names[i]);
		err = write_string(writer, names[i], json_object_object_get(value, names[i]));
		if (!err)
			leave(writer, place);
	}
	json_object_end(&writer->json);
	free(names);
	return err;
}

static int write_word(struct writer *writer, const char *key, struct json_object *value,
		      const char *const *words, size_t count)
{
	const char *word;

	if (!json_object_is_type(value, json_type_string))
		return refuse_type(writer, value, "a string");
	word = json_object_get_string(value);
	for (size_t i = 0; i < count; i++) {
		/* The length is compared too, because the string may contain a NUL. */
		if (!strcmp(word, words[i]) &&
		    (size_t)json_object_get_string_len(value) == strlen(words[i])) {
			json_string(&writer->json, key, word);
			return 0;
		}
	}
	return refuse(writer, "unknown variant `%.64s`", word);
}

static int write_source(struct writer *writer, const char *key, struct json_object *value)
{
	static const char *const sources[] = {"default", "config_file", "cli",
					      "env",	 "script_case", "memory_profile"};

	return write_word(writer, key, value, sources, COUNT(sources));
}

static int write_effect(struct writer *writer, const char *key, struct json_object *value)
{
	static const char *const effects[] = {"correctness", "performance", "memory",
					      "diagnostics"};

	return write_word(writer, key, value, effects, COUNT(effects));
}

/* A Vec<RuntimeConfigEffect>. Not sorted here: ferrum sorts it on creation, not on reading. */
static int write_effects(struct writer *writer, const char *key, struct json_object *value)
{
	return write_array(writer, key, value, write_effect);
}

/* Adds a member to those that are left out, as long as there is room. */
static void leave_out(struct writer *writer, const char *name)
{
	size_t length = strlen(writer->error);

	if (length + 1 < writer->error_size)
		snprintf(writer->error + length, writer->error_size - length, "%s%s%s%.64s",
			 length ? ", " : "", writer->place, *writer->place ? "." : "", name);
}

static int check_members(struct writer *writer, struct json_object *value,
			 const struct field *fields, size_t count)
{
	size_t i;

	json_object_object_foreach(value, name, unused)
	{
		(void)unused;
		for (i = 0; i < count && strcmp(name, fields[i].name) != 0; i++)
			;
		if (i == count)
			leave_out(writer, name);
	}
	for (i = 0; i < count; i++) {
		if (fields[i].required && !json_object_object_get_ex(value, fields[i].name, NULL))
			return refuse(writer, "missing field `%s`", fields[i].name);
	}
	return 0;
}

static int write_struct(struct writer *writer, const char *key, struct json_object *value,
			const char *name, const struct field *fields, size_t count)
{
	int err;

	if (!json_object_is_type(value, json_type_object))
		return refuse_type(writer, value, name);
	err = check_members(writer, value, fields, count);
	if (err)
		return err;
	json_object_begin(&writer->json, key);
	for (size_t i = 0; !err && i < count; i++) {
		struct json_object *member = NULL;
		size_t place;

		if (!json_object_object_get_ex(value, fields[i].name, &member)) {
			if (fields[i].default_text)
				json_raw(&writer->json, fields[i].name, fields[i].default_text);
			continue;
		}
		if (!member && fields[i].optional)
			continue;
		place = enter_member(writer, fields[i].name);
		err = fields[i].write(writer, fields[i].name, member);
		if (!err)
			leave(writer, place);
	}
	json_object_end(&writer->json);
	return err;
}

static int write_entry(struct writer *writer, const char *key, struct json_object *value)
{
	static const struct field fields[] = {
		{.name = "key", .write = write_string, .required = true},
		{.name = "effective_value", .write = write_string, .required = true},
		{.name = "source", .write = write_source, .required = true},
		{.name = "affects", .write = write_effects, .required = true},
	};

	return write_struct(writer, key, value, "an entry", fields, COUNT(fields));
}

static int write_entries(struct writer *writer, const char *key, struct json_object *value)
{
	return write_array(writer, key, value, write_entry);
}

static int write_runtime_config(struct writer *writer, const char *key, struct json_object *value)
{
	static const struct field fields[] = {
		{.name = "entries", .write = write_entries, .required = true},
	};

	return write_struct(writer, key, value, "a runtime configuration", fields, COUNT(fields));
}

static int write_sampling(struct writer *writer, const char *key, struct json_object *value)
{
	static const struct field fields[] = {
		{.name = "temperature", .write = write_f32, .required = true},
		{.name = "top_k", .write = write_u64, .optional = true},
		{.name = "top_p", .write = write_f32, .optional = true},
		{.name = "repetition_penalty", .write = write_f32, .optional = true},
		{.name = "seed", .write = write_u64, .optional = true},
	};

	return write_struct(writer, key, value, "sampling fields", fields, COUNT(fields));
}

static int write_env(struct writer *writer, struct json_object *value)
{
	static const struct field fields[] = {
		{.name = "commit_sha", .write = write_string, .required = true},
		{.name = "hw_id", .write = write_string, .required = true},
		{.name = "driver", .write = write_string, .optional = true},
		{.name = "cuda", .write = write_string, .optional = true},
		{.name = "rust", .write = write_string, .required = true},
		{.name = "ferrum_features", .write = write_strings, .required = true},
		{.name = "http_connection_mode", .write = write_string, .optional = true},
		{.name = "gpu_clock_lock_mhz", .write = write_u32, .optional = true},
		{.name = "gpu_power_limit_w", .write = write_u32, .optional = true},
		{.name = "gpu_persistence_mode", .write = write_bool, .optional = true},
		{.name = "gpu_auto_boost", .write = write_bool, .optional = true},
		{.name = "ferrum_env", .write = write_map, .required = true},
		{.name = "runtime_config",
		 .write = write_runtime_config,
		 .default_text = "{\"entries\":[]}"},
		{.name = "vllm_args", .write = write_strings, .optional = true},
		{.name = "http_request_sampling", .write = write_sampling, .optional = true},
	};

	return write_struct(writer, NULL, value, "an environment document", fields, COUNT(fields));
}

/* Refuses files of ferrum that contain a document and are easily taken for one. */
static int refuse_container(struct writer *writer, struct json_object *value)
{
	struct json_object *part;

	if (json_object_object_get_ex(value, "commit_sha", NULL) ||
	    json_object_object_get_ex(value, "hw_id", NULL))
		return 0;
	if (json_object_object_get_ex(value, "env", &part) &&
	    json_object_is_type(part, json_type_object))
		return refuse(writer, "a report: give its member env alone (jq .env)");
	if (json_object_object_get_ex(value, "runtime_config", &part) &&
	    json_object_is_type(part, json_type_object))
		return refuse(writer, "an effective configuration: give its entries alone "
				      "(jq .runtime_config.entries)");
	return 0;
}

int env_document_write(FILE *out, struct json_object *document, char *error, size_t size)
{
	struct writer writer = {.json.out = out, .error_size = size};
	int err;

	writer.error = error;
	*error = '\0';
	switch (json_object_get_type(document)) {
	case json_type_array:
		return write_entries(&writer, NULL, document);
	case json_type_object:
		err = refuse_container(&writer, document);
		return err ? err : write_env(&writer, document);
	default:
		return refuse_type(&writer, document,
				   "an environment document or an array of its entries");
	}
}

int env_document_hash(char hash[ENV_HASH_SIZE], struct json_object *document, char *error,
		      size_t size)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int digest_size = 0;
	char *bytes = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&bytes, &length);
	int err;

	if (!out)
		return -ENOMEM;
	err = env_document_write(out, document, error, size);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (!err && !EVP_Digest(bytes, length, digest, &digest_size, EVP_sha256(), NULL)) {
		err = -EIO;
		snprintf(error, size, "OpenSSL has no SHA-256");
	}
	if (!err)
		memcpy(hash, ENV_HASH_PREFIX, sizeof(ENV_HASH_PREFIX));
	for (unsigned int i = 0; !err && i < digest_size; i++)
		snprintf(hash + strlen(ENV_HASH_PREFIX) + (size_t)2 * i, 3, "%02x", digest[i]);
	free(bytes);
	return err;
}

int env_document_hash_text(char hash[ENV_HASH_SIZE], const char *text, size_t size, char *error,
			   size_t error_size)
{
	struct json_reader reader = {.at = text, .end = text + size, .unique_keys = true};
	struct json_object *document;
	int err = json_reader__whole(&reader, &document, error, error_size);

	if (!err)
		err = env_document_hash(hash, document, error, error_size);
	json_object_put(document);
	return err;
}
