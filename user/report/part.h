/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Inside of report/: the parts of the report and what they share. report.h is the door. */
#ifndef FBT_REPORT_PART_H
#define FBT_REPORT_PART_H

#include <stdbool.h>
#include <stdio.h>
#include "judge/classify.h"
#include "model/window.h"
#include "report/tally.h"

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

/* "LABEL    text", wrapped at spaces, "::" and "/" to the width. "": a line without label. */
void report_field(const struct report *report, const char *label, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Steps of one kind: percentiles, categories, gap, other threads, arguments, slowest steps. */
void report_kind(const struct report *report, int kind);

/* Syscall tables of the processes. */
void report_processes(const struct report *report);

/* What the GPU did in steps: its sentence, and the figures of a kind. Nothing without records. */
void report_gpu_headline(const struct report *report);
void report_gpu_kind(const struct report *report, int kind);

/* Reasons to doubt GPU figures; where they come from, or why there are none. */
void report_gpu_warnings(const struct report *report);
void report_gpu_about(const struct report *report);

/*
 * The whole report: text, most important first, at most REPORT_WIDTH columns; or one JSON object, a
 * superset of the text's figures, in ns. Errors show in ferror(report->out).
 */
void report_text_write(const struct report *report);
void report_json_write(const struct report *report);

#endif
