/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "process_strings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "log.h"
#include "processes.h"
#include "vec.h"

#define FIRST_READ (64u << 10)

typedef VEC(char *) string_vec;

int process_strings_split(struct process_strings *strings, char *text, size_t size)
{
	string_vec items = {0};
	char *at = text;
	int err = 0;

	text[size] = '\0';
	while (!err && at < text + size && items.count < PROCESS_STRINGS_MAX) {
		err = vec_push(&items, at);
		at += strlen(at) + 1;
	}
	if (!err)
		err = vec_push(&items, (char *)NULL);
	if (err) {
		vec_free(&items);
		free(text);
		memset(strings, 0, sizeof(*strings));
		return err;
	}
	strings->items = items.items;
	strings->count = items.count - 1;
	strings->text = text;
	return 0;
}

/* Up to the bound. *text has room for one byte more than *size. */
static int read_all(int fd, char **text, size_t *size)
{
	size_t capacity = FIRST_READ;
	ssize_t got = 1;

	*size = 0;
	*text = malloc(capacity + 1);
	if (!*text)
		return -ENOMEM;
	while (got > 0 && *size < PROCESS_STRINGS_BYTES_MAX) {
		if (*size == capacity) {
			char *moved = realloc(*text, 2 * capacity + 1);

			if (!moved)
				return -ENOMEM;
			*text = moved;
			capacity *= 2;
		}
		got = read(fd, *text + *size, capacity - *size);
		if (got < 0)
			return -errno;
		*size += (size_t)got;
	}
	return 0;
}

/* Behind the last string that is whole. */
static size_t drop_cut_string(const char *text, size_t size)
{
	const char *end = memrchr(text, '\0', size);

	return end ? (size_t)(end - text) + 1 : 0;
}

int process_strings_read(struct process_strings *strings, uint32_t tgid, const char *file)
{
	char *text = NULL;
	size_t size = 0;
	char path[48];
	int fd, err;

	memset(strings, 0, sizeof(*strings));
	/* A first thread that has ended has no memory to read them from. */
	snprintf(path, sizeof(path), "/proc/%u/%s", processes_living_thread(tgid), file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		log_debug("%s: %s", path, strerror(-err));
		return err;
	}
	err = read_all(fd, &text, &size);
	close(fd);
	if (err) {
		free(text);
		log_debug("%s: %s", path, strerror(-err));
		return err;
	}
	if (size == PROCESS_STRINGS_BYTES_MAX) {
		log_debug("%s: more than %u bytes: the rest is left out", path, (unsigned int)size);
		size = drop_cut_string(text, size);
	}
	return process_strings_split(strings, text, size);
}

void process_strings_clear(struct process_strings *strings)
{
	free(strings->items);
	free(strings->text);
	memset(strings, 0, sizeof(*strings));
}
