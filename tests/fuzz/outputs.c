/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The input is a file that this program has written and reads again: a profile that is replayed; a
 * recording or a profile that is compared with itself; a trace, in any format, that is merged.
 */
#include <errno.h>
#include "base/json_read.h"
#include "diff/read.h"
#include "diff/result.h"
#include "diff/write.h"
#include "merge/source.h"
#include "replayed.h"

#define ERROR_SIZE 512

static void check_result(const struct result *result)
{
	struct json_object *value = NULL;
	char *text = NULL, error[ERROR_SIZE];
	size_t size;
	struct json json = {.out = open_memstream(&text, &size)};
	FILE *out = fopen("/dev/null", "we");

	fuzz_check(json.out && out);
	result_write_json(result, &json, true);
	fuzz_check(!fclose(json.out));
	fuzz_check(!json_read(text, size, &value, error, sizeof(error)));
	json_object_put(value);
	free(text);
	result_write_text(result, out, false);
	fuzz_check(!result_write_page(result, out));
	fclose(out);
}

static void compare(void)
{
	static const struct diff_options wanted = {.margin = 0.05, .threshold = 0.05};
	struct side *side = side__new(CAPTURE_PATH);
	struct result *result = NULL;

	fuzz_check(side);
	if (!side_read(side, &replay_options.judging)) {
		const struct side *const sides[SIDES] = {side, side};

		fuzz_check(!result__new(&result, sides, &wanted));
		check_result(result);
	}
	result__free(result);
	side__free(side);
}

/* Times must fit into sums. */
static int take_event(void *ctx, const struct source_event *event)
{
	int64_t end_ns;

	(void)ctx;
	fuzz_check(event->name && event->cat && event->whole);
	fuzz_check(event->has_time || !event->ts_ns);
	fuzz_check(!__builtin_add_overflow(event->ts_ns, event->dur_ns, &end_ns));
	return 0;
}

static void merge(void)
{
	const struct source_taker taker = {take_event, NULL};
	char error[SOURCE_ERROR];
	struct source_facts facts;
	int err = source_read(CAPTURE_PATH, &taker, &facts, error);

	fuzz_check(!err || err == -EBADMSG);
	fuzz_check(!err || *error);
	fuzz_check(facts.base_ns <= SOURCE_BASE_MAX);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	replay_set_up();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && *data == '{')
		replay_bytes(data, size, size & 1);
	else
		replay_file(CAPTURE_FD, data, size);
	compare();
	merge();
	return 0;
}
