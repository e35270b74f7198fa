/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "option_value.h"

int option_bad_value(const char *option, const char *value, const char *wanted)
{
	log_err("%s %s: not %s", option, value, wanted);
	return EINVAL;
}

int option_parse_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	/* strtoull skips spaces and takes signs. */
	if (errno || !isdigit((unsigned char)*text) || *end || *value > max)
		return -EINVAL;
	return 0;
}

int option_parse_range(const char *option, const char *text, uint64_t min, uint64_t max,
		       uint64_t *value)
{
	char wanted[96];

	if (!option_parse_number(text, max, value) && *value >= min)
		return 0;
	if (max == UINT64_MAX)
		snprintf(wanted, sizeof(wanted), "a whole number, %llu or more",
			 (unsigned long long)min);
	else
		snprintf(wanted, sizeof(wanted), "a whole number from %llu to %llu",
			 (unsigned long long)min, (unsigned long long)max);
	return option_bad_value(option, text, wanted);
}

int option_parse_percent(const char *option, const char *text, double max, double *value)
{
	char wanted[96], *end;

	*value = strtod(text, &end);
	if (end != text && !*end && *value >= 0 && *value <= max)
		return 0;
	snprintf(wanted, sizeof(wanted), "a number of percent from 0 to %g", max);
	return option_bad_value(option, text, wanted);
}

int option_parse_pids(pid_vec *pids, const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	int err = copy ? 0 : ENOMEM;

	while (!err && (word = strsep(&rest, ","))) {
		uint64_t pid;

		if (option_parse_number(word, INT32_MAX, &pid) || !pid)
			err = option_bad_value("--pid", text,
					       "a list of process ids (123 or 123,456)");
		else
			err = -vec_push(pids, (uint32_t)pid);
	}
	free(copy);
	return err;
}

int option_parse_bytes(const char *option, const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *unit = NULL;
	char *end;

	errno = 0;
	*bytes = strtoull(text, &end, 10);
	if (!errno && isdigit((unsigned char)*text) && *end)
		unit = strchr(units, toupper((unsigned char)*end));
	if (unit && !end[1] &&
	    !__builtin_mul_overflow(*bytes, 1024ull << 10 * (unit - units), bytes))
		return 0;
	if (!errno && isdigit((unsigned char)*text) && !*end)
		return 0;
	return option_bad_value(option, text,
				"a number of bytes, or one of K, M, G or T (500M, 2G; 0: none)");
}

int option_parse_duration(const char *option, const char *text, double unit_ns, uint64_t *ns)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value <= 0 || value > 1e9 ||
	    value * unit_ns < 1e6)
		return option_bad_value(option, text,
					unit_ns > 1e6 ? "a number of seconds, 0.001 or more"
						      : "a number of milliseconds, 1 or more");
	*ns = (uint64_t)(value * unit_ns);
	return 0;
}

int option_parse_word(const char *option, const char *text, const char *const *words,
		      const char *wanted, int *value)
{
	for (*value = 0; words[*value]; (*value)++) {
		if (!strcmp(text, words[*value]))
			return 0;
	}
	return option_bad_value(option, text, wanted);
}

bool option_is_json_path(const char *path)
{
	return !path || !strcmp(path, "none") || !fnmatch("*.json", path, 0);
}

int option_parse_ring_records(uint32_t *value, const char *text)
{
	uint64_t records;

	if (option_parse_number(text, 1u << 22, &records) || records < 512)
		return option_bad_value("--ring-records", text, "a number from 512 to 4194304");
	*value = (uint32_t)records;
	return 0;
}
