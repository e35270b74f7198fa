/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/validate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/gzip.h"
#include "base/json_read.h"
#include "base/text.h"
#include "base/vec.h"
#include "commands/validate_trace.h"
#include "merge/source.h"
#include "output/capture.h"

#define ERROR_SIZE 512

/* In ferrum's order: the first that is missing is the one that is named. */
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
	char reason[ERROR_SIZE / 2];

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

static bool check_event(struct json_object *value, char *error, size_t size)
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

/* One name of --require-events. */
struct group {
	const char *name;
	bool seen;
};

struct groups {
	char *text; /* what the names point into */
	VEC(struct group) list;
};

static int parse_groups(struct groups *groups, const char *required)
{
	char *rest;
	char *name;
	int err = 0;

	groups->text = strdup(required ? required : "");
	if (!groups->text)
		return -ENOMEM;
	rest = groups->text;
	while (!err && (name = strsep(&rest, ","))) {
		if (*name)
			err = vec_push(&groups->list, ((struct group){.name = name}));
	}
	return err;
}

static void clear_groups(struct groups *groups)
{
	vec_free(&groups->list);
	free(groups->text);
}

/* Ferrum's parse_profile_jsonl_str for one line, which has been trimmed and ends with a NUL. */
static int check_line(const char *line, size_t size, struct groups *groups, char *error,
		      size_t error_size)
{
	struct json_object *value = NULL;
	char reason[ERROR_SIZE];
	int err;

	err = json_read(line, size, &value, reason, sizeof(reason));
	if (err == -EBADMSG)
		snprintf(error, error_size, "invalid JSON: %.*s", ERROR_SIZE / 2, reason);
	if (err)
		return err;
	if (!check_event(value, error, error_size))
		err = -EBADMSG;
	for (size_t i = 0; !err && i < groups->list.count; i++) {
		const char *name = json_object_get_string(find_field(value, "event"));
		struct group *group = &groups->list.items[i];

		group->seen |= !strcmp(group->name, name);
	}
	json_object_put(value);
	return err;
}

/* A last line that has no end is half an event of a partial file. */
static int check_lines(FILE *in, struct groups *groups, bool may_be_partial,
		       struct trace_facts *facts, char *error, size_t size)
{
	char reason[ERROR_SIZE];
	char *line = NULL;
	size_t capacity = 0;
	uint64_t number = 0;
	ssize_t length;
	int err = 0;

	while (!err && (length = getline(&line, &capacity, in)) >= 0) {
		const char *text = line;
		size_t text_size = (size_t)length;
		bool has_end = line[length - 1] == '\n';

		number++;
		whitespace_trim(&text, &text_size);
		if (!text_size)
			continue;
		line[(size_t)(text - line) + text_size] = '\0';
		err = check_line(text, text_size, groups, reason, sizeof(reason));
		facts->is_partial = err == -EBADMSG && may_be_partial && !has_end;
		if (facts->is_partial) {
			err = 0;
			break;
		}
		if (err == -EBADMSG)
			snprintf(error, size, "line %llu: %.*s", (unsigned long long)number,
				 ERROR_SIZE - 32, reason);
		facts->events++;
	}
	if (!err && !feof(in) && !facts->is_partial)
		err = errno ? -errno : -EIO;
	free(line);
	return err;
}

/* Ferrum's require_profile_event_groups: 0, or 1 with its message printed. */
static int report_missing_groups(const struct groups *groups, const char *path, FILE *err_out)
{
	const char *separator = "";
	char *missing = NULL;
	size_t size = 0;
	FILE *list = open_memstream(&missing, &size);
	int result = 0;

	for (size_t i = 0; list && i < groups->list.count; i++) {
		if (groups->list.items[i].seen)
			continue;
		fprintf(list, "%s%s", separator, groups->list.items[i].name);
		separator = ", ";
		result = 1;
	}
	if (!list || fclose(list))
		result = 1;
	if (result)
		terminal_line(err_out, "%s: missing profile event groups: %s", path,
			      missing ? missing : strerror(ENOMEM));
	free(missing);
	return result;
}

/* What the name of a file says of it. */
struct file_name {
	bool is_profile; /* *.jsonl */
	bool is_partial; /* *.partial, after which the rest counts as the name */
};

static bool ends_with(const char *name, size_t size, const char *end)
{
	return size >= strlen(end) && !memcmp(name + size - strlen(end), end, strlen(end));
}

static struct file_name read_name(const char *path)
{
	static const char partial[] = ".partial";
	size_t size = strlen(path);
	struct file_name name = {.is_partial = ends_with(path, size, partial)};

	if (name.is_partial)
		size -= strlen(partial);
	if (ends_with(path, size, ".gz"))
		size -= strlen(".gz");
	name.is_profile = ends_with(path, size, ".jsonl");
	return name;
}

/* Copies input that cannot be read twice, such as a pipe, to a temporary file. */
static int make_seekable(FILE **in)
{
	char block[BUFSIZ];
	FILE *copy;
	size_t size;

	if (!fseeko(*in, 0, SEEK_SET))
		return 0;
	copy = tmpfile();
	if (!copy)
		return -errno;
	while ((size = fread(block, 1, sizeof(block), *in)) > 0)
		fwrite(block, 1, size, copy);
	if (ferror(*in) || fflush(copy) || ferror(copy)) {
		fclose(copy);
		return -EIO;
	}
	rewind(copy);
	fclose(*in);
	*in = copy;
	return 0;
}

static bool is_capture(FILE *in)
{
	uint64_t magic = 0;
	bool is = fread(&magic, sizeof(magic), 1, in) == 1 && magic == CAPTURE_MAGIC;

	rewind(in);
	return is;
}

static int next_visible(FILE *in)
{
	int byte;

	do
		byte = getc_unlocked(in);
	while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r');
	return byte;
}

/* Whether the array, whose '[' was read, ends on its first line and is followed by other lines. */
static bool is_whole_line(FILE *in)
{
	bool in_string = false;
	int64_t depth = 1;
	int byte, before = 0;

	while ((byte = getc_unlocked(in)) != '\n' && byte != EOF) {
		if (in_string && before == '\\')
			byte = 0; /* escaped: no quote, and begins no escape */
		else if (byte == '"')
			in_string = !in_string;
		else if (!in_string && (byte == '[' || byte == '{'))
			depth++;
		else if (!in_string && (byte == ']' || byte == '}'))
			depth--;
		before = byte;
	}
	return !depth && next_visible(in) != EOF;
}

/*
 * Both a trace and a profile with a wrong line may begin with '['. A trace is a single array, so an
 * array that other lines follow is a line of a profile.
 */
static bool is_profile_of_arrays(FILE *in, bool is_named_profile)
{
	bool is = next_visible(in) == '[' && (is_named_profile || is_whole_line(in));

	rewind(in);
	return is;
}

static int take_nothing(void *ctx, const struct source_event *event)
{
	return 0;
}

/* Whatever its packets need is there: clocks, texts, tracks, and begins of slices that end. */
static int check_perfetto(FILE *in, bool may_be_partial, struct trace_facts *facts, char *error,
			  size_t size)
{
	const struct source_taker taker = {take_nothing, NULL};
	struct source_facts source = {.events = 0};
	char reason[SOURCE_ERROR] = "";
	int err = source_read_perfetto(in, &taker, &source, reason);

	facts->is_trace = true;
	facts->events = source.events;
	facts->is_partial = err == -EBADMSG && source.is_cut && may_be_partial;
	snprintf(error, size, "%s", reason);
	return facts->is_partial ? 0 : err;
}

static int check_file(FILE **in, const struct file_name *name, struct groups *groups,
		      struct trace_facts *facts, char *error, size_t size)
{
	int err = make_seekable(in);

	if (!err && is_capture(*in)) {
		snprintf(error, size, "a capture, not a trace or a profile: read it with --replay");
		return -EBADMSG;
	}
	if (!err && source_is_perfetto(*in))
		return check_perfetto(*in, name->is_partial, facts, error, size);
	if (!err && !is_profile_of_arrays(*in, name->is_profile))
		err = validate_trace(*in, name->is_partial, facts, error, size);
	if (err || facts->is_trace)
		return err;
	rewind(*in);
	*facts = (struct trace_facts){.events = 0};
	return check_lines(*in, groups, name->is_partial, facts, error, size);
}

/* False: a message was printed. */
static bool validate_file(const char *path, struct groups *groups, FILE *out, FILE *err_out)
{
	const struct file_name name = read_name(path);
	struct trace_facts facts = {.events = 0};
	char error[ERROR_SIZE] = "";
	FILE *in = gzip_open_input(path);
	int err = in ? 0 : -errno;

	vec_for_each (group, &groups->list)
		group->seen = false;
	if (!err)
		err = check_file(&in, &name, groups, &facts, error, sizeof(error));
	if (in)
		fclose(in);
	if (err) {
		terminal_line(err_out, "%s: %s", path, err == -EBADMSG ? error : strerror(-err));
		return false;
	}
	if (!facts.is_trace && report_missing_groups(groups, path, err_out))
		return false;
	terminal_line(out, "%s: %llu event%s, ok%s", path, (unsigned long long)facts.events,
		      plural(facts.events),
		      facts.is_partial ? ", but partial: the file ends within the next event" : "");
	return true;
}

bool validate_files(char *const *paths, size_t count, const char *required_events, FILE *out,
		    FILE *err)
{
	struct groups groups = {.text = NULL};
	bool valid = !parse_groups(&groups, required_events);

	if (!valid)
		terminal_line(err, "%s", strerror(ENOMEM));
	else
		for (size_t i = 0; i < count; i++)
			valid = validate_file(paths[i], &groups, out, err) && valid;
	if (fflush(out)) {
		terminal_line(err, "validate: %s", strerror(errno));
		valid = false;
	}
	clear_groups(&groups);
	return valid;
}
