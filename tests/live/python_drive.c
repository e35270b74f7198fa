/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Gives orders to libferrum_python.so in a process, one for each line of standard input, and prints
 * what came of each as one line of JSON:
 *
 *	wish SLOT FUNCTION [ATTRIBUTE…]    resolve    arm    disarm    count    leave
 *
 * "leave" ends without disarming, as a tool that is killed does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "python/guest.h"

#define WORDS_MAX (3 + FBT_PYTHON_ATTRIBUTES)

static uint64_t in_seconds(unsigned int seconds)
{
	return clock_ns(CLOCK_MONOTONIC) + seconds * NS_PER_S;
}

/* The library makes its page on a thread of its own, some time after it was loaded. */
static int open_guest(struct python_guest **guest, uint32_t tgid)
{
	uint64_t end_ns = in_seconds(10);
	uint32_t holder;
	int err;

	do {
		err = python_guest__open(guest, tgid, &holder);
		if (err == -ENOENT)
			usleep(10000);
	} while (err == -ENOENT && clock_ns(CLOCK_MONOTONIC) < end_ns);
	printf("{\"open\": %d, \"holder\": %u}\n", err, holder);
	return err;
}

static void print_slots(const struct python_guest *guest, int err)
{
	uint64_t wait_ns, hold_ns;
	char text[128];

	python_guest__times(guest, &wait_ns, &hold_ns);
	python_guest__text(guest, text, sizeof(text));
	printf("{\"err\": %d, \"minor\": %u, \"wait_ns\": %" PRIu64 ", \"hold_ns\": %" PRIu64
	       ", \"text\": \"%s\", \"slots\": [",
	       err, python_guest__minor(guest), wait_ns, hold_ns, text);
	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++) {
		struct fbt_python_slot slot;

		python_guest__answer(guest, i, &slot);
		printf("%s{\"found\": %u, \"own\": %u, \"more\": %u, \"line\": %u, \"file\": "
		       "\"%s\", \"text\": \"%s\", \"begun\": %llu, \"ended\": %llu, "
		       "\"ended_raised\": %llu}",
		       i ? ", " : "", slot.found, slot.own, slot.more, slot.line, slot.file,
		       slot.text, slot.begun, slot.ended, slot.ended_raised);
	}
	puts("]}");
}

static enum fbt_python_command command_of(const char *word)
{
	static const char *const words[] = {
		[FBT_PYTHON_RESOLVE] = "resolve",
		[FBT_PYTHON_ARM] = "arm",
		[FBT_PYTHON_DISARM] = "disarm",
		[FBT_PYTHON_COUNT] = "count",
	};

	for (size_t i = 1; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i], word))
			return (enum fbt_python_command)i;
	}
	return 0;
}

static const char *suggest(struct python_guest *guest, const char *slot)
{
	python_guest__suggest(guest, (unsigned int)atoi(slot));
	return "{}";
}

static void serve(struct python_guest *guest, char *line)
{
	char *words[WORDS_MAX], *save = NULL;
	enum fbt_python_command command;
	size_t count = 0;

	for (char *word = strtok_r(line, " \n", &save); word && count < WORDS_MAX;
	     word = strtok_r(NULL, " \n", &save))
		words[count++] = word;
	if (!count)
		return;
	command = command_of(words[0]);
	if (command)
		print_slots(guest, python_guest__order(guest, command, in_seconds(5)));
	else if (!strcmp(words[0], "leave"))
		_exit(0);
	else if (!strcmp(words[0], "wish") && count >= 3)
		printf("{\"wish\": %d}\n",
		       python_guest__wish(guest, (unsigned int)atoi(words[1]), words[2],
					  (const char *const *)words + 3, count - 3));
	else if (!strcmp(words[0], "suggest") && count == 2)
		puts(suggest(guest, words[1]));
	else
		puts("{\"err\": \"what?\"}");
}

int main(int argc, char **argv)
{
	struct python_guest *guest;
	char *line = NULL;
	size_t size = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2) {
		fputs("usage: python_drive PID\n", stderr);
		return 2;
	}
	if (open_guest(&guest, (uint32_t)atoi(argv[1])))
		return 1;
	while (getline(&line, &size, stdin) > 0)
		serve(guest, line);
	free(line);
	python_guest__free(guest);
	return 0;
}
