/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Values of options from their texts. 0, or EINVAL (positive, as argp wants it) with one line
 * logged that names the option, or ENOMEM.
 */
#ifndef FBT_OPTION_VALUE_H
#define FBT_OPTION_VALUE_H

#include <stdbool.h>
#include <stdint.h>
#include "vec.h"

typedef VEC(uint32_t) pid_vec;

/* Logs "OPTION VALUE: not WANTED" and returns EINVAL. */
int option_bad_value(const char *option, const char *value, const char *wanted);

/* Decimal digits only, 0 … max. 0, or -EINVAL without a message. */
int option_parse_number(const char *text, uint64_t max, uint64_t *value);

/* The same from min to max, with a message. */
int option_parse_range(const char *option, const char *text, uint64_t min, uint64_t max,
		       uint64_t *value);

/* A decimal number from 0 to max. */
int option_parse_percent(const char *option, const char *text, double max, double *value);

/* PID[,PID…], appended. */
int option_parse_pids(pid_vec *pids, const char *text);

/* A number of bytes, or of KiB, MiB, GiB or TiB with K, M, G or T behind it. */
int option_parse_bytes(const char *option, const char *text, uint64_t *bytes);

/* A decimal number of units, at least a millisecond in all. */
int option_parse_duration(const char *option, const char *text, double unit_ns, uint64_t *ns);

/* Index of text in the NULL-terminated words; wanted names them for the message. */
int option_parse_word(const char *option, const char *text, const char *const *words,
		      const char *wanted, int *value);

/* Whether a file of that name ends in ".json". NULL (the default name) and "none" pass. */
bool option_is_json_path(const char *path);

int option_parse_ring_records(uint32_t *value, const char *text);

#endif
