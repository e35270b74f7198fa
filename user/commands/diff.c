/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "diff/read.h"
#include "diff/result.h"
#include "diff/write.h"
#include "output/file.h"

static int read_side(struct side **side, const char *path, const struct options *options)
{
	*side = side__new(path);
	if (!*side)
		return -ENOMEM;
	(*side)->class_by = options->judging.classify.class_by;
	return side_read(*side, &options->judging);
}

static int print_result(const struct result *result, const struct options *options, FILE *out)
{
	struct json json = {.out = out, .shown = true};
	int err;

	if (options->report == REPORT_JSON) {
		result_write_json(result, &json, false);
		fputc('\n', out);
	} else if (options->report == REPORT_TEXT) {
		result_write_text(result, out, isatty(fileno(out)) && !getenv("NO_COLOR"));
	}
	if (!fflush(out) && !ferror(out))
		return 0;
	err = errno ? -errno : -EIO;
	log_err("standard output: %s", strerror(-err));
	return err;
}

static int write_page(const struct result *result, struct output *page, const char *path)
{
	int err = result_write_page(result, output__file(page));

	if (err) {
		log_err("%s: %s", path, strerror(-err));
		return err;
	}
	return output__commit(page);
}

/* A regression is one whatever else cannot be compared. */
static int settle(const struct result *result, bool *has_regression)
{
	*has_regression = result->has_regression;
	if (result->has_regression || result->is_comparable)
		return 0;
	log_err("could not compare: %s",
		result->moved.count
			? "steps of a function are only in A, others only in B, and what they had "
			  "to do is not known: trace both with --step-arg"
			: "too few steps, or no steps of the same work: trace both for longer, "
			  "under the same load");
	return -ENODATA;
}

int diff(const struct options *options, FILE *out, bool *has_regression)
{
	const struct diff_options wanted = {
		.margin = options->diff.margin_percent / 100,
		.threshold = options->diff.threshold_percent / 100,
	};
	struct side *sides[SIDES] = {NULL};
	struct result *result = NULL;
	struct output *page = NULL;
	int err = 0;

	/* Before minutes are spent on files. */
	if (options->html)
		err = output__create(&page, options->html);
	for (int i = 0; i < SIDES && !err; i++)
		err = read_side(&sides[i], options->files[i], options);
	if (!err)
		err = result__new(&result, (const struct side *const *)sides, &wanted);
	if (!err)
		err = print_result(result, options, out);
	if (!err && page)
		err = write_page(result, page, options->html);
	if (!err)
		err = settle(result, has_regression);
	output__free(page);
	result__free(result);
	for (int i = 0; i < SIDES; i++)
		side__free(sides[i]);
	return err;
}
