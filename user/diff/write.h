/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The result as text, JSON and a page. Errors show in ferror(out). */
#ifndef FBT_DIFF_WRITE_H
#define FBT_DIFF_WRITE_H

#include <stdbool.h>
#include <stdio.h>
#include "base/json.h"
#include "diff/result.h"

void result_write_text(const struct result *result, FILE *out, bool color);

/* One object, without a newline. with_curves: and the distributions, which a page draws. */
void result_write_json(const struct result *result, struct json *json, bool with_curves);

/* One file that asks no server for anything. 0, -ENOMEM, or -errno of the writing. */
int result_write_page(const struct result *result, FILE *out);

/* The first lines of all three: what has become worse, or that nothing has. To be freed. */
char *result_headline(const struct result *result);

/* "own code" of a part; NULL: there is no such part. */
const char *diff_part_words(enum step_part part, bool calls_known);

#endif
