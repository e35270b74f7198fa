/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"

int option_refuse(const char *option, const char *text, const char *wanted)
{
	log_err("--%s: invalid value '%s' (expected %s)", option, text, wanted);
	return -EINVAL;
}

int option_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	/* strtoull skips spaces and takes signs. */
	if (errno || !isdigit((unsigned char)*text) || *end || *value > max)
		return -EINVAL;
	return 0;
}

int option_count(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char wanted[96];

	if (!option_number(text, max, value) && *value >= min)
		return 0;
	if (max >= UINT64_MAX - 1)
		snprintf(wanted, sizeof(wanted), "a whole number, %llu or more",
			 (unsigned long long)min);
	else
		snprintf(wanted, sizeof(wanted), "a whole number from %llu to %llu",
			 (unsigned long long)min, (unsigned long long)max);
	return option_refuse(option, text, wanted);
}

/* strtod(3) also takes spaces, signs, hexadecimal numbers and exponents: 1e9 is rarely meant. */
static const char *parse_decimal(const char *text, double *value)
{
	size_t whole = strspn(text, "0123456789"), length = whole;

	if (text[whole] == '.')
		length += 1 + strspn(text + whole + 1, "0123456789");
	/* A point alone is no number. */
	if (!length || (!whole && length == 1))
		return NULL;
	*value = strtod(text, NULL);
	return text + length;
}

int option_percent(const char *option, const char *text, double max, double *value)
{
	double found = 0;
	const char *end = parse_decimal(text, &found);
	char wanted[96];

	if (end && !*end && found <= max) {
		*value = found;
		return 0;
	}
	snprintf(wanted, sizeof(wanted), "a percentage from 0 to %g", max);
	return option_refuse(option, text, wanted);
}

static const struct unit {
	const char *suffix;
	const char *name;
	uint64_t ns;
} units[] = {
	{"us", "microseconds", NS_PER_US}, {"ms", "milliseconds", NS_PER_MS},
	{"s", "seconds", NS_PER_S},	   {"m", "minutes", 60 * NS_PER_S},
	{"h", "hours", 3600 * NS_PER_S},
};

int option_time(const char *option, const char *text, uint64_t unit_ns, uint64_t min_ns,
		uint64_t max_ns, uint64_t *ns)
{
	double value = 0, found_ns;
	const char *end = parse_decimal(text, &value), *name = "";
	char wanted[160];

	found_ns = end && !*end ? (double)unit_ns : 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (end && !strcmp(end, units[i].suffix))
			found_ns = (double)units[i].ns;
		if (units[i].ns == unit_ns)
			name = units[i].name;
	}
	value *= found_ns;
	if (found_ns > 0 && value >= (double)min_ns && value <= (double)max_ns) {
		*ns = (uint64_t)value;
		return 0;
	}
	snprintf(wanted, sizeof(wanted), "%s, or a time such as 500ms, 10s or 5m; %s%s%s%s", name,
		 max_ns == OPTION_TIME_MAX ? "at least " : "from ", FORMAT_TIME(min_ns),
		 max_ns == OPTION_TIME_MAX ? "" : " to ",
		 max_ns == OPTION_TIME_MAX ? "" : FORMAT_TIME(max_ns));
	return option_refuse(option, text, wanted);
}

int option_bytes(const char *option, const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	char *end;

	errno = 0;
	*bytes = strtoull(text, &end, 10);
	if (!errno && isdigit((unsigned char)*text)) {
		if (!*end)
			return 0;
		suffix = strchr(suffixes, toupper((unsigned char)*end));
		if (suffix && !end[1] &&
		    !__builtin_mul_overflow(*bytes, 1024ull << 10 * (suffix - suffixes), bytes))
			return 0;
	}
	return option_refuse(option, text, "bytes, or a size such as 500M or 2G; 0: no limit");
}

int option_pids(const char *option, const char *text, pid_vec *pids)
{
	char *copy, *rest, *word;
	int err = 0;

	/*
	 * -p $(pgrep ...) becomes -p with no value, or with the next option, if no process was
	 * found.
	 */
	if (!*text || (*text == '-' && !isdigit((unsigned char)text[1]))) {
		log_err("--%s: %s%s%s: did $(pgrep ...) find no process?", option, *text ? "'" : "",
			*text ? text : "no process ID", *text ? "' is not a process ID" : "");
		return -EINVAL;
	}
	copy = rest = strdup(text);
	if (!copy)
		return -ENOMEM;
	while (!err && (word = strsep(&rest, ","))) {
		uint64_t pid;

		if (option_number(word, INT32_MAX, &pid) || !pid)
			err = option_refuse(option, text, "process IDs such as 123 or 123,456");
		else
			err = vec_push(pids, (uint32_t)pid);
	}
	free(copy);
	return err;
}

int option_word(const char *option, const char *text, const char *const *words, uint32_t *value)
{
	char wanted[128] = "";
	size_t used = 0;

	for (*value = 0; words[*value]; (*value)++) {
		if (!strcmp(text, words[*value]))
			return 0;
		used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s%s",
					 !*value	     ? ""
					 : words[*value + 1] ? ", "
							     : " or ",
					 words[*value]);
	}
	return option_refuse(option, text, wanted);
}
