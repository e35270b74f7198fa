/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Figures and names as the report and the status line show them: ASCII units, 3 digits. Pure. */
#ifndef FBT_REPORT_FORMAT_H
#define FBT_REPORT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define FORMAT_MAX 24

/* Each writes to buffer and returns it. */
const char *format_time(char buffer[FORMAT_MAX], double ns); /* "78 ns", "7.90 ms", "10.0 s" */
const char *format_count(char buffer[FORMAT_MAX], uint64_t count);   /* "1,204", "12.3 M" */
const char *format_bytes(char buffer[FORMAT_MAX], uint64_t bytes);   /* "23.0 MiB" */
const char *format_percent(char buffer[FORMAT_MAX], double percent); /* "11.2 %", "<0.1 %" */
const char *format_number(char buffer[FORMAT_MAX], double value); /* 3 digits, whole from 100 on */

/* part of whole, in percent; 0 if whole is 0. */
double percent_of(double part, double whole);

/*
 * Escaped copy of text in at most columns characters (at least 8): what is too long loses its
 * middle, shown as "...". size bytes at to.
 */
const char *shorten_text(char *to, size_t size, const char *text, size_t columns);

/*
 * Name of a function in at most columns characters. A long one becomes its last part without
 * closures: "<a::B as c::D>::decode::{{closure}}" is "decode"; then as shorten_text.
 */
const char *shorten_name(char *to, size_t size, const char *name, size_t columns);

#endif
