/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The result of diff as one HTML file: its JSON and the script user/diff/page.js in a page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff/write.h"
#include "html/page.h"

#include "diff_page.h"

/* The last part of a path. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int write_data(const struct result *result, char **data, size_t *size)
{
	struct json json = {.shown = true};
	int err;

	json.out = open_memstream(data, size);
	if (!json.out)
		return -ENOMEM;
	result_write_json(result, &json, true);
	err = ferror(json.out) ? -ENOMEM : 0;
	return fclose(json.out) ? -ENOMEM : err;
}

int result_write_page(const struct result *result, FILE *out)
{
	const struct page_script script = {diff_js, sizeof(diff_js)};
	char *data = NULL, *title = NULL;
	size_t size = 0;
	int err = write_data(result, &data, &size);

	if (!err &&
	    asprintf(&title, "%s and %s - ferrum-bpftrace diff", base_name(result->sides[0]->path),
		     base_name(result->sides[1]->path)) < 0) {
		title = NULL;
		err = -ENOMEM;
	}
	if (!err)
		err = page_write(out, title, &script, data, size);
	free(title);
	free(data);
	if (!err && fflush(out))
		err = errno ? -errno : -EIO;
	return err ? err : ferror(out) ? -EIO : 0;
}
