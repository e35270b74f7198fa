/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/env_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "model/env_document.h"

#define ERROR_SIZE 512

/* Reads the whole file and adds a NUL. The caller frees *text in any case. 0, -EFBIG or -errno. */
static int read_file(FILE *in, char **text, size_t *size)
{
	size_t capacity = 0, got;

	*text = NULL;
	*size = 0;
	do {
		if (*size == capacity) {
			size_t larger = capacity ? 2 * capacity : BUFSIZ;
			char *moved = realloc(*text, larger + 1);

			if (!moved)
				return -ENOMEM;
			*text = moved;
			capacity = larger;
		}
		errno = 0;
		got = fread(*text + *size, 1, capacity - *size, in);
		*size += got;
		if (*size > ENV_HASH_FILE_MAX)
			return -EFBIG;
	} while (got);
	if (ferror(in))
		return errno ? -errno : -EIO;
	(*text)[*size] = '\0';
	return 0;
}

static int hash_file(FILE *in, char hash[ENV_HASH_SIZE], char error[ERROR_SIZE])
{
	char *text = NULL;
	size_t size;
	int err;

	err = read_file(in, &text, &size);
	if (err == -EFBIG)
		snprintf(error, ERROR_SIZE, "more than %u MiB: no environment document",
			 ENV_HASH_FILE_MAX >> 20);
	else if (err)
		snprintf(error, ERROR_SIZE, "%s", strerror(-err));
	else if (whitespace_only(text, size)) {
		snprintf(error, ERROR_SIZE, "empty: no environment document");
		err = -EBADMSG;
	} else {
		err = env_document_hash_text(hash, text, size, error, ERROR_SIZE);
		if (err == -ENOMEM)
			snprintf(error, ERROR_SIZE, "%s", strerror(ENOMEM));
	}
	free(text);
	return err;
}

int env_hash_command(const char *path, FILE *out)
{
	bool is_stdin = !path || !strcmp(path, "-");
	const char *name = is_stdin ? "stdin" : path;
	FILE *in = is_stdin ? stdin : fopen(path, "re");
	char hash[ENV_HASH_SIZE], error[ERROR_SIZE] = "";
	int err = 0;

	if (!in) {
		err = -errno;
		log_err("%s: %s", name, strerror(-err));
		return err;
	}
	err = hash_file(in, hash, error);
	if (!is_stdin)
		fclose(in);
	if (err) {
		log_err("%s: %s", name, error);
		return err;
	}
	if (*error)
		log_warn("%s: the hash leaves out what ferrum up to 0.18 does not know: %s", name,
			 error);
	if (fprintf(out, "%s\n", hash) < 0 || fflush(out)) {
		err = errno ? -errno : -EIO;
		log_err("stdout: %s", strerror(-err));
	}
	return err;
}
