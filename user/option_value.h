/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reads the values of options. Each function returns 0; -EINVAL after one line that names the
 * option and says what is expected; or -ENOMEM. option is a name without its dashes.
 */
#ifndef FBT_OPTION_VALUE_H
#define FBT_OPTION_VALUE_H

#include <stdbool.h>
#include <stdint.h>
#include "proc/process.h"

/* Logs "--OPTION: invalid value 'TEXT' (expected WANTED)" and returns -EINVAL. */
int option_refuse(const char *option, const char *text, const char *wanted);

/* A number in decimal digits only, from 0 to max. Logs nothing. */
int option_number(const char *text, uint64_t max, uint64_t *value);

/* A number in decimal digits only, from min to max. */
int option_count(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* A decimal number from 0 to max. */
int option_percent(const char *option, const char *text, double max, double *value);

/* max_ns of a time that has no limit. */
#define OPTION_TIME_MAX 1000000000000000000ull

/*
 * A time: a decimal number with a unit (us, ms, s, m, h), or in unit_ns without one; from min_ns to
 * max_ns.
 */
int option_time(const char *option, const char *text, uint64_t unit_ns, uint64_t min_ns,
		uint64_t max_ns, uint64_t *ns);

/* A size: a number of bytes, or of KiB, MiB, GiB or TiB if K, M, G or T follows. */
int option_bytes(const char *option, const char *text, uint64_t *bytes);

/* PID[,PID...]; appended to pids. */
int option_pids(const char *option, const char *text, pid_vec *pids);

/* The index of text in words. words ends with NULL. */
int option_word(const char *option, const char *text, const char *const *words, uint32_t *value);

#endif
