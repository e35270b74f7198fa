/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The parts of the report, and what they share. Internal to report/; report.h is the door. */
#ifndef FBT_REPORT_PART_H
#define FBT_REPORT_PART_H

#include <stdbool.h>
#include <stdio.h>
#include "base/json.h"
#include "judge/classify.h"
#include "model/window.h"
#include "tally/tally.h"

struct report {
	FILE *out;
	bool color;
	bool verbose;
	size_t width;		  /* columns of lines of prose, REPORT_WIDTH at most */
	const char *const *files; /* NULL-terminated, or NULL */
	const struct window *window;
	const struct tally *tally;
	const struct classifier *classifier;
};

#define REPORT_WIDTH 80
#define LABEL_WIDTH  16 /* of "Target         42 llama-server" */

enum report_style {
	STYLE_BOLD,
	STYLE_WARN,
	STYLE_DIM, /* the heading of a table */
};

/* What to do about a ring of records that was full because the tool had no CPU. */
#define REMEDY_PRIORITY "nice -n-10 lets the tool read them sooner"

/*
 * Writes a line in a style, and the newline. Prose is wrapped at spaces, as by report_field; the
 * lines that continue it are indented by two more columns. The heading of a table is not wrapped.
 */
void report_line(const struct report *report, enum report_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * "LABEL    text", wrapped at spaces to the width; a number stays with the word after it. A long
 * word makes a line of its own, up to 20 columns wider, and is then broken at "::" and "/". "": a
 * line without label.
 */
void report_field(const struct report *report, const char *label, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The files that were written. */
void report_files(const struct report *report);

/* Steps that hang or hung, and what all threads of the process were in. */
void report_hangs(const struct report *report);

/* Reasons to doubt the figures. */
void report_warnings(const struct report *report);

/* How long count steps, or what they are, took, as a table of one row. */
void report_durations(const struct report *report, const char *what, uint64_t count,
		      const struct stats *duration);

/* Steps of one kind: percentiles, categories, gap, other threads, arguments, slowest steps. */
void report_kind(const struct report *report, int kind);

/*
 * The label of a part's row. STEP_OWN is "compute" where the parts are not known: it then contains
 * them.
 */
const char *report_part(const struct tally_kind *kind, enum step_part part);

/* The same as words of a sentence: "waiting for a CPU". */
const char *report_part_words(const struct tally_kind *kind, enum step_part part);

/* Where the time of a kind's steps went, as shares of it: "61 % own code, 29 % futex". */
void report_shares(const struct tally_kind *kind, char *to, size_t size);

/*
 * report_times: the same as a table. report_tail: what the slowest steps spent their time on, if
 * they differ from the others.
 */
void report_times(const struct report *report, int kind);
void report_tail(const struct report *report, int kind);

/* The numbers of a class: ns of work, or values of the argument. */
void report_class_span(const struct step_class *class, uint64_t *from, uint64_t *to);

/*
 * Writes what is worth a look, a line each, most time at stake first: parts of the steps that
 * should not be there, or are large in every step; threads that waited for a CPU; and what
 * escalated steps waited for above the usual. The time of the last is not counted in the first.
 */
void report_findings(const struct report *report);
void report_json_findings(struct json *json, const struct report *report);

/* Syscall tables of the processes, and tables of their threads if verbose. */
void report_processes(const struct report *report);
void report_threads(const struct report *report, const struct process *process);

/* What tracing added to the targets, and what the tool used itself. */
void report_cost(const struct report *report);
void report_json_cost(struct json *json, const struct report *report);

/* What --explain has found out about the steps with one cause; and what that has cost. */
void report_explained(const struct report *report, const struct explained_tally *tally);
void report_json_explained(struct json *json, const struct explained_tally *tally);
void report_explain_cost(const struct report *report);
void report_json_explain_cost(struct json *json, const struct window *window);

/* The member "page_faults" of an escalation: where they were; nothing if that was not counted. */
void report_json_faults(struct json *json, const struct window *window,
			const struct fbt_fault_sites *sites);

/* The member "sender" of a stop: whose signal it was; nothing if that is not known. */
void report_json_sender(struct json *json, const struct fbt_stop_sender *sender);

/* The member "peer" of an escalation: nothing if its cause is no wait for another process. */
void report_json_peer(struct json *json, const struct window *window, const struct step_peer *peer,
		      uint64_t wait_ns);

/* The ioctls of the GPU driver in steps. Nothing if there were none. */
void report_driver(const struct report *report);
void report_json_driver(struct json *json, const struct report *report);

/* The name of a thread, "?" if it is not known. */
const char *report_thread_name(const struct report *report, const struct fbt_thread_use *use);

/* What the GPU did in steps: its sentence, and the figures of a kind. Nothing without records. */
void report_gpu_headline(const struct report *report);
void report_gpu_kind(const struct report *report, int kind);

/* What of Python is measured in which process; in JSON, of one, and the figures of a kind. */
void report_python(const struct report *report);
/* Whether the step was open when the window ended: it was not cut off by sampling. */
bool report_was_open(const struct report *report, const struct tally_step *step);
/* A process that --python=inject is advised for; 0: there is none. */
uint32_t report_offered_python(const struct window *window);
void report_json_python(struct json *json, const struct window *window,
			const struct process *process);
void report_json_stalls(struct json *json, const struct tally_kind *kind);

/* Iterations of Python engines, and their late ranks; in JSON, nothing if there are none. */
void report_ranks(const struct report *report);
void report_json_ranks(struct json *json, const struct report *report);

/*
 * report_gpu_warnings: reasons to doubt GPU figures. report_gpu_about: where they come from, or why
 * there are none.
 */
void report_gpu_warnings(const struct report *report);
void report_gpu_about(const struct report *report);

/*
 * The whole report: text, most important first, prose at most REPORT_WIDTH columns wide; or one
 * JSON object, a superset of the text's figures, in ns. Errors show in ferror(report->out).
 */
void report_text_write(const struct report *report);
void report_json_write(const struct report *report);

#endif
