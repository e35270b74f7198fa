/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_windows.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "disk_room.h"
#include "log.h"
#include "option_table.h"
#include "option_value.h"
#include "whitespace.h"

/* Longer ones are neither a switch nor a number. */
#define VALUE_SIZE 32
/* An engine's step function has been seen to be called 5,000 times a second at most. */
#define RATE_GUARD_PERCENT 5

/* The value without the white space around it: false if it is not given, or too long to matter. */
static bool read_value(char value[VALUE_SIZE], const char *name)
{
	const char *text = getenv(name);
	size_t size = text ? strlen(text) : 0;

	if (!text)
		return false;
	whitespace_trim(&text, &size);
	return snprintf(value, VALUE_SIZE, "%.*s", (int)(size < VALUE_SIZE ? size : VALUE_SIZE),
			text) < VALUE_SIZE;
}

static bool is_on(const char *name, bool otherwise)
{
	static const char *const words[] = {"1", "true", "yes", "y", "on"};
	char value[VALUE_SIZE];

	if (!getenv(name))
		return otherwise;
	if (!read_value(value, name))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcasecmp(value, words[i]))
			return true;
	}
	return false;
}

static const char *read_path(const char *name)
{
	const char *path = getenv(name);

	return path && !whitespace_only(path, strlen(path)) ? path : NULL;
}

static uint64_t read_steps(const char *name)
{
	char value[VALUE_SIZE];
	uint64_t steps = 0;

	/* A sign is a number's for the seed; below 0 its limit is off. */
	if (!read_value(value, name) ||
	    option_parse_number(value + (*value == '+'), UINT64_MAX, &steps))
		return 0;
	return steps;
}

static void warn_of_switches(void)
{
	static const char *const names[] = {
		"FERRUM_BPFTRACE_WITH_STACK",
		"FERRUM_BPFTRACE_RECORD_SHAPES",
		"FERRUM_BPFTRACE_SYNC_CUDA",
		"FERRUM_BPFTRACE_AUTO_CONVERT",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (is_on(names[i], false))
			log_warn("%s: has no effect: it can be done only inside the engine",
				 names[i]);
	}
}

int option_parse_windows(struct option_windows *windows, int key, const char *arg)
{
	switch (key) {
	case KEY_FLAG:
		windows->flag = arg;
		return 0;
	case KEY_DIR:
		if (!*arg)
			return option_bad_value("--dir", arg, "the name of a folder");
		windows->dir = arg;
		return 0;
	case KEY_KEEP_FREE:
		windows->keep_free_given = true;
		return option_parse_bytes("--keep-free", arg, &windows->keep_free);
	case KEY_MAX_STEPS:
		windows->max_steps_given = true;
		return option_parse_range("--max-steps", arg, 0, UINT64_MAX, &windows->max_steps);
	case KEY_RATE_GUARD:
		windows->rate_guard_given = true;
		return option_parse_percent("--rate-guard", arg, 100, &windows->rate_guard_percent);
	}
	return ARGP_ERR_UNKNOWN;
}

void option_complete_windows(struct option_windows *windows, bool traces)
{
	if (traces && !windows->flag) {
		windows->flag = read_path("FERRUM_BPFTRACE_FLAG");
		windows->flag_by_environment = windows->flag;
	}
	windows->disabled = windows->flag && !is_on("FERRUM_BPFTRACE", true);
	if (!windows->dir)
		windows->dir = read_path("FERRUM_BPFTRACE_DIR");
	if (!windows->dir)
		windows->dir = ".";
	if (!windows->keep_free_given)
		windows->keep_free = DISK_ROOM_DEFAULT;
	if (!windows->max_steps_given && windows->flag)
		windows->max_steps = read_steps("FERRUM_BPFTRACE_MAX_STEPS");
	if (!windows->rate_guard_given)
		windows->rate_guard_percent = RATE_GUARD_PERCENT;
	/* -q and -v go before it. */
	if (is_on("FERRUM_BPFTRACE_DEBUG", false) && log_level() == LOG_INFO)
		log_set_level(LOG_DEBUG);
	if (traces)
		warn_of_switches();
}
