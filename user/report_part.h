/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The parts that report_text.c puts in order, and what they share. */
#ifndef FBT_REPORT_PART_H
#define FBT_REPORT_PART_H

#include <stdbool.h>
#include <stdio.h>
#include "classify.h"
#include "tally.h"
#include "window.h"

struct report {
	FILE *out;
	bool color;
	size_t width;		  /* columns of lines of text, REPORT_WIDTH at most */
	const char *const *files; /* NULL-terminated, or NULL */
	const struct window *window;
	const struct tally *tally;
	const struct classifier *classifier;
};

#define REPORT_WIDTH 100
#define LABEL_WIDTH  16 /* of "Target         42 llama-server" */

enum report_style { STYLE_BOLD, STYLE_WARN, STYLE_DIM };

/* A whole line in a style; the newline is added. */
void report_line(const struct report *report, enum report_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "LABEL    text", wrapped at spaces, "::" and "/" within the width. Empty label: continuation. */
void report_field(const struct report *report, const char *label, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The one sentence, and what makes the figures doubtful. */
void report_headline(const struct report *report);
void report_warnings(const struct report *report);

/* Steps of one kind: percentiles, categories, gap, other threads, arguments, slowest steps. */
void report_kind(const struct report *report, int kind);

/* Syscall tables of the processes. */
void report_processes(const struct report *report);

/* Target, step functions, lost records, cost, resolution, notes, files. */
void report_about(const struct report *report);

/* What the GPU did in steps: the one sentence, and the figures of a kind. Nothing without records.
 */
void report_gpu_headline(const struct report *report);
void report_gpu_kind(const struct report *report, int kind);

/* What makes GPU figures doubtful; where they come from, or why there are none. */
void report_gpu_warnings(const struct report *report);
void report_gpu_about(const struct report *report);

/* How many steps were found wrong, and the most expensive causes. */
void report_escalations(const struct report *report);

#endif
