/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_judging.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "option_names.h"
#include "option_table.h"

static const char *const names[] = {"cv-threshold",
				    "efficiency-threshold",
				    "memory-cliff-threshold",
				    "gpu-transfer-threshold",
				    "rate-limit",
				    "rate-interval",
				    "cv-window",
				    "budget-us",
				    "class-by",
				    "context"};

/* One of names. NULL: it is none of them. */
static const char *find_name(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strlen(names[i]) == length && !strncmp(names[i], name, length))
			return names[i];
	}
	return NULL;
}

/* The name in "NAME=VALUE". */
static const char *name_of(const char *text)
{
	size_t length = strcspn(text, "=");

	return text[length] ? find_name(text, length) : NULL;
}

static char **find(const struct options *options, const char *name)
{
	vec_for_each (text, &options->judging_given) {
		if (name_of(*text) == name)
			return text;
	}
	return NULL;
}

int option_judging_note(struct options *options, const char *name, const char *value)
{
	char **known, *text;

	name = find_name(name, strlen(name));
	if (!name)
		return 0;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	known = find(options, name);
	if (known) {
		free(*known);
		*known = text;
		return 0;
	}
	if (!vec_push(&options->judging_given, text))
		return 0;
	free(text);
	return -ENOMEM;
}

static void say_nothing(void *ctx, enum log_level level, const char *message)
{
	(void)ctx;
	(void)level;
	(void)message;
}

/* Notes and takes it. Options point into the noted text from here on, as a name of --class-by. */
static int take_one(struct options *options, const char *name, const char *value)
{
	const struct option_row *row = option_find(name);
	struct log_diversion before;
	char **text;
	int err = option_judging_note(options, name, value);

	if (err)
		return err;
	text = find(options, name);
	before = log_divert((struct log_diversion){say_nothing, NULL});
	err = row->take(row, *text + strlen(name) + 1, options);
	log_divert(before);
	if (!err)
		return 0;
	/* It was noted last. */
	free(*text);
	options->judging_given.count--;
	return err;
}

int option_judging_take(struct options *options, const char *const *texts, size_t count)
{
	char taken[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		const char *name = name_of(texts[i]), *value = strchr(texts[i], '=');
		int err;

		if (name && find(options, name))
			continue;
		err = name ? take_one(options, name, value + 1) : -EINVAL;
		if (err == -EINVAL)
			log_warn("the recording's option '--%s' is not valid here: left out",
				 texts[i]);
		else if (err)
			return err;
		else if (used < sizeof(taken))
			used += (size_t)snprintf(taken + used, sizeof(taken) - used, "%s--%s %s",
						 used ? ", " : "", name, value + 1);
	}
	if (used)
		log_info("judged as when it was recorded: %s", taken);
	return 0;
}
