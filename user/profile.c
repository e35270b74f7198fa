/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "json_read.h"
#include "profile.h"
#include "profile_event.h"
#include "terminal.h"
#include "trace_check.h"
#include "vec.h"
#include "whitespace.h"

#define ERROR_SIZE 512

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

/* The seed's parse_profile_jsonl_str for one line, which has been trimmed and ends with a NUL. */
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
	if (!profile_event_check(value, error, error_size))
		err = -EBADMSG;
	for (size_t i = 0; !err && i < groups->list.count; i++) {
		struct group *group = &groups->list.items[i];

		group->seen |= !strcmp(group->name, profile_event_name(value));
	}
	json_object_put(value);
	return err;
}

static int check_lines(FILE *in, struct groups *groups, uint64_t *events, char *error, size_t size)
{
	char reason[ERROR_SIZE];
	char *line = NULL;
	size_t capacity = 0;
	uint64_t number = 0;
	ssize_t length;
	int err = 0;

	*events = 0;
	while (!err && (length = getline(&line, &capacity, in)) >= 0) {
		const char *text = line;
		size_t text_size = (size_t)length;

		number++;
		whitespace_trim(&text, &text_size);
		if (!text_size)
			continue;
		line[(size_t)(text - line) + text_size] = '\0';
		err = check_line(text, text_size, groups, reason, sizeof(reason));
		if (err == -EBADMSG)
			snprintf(error, size, "line %llu: %.*s", (unsigned long long)number,
				 ERROR_SIZE - 32, reason);
		*events += 1;
	}
	if (!err && !feof(in))
		err = errno ? -errno : -EIO;
	free(line);
	return err;
}

/* The seed's require_profile_event_groups: 0, or 1 with its message printed. */
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

/* What cannot be read twice, a pipe, goes to a temporary file first. */
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

static int check_file(FILE **in, struct groups *groups, bool *is_trace, uint64_t *events,
		      char *error, size_t size)
{
	int err;

	err = make_seekable(in);
	if (err)
		return err;
	err = trace_check(*in, is_trace, events, error, size);
	if (err || *is_trace)
		return err;
	rewind(*in);
	return check_lines(*in, groups, events, error, size);
}

/* 0 or 1, the message printed. */
static int validate_file(const char *path, struct groups *groups, FILE *out, FILE *err_out)
{
	char error[ERROR_SIZE] = "";
	uint64_t events = 0;
	bool is_trace = false;
	FILE *in = fopen(path, "re");
	int err = in ? 0 : -errno;

	for (size_t i = 0; i < groups->list.count; i++)
		groups->list.items[i].seen = false;
	if (!err)
		err = check_file(&in, groups, &is_trace, &events, error, sizeof(error));
	if (in)
		fclose(in);
	if (err) {
		terminal_line(err_out, "%s: %s", path, err == -EBADMSG ? error : strerror(-err));
		return 1;
	}
	if (!is_trace && report_missing_groups(groups, path, err_out))
		return 1;
	terminal_line(out, "%s: %llu events, ok", path, (unsigned long long)events);
	return 0;
}

int profile_validate_files(char *const *paths, size_t count, const char *required_events, FILE *out,
			   FILE *err)
{
	struct groups groups = {.text = NULL};
	int result = 0;

	if (parse_groups(&groups, required_events)) {
		terminal_line(err, "%s", strerror(ENOMEM));
		result = 1;
		goto out;
	}
	for (size_t i = 0; i < count; i++)
		result |= validate_file(paths[i], &groups, out, err);
out:
	clear_groups(&groups);
	return result;
}
