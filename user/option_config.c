/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "option_names.h"
#include "option_table.h"

#define BYTES_MAX (64u << 10)

/* They say what else to do than to watch, or what watch decides itself. */
static const char *const refused[] = {
	"all",	   "duration", "steps",	    "flag",	   "max-steps", "output", "trace",
	"profile", "record",   "html",	    "folded",	   "replay",	"detail", "escalate-now",
	"report",  "config",   "dry-run",   "list-steps",  "ready-fd",	"help",	  "help-all",
	"usage",   "version",  "flight-fd", "torch-trace", "interval"};

/* The first message that was logged meanwhile. */
struct said {
	char text[512];
};

static void take_message(void *ctx, enum log_level level, const char *message)
{
	struct said *said = ctx;

	if (level <= LOG_ERR && !*said->text)
		snprintf(said->text, sizeof(said->text), "%s", message);
}

static int fail_at(const char *path, unsigned int line, const char *reason)
{
	/* An option has no dashes here. */
	log_err("%s:%u: %s", path, line, reason + (strncmp(reason, "--", 2) ? 0 : 2));
	return -EINVAL;
}

static bool is_refused(const char *name)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (!strcmp(refused[i], name))
			return true;
	}
	return false;
}

static char *trim(char *text)
{
	size_t size;

	text += strspn(text, " \t\r");
	size = strlen(text);
	while (size && strchr(" \t\r", text[size - 1]))
		text[--size] = '\0';
	return text;
}

static void cut_comment(char *line)
{
	for (char *at = line; *at; at++) {
		if (*at == '#' && (at == line || isspace((unsigned char)at[-1]))) {
			*at = '\0';
			return;
		}
	}
}

/* A row that is found, and whose value, or NULL, is as the row wants it. */
static const struct option_row *find_row(const char *name, const char *value, char *why,
					 size_t size)
{
	const struct option_row *row = option_find(name);
	const char *similar = row ? NULL : option_similar(name);

	*why = '\0';
	if (similar)
		snprintf(why, size, "unknown option '%s': did you mean %s?", name, similar);
	else if (!row)
		snprintf(why, size, "unknown option '%s' (see --help-all)", name);
	else if (is_refused(name) || (row->of && strcmp(row->of, "watch") != 0))
		snprintf(why, size, "%s is no option of watch", name);
	else if (row->value && !value)
		snprintf(why, size, "%s: %s is missing: %s = ...", name, row->value, name);
	else if (!row->value && value)
		snprintf(why, size, "%s takes no value", name);
	return *why ? NULL : row;
}

static int take_line(struct options *options, const char *path, unsigned int number, char *line)
{
	struct said said = {""};
	struct log_diversion before;
	const struct option_row *row;
	char why[256], *value;
	int err;

	cut_comment(line);
	value = strchr(line, '=');
	if (value)
		*value++ = '\0';
	line = trim(line);
	value = value ? trim(value) : NULL;
	if (!*line)
		return value ? fail_at(path, number, "the name of an option is missing") : 0;
	row = find_row(line, value, why, sizeof(why));
	if (!row)
		return fail_at(path, number, why);
	before = log_divert((struct log_diversion){take_message, &said});
	err = row->take(row, value, options);
	log_divert(before);
	if (err == -EINVAL)
		return fail_at(path, number, *said.text ? said.text : "invalid value");
	return err ? err : option_config_note(options, row->name, value);
}

static int take_text(struct options *options, const char *path, char *text)
{
	unsigned int number = 0;
	int err = 0;

	while (text && !err) {
		char *end = strchr(text, '\n');

		if (end)
			*end = '\0';
		err = take_line(options, path, ++number, text);
		text = end ? end + 1 : NULL;
	}
	return err;
}

static int fail(const char *path, const char *reason)
{
	log_err("%s: %s", path, reason);
	return -EINVAL;
}

/* Who may write to the file decides what root does. */
static const char *why_unsafe(const struct stat *file)
{
	if (!S_ISREG(file->st_mode))
		return "not a regular file";
	if (file->st_size > (off_t)BYTES_MAX)
		return "longer than 64 KiB: not a configuration file";
	if (!geteuid() && file->st_uid)
		return "belongs to another user: chown root it";
	if (!geteuid() && file->st_mode & (S_IWGRP | S_IWOTH))
		return "others may write to it: chmod go-w it";
	return NULL;
}

static int read_all(int fd, const char *path, char **text)
{
	const char *unsafe;
	struct stat file;
	ssize_t size;

	if (fstat(fd, &file))
		return fail(path, strerror(errno));
	unsafe = why_unsafe(&file);
	if (unsafe)
		return fail(path, unsafe);
	*text = malloc(BYTES_MAX + 1);
	if (!*text)
		return -ENOMEM;
	size = read(fd, *text, BYTES_MAX);
	if (size < 0)
		return fail(path, strerror(errno));
	(*text)[size] = '\0';
	return strlen(*text) == (size_t)size ? 0 : fail(path, "not a text file");
}

int option_config_read(struct options *options, const char *path, bool must_exist)
{
	int fd, err;

	if (!strcmp(path, "/dev/null"))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT && !must_exist)
		return 0;
	if (fd < 0)
		return fail(path, strerror(errno));
	err = read_all(fd, path, &options->watch.text);
	close(fd);
	return err ? err : take_text(options, path, options->watch.text);
}

int option_config_note(struct options *options, const char *name, const char *value)
{
	static const char *const own[] = {
		"pid",		"dir",	    "config",	 "comm",     "cgroup",	"container",
		"unit",		"last",	    "memory",	 "after",    "calls",	"sample",
		"sample-every", "cooldown", "max-dumps", "max-disk", "metrics", "wait-step"};
	const struct option_given given = {name, value};

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		if (!strcmp(own[i], name))
			return 0;
	}
	return vec_push(&options->watch.given, given);
}
