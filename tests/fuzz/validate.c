/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Input of "validate", a trace or a profile, and JSON in general: read, checked, and written again.
 */
#include <errno.h>
#include "model/env_document.h"
#include "fuzz.h"
#include "base/json.h"
#include "base/json_read.h"
#include "commands/validate.h"

#define INPUT_FD   100
#define INPUT_PATH "/proc/self/fd/100"
#define ERROR_SIZE 512

static void check_file(const uint8_t *data, size_t size)
{
	char *paths[] = {INPUT_PATH};
	int fd = fuzz_file(data, size);
	FILE *out = fopen("/dev/null", "we");

	fuzz_check(out && dup2(fd, INPUT_FD) == INPUT_FD);
	close(fd);
	validate_files(paths, 1, "step_prof,window_prof", out, out);
	fclose(out);
}

/* A stream must give the same as memory. */
static void check_reader(const char *text, size_t size, int err)
{
	struct json_reader reader = {.in = fmemopen((void *)text, size, "r")};
	struct json_object *value = NULL;
	char error[ERROR_SIZE];

	fuzz_check(reader.in);
	fuzz_check(json_reader__whole(&reader, &value, error, sizeof(error)) == err);
	json_object_put(value);
	fclose(reader.in);
}

static char *write_value(struct json_object *value, size_t *size)
{
	char *text = NULL;
	struct json json = {.out = open_memstream(&text, size)};

	fuzz_check(json.out);
	json_write_value(&json, NULL, value);
	fuzz_check(!fclose(json.out));
	return text;
}

/* A value that is written must be read back unchanged. */
static void check_again(struct json_object *value)
{
	char *first, *second, error[ERROR_SIZE];
	size_t first_size, second_size;
	struct json_object *again;

	first = write_value(value, &first_size);
	fuzz_check(!json_read(first, first_size, &again, error, sizeof(error)));
	second = write_value(again, &second_size);
	fuzz_check(first_size == second_size && !memcmp(first, second, first_size));
	json_object_put(again);
	free(first);
	free(second);
}

static void check_text(const char *text, size_t size)
{
	char error[ERROR_SIZE], hash[ENV_HASH_SIZE];
	struct json_object *value = NULL;
	int err;

	err = json_read(text, size, &value, error, sizeof(error));
	fuzz_check(!err || err == -EBADMSG);
	check_reader(text, size, err);
	if (!err)
		check_again(value);
	json_object_put(value);
	env_document_hash_text(hash, text, size, error, sizeof(error));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	check_file(data, size);
	check_text(text, size);
	free(text);
	return 0;
}
