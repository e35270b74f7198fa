/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_messages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

/* Longer than log.h shows of a message. */
#define MESSAGE_MAX 4096

struct messages {
	const char *program; /* with which getopt begins a message */
	char text[MESSAGE_MAX];
	size_t used;
	bool told; /* what argp has to say behind it is "Try --help" */
};

/* One message comes in pieces, the last of which ends with the end of the line. */
static ssize_t take(void *cookie, const char *piece, size_t size)
{
	struct messages *messages = cookie;
	size_t room = sizeof(messages->text) - 1 - messages->used;
	size_t taken = size < room ? size : room;
	size_t prefix = strlen(messages->program);
	const char *text = messages->text;

	memcpy(messages->text + messages->used, piece, taken);
	messages->used += taken;
	if (!size || piece[size - 1] != '\n')
		return (ssize_t)size;
	messages->text[messages->used - (taken == size)] = '\0';
	if (!strncmp(text, messages->program, prefix) && !strncmp(text + prefix, ": ", 2))
		text += prefix + 2;
	if (!messages->told)
		log_err("%s (see --help)", text);
	messages->told = true;
	messages->used = 0;
	return (ssize_t)size;
}

error_t option_messages_parse(const struct argp *argp, int argc, char **argv, unsigned int flags,
			      void *input)
{
	struct messages messages = {.program = argc ? argv[0] : ""};
	const cookie_io_functions_t functions = {.write = take};
	FILE *own = stderr, *told = fopencookie(&messages, "w", functions);
	error_t err;

	if (!told)
		return ENOMEM;
	(void)setvbuf(told, NULL, _IONBF, 0);
	/* Both print to this, and know no other way. */
	stderr = told;
	err = argp_parse(argp, argc, argv, flags, NULL, input);
	stderr = own;
	(void)fclose(told);
	return err;
}
