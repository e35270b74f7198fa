/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A window with one process and one step function, and a report sink that writes to memory. */
#ifndef FBT_REPORT_FIXTURE_H
#define FBT_REPORT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "escalation_fixture.h"
#include "report/report.h"

#define START_NS UINT64_C(1000000000000)
#define MS	 UINT64_C(1000000)

struct fixture {
	struct window *window;
	struct classifier *classifier;
	struct sink *sink;
	FILE *out;
	char *text;
	size_t length;
};

static inline void add_kind(struct fixture *fixture, uint32_t number, const char *name,
			    const char *path)
{
	const char *args[] = {"n_tokens"};
	struct fbt_kind kind = {
		.kind = number, .address = 0x8a2f0, .builtin = 1, .exits = 3, .arg_count = 1};

	assert_int_equal(window__add_kind(fixture->window, &kind, name, path, args), 0);
}

static inline void add_process(struct fixture *fixture, uint32_t tgid, const char *comm)
{
	struct fbt_target target = {.tgid = tgid, .start_ns = START_NS};

	assert_int_equal(
		window__add_process(fixture->window, &target, comm, "/bin/engine", "engine -m x"),
		0);
}

static inline void add_row(struct fixture *fixture, uint32_t tgid, uint32_t nr, uint64_t calls,
			   uint64_t ns)
{
	struct process *process = window__touch_process(fixture->window, tgid);
	struct fbt_table row = {
		.tgid = tgid, .nr = nr, .sum = {.ns = ns, .calls = calls, .max_ns = ns}};

	assert_non_null(process);
	assert_int_equal(row_table_set(&process->table, &row), 0);
}

static inline struct fixture *new_fixture(enum report_format format)
{
	const char *strings[WINDOW_STRINGS] = {"pid42_1700000000000", "0.1.0", "6.1.0", "host"};
	struct fbt_window record = {.start_ns = START_NS, .arch = FBT_ARCH_X86_64, .detail = 1};
	struct report_options options = {.format = format};
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	fixture->classifier = make_classifier();
	assert_int_equal(window__open(fixture->window, &record, strings), 0);
	fixture->window->end_ns = START_NS + 10000 * MS;
	add_process(fixture, 42, "engine");
	add_kind(fixture, 1, "llama_decode", "/opt/libllama.so");
	fixture->out = open_memstream(&fixture->text, &fixture->length);
	assert_non_null(fixture->out);
	fixture->sink = sink_report__new(fixture->out, &options);
	assert_non_null(fixture->sink);
	return fixture;
}

static inline void free_fixture(struct fixture *fixture)
{
	fixture->sink->free(fixture->sink);
	fclose(fixture->out);
	free(fixture->text);
	window__free(fixture->window);
	classifier__free(fixture->classifier);
	free(fixture);
}

/* A step of length_ns on thread 43, a quarter of it in 2 futex calls. */
static inline struct step make_step(struct fixture *fixture, uint64_t length_ns)
{
	struct step step = {.number = ++fixture->window->steps, .complete = true};
	struct fbt_step *record = &step.record;

	record->tgid = 42;
	record->tid = 43;
	record->kind = 1;
	record->start_ns = START_NS + step.number * 10 * MS;
	record->end_ns = record->start_ns + length_ns;
	record->thread_ns = length_ns;
	record->gap_ns = MS;
	record->gap_syscall_ns = MS / 2;
	record->other_syscall_ns = 3 * MS;
	record->sums[FBT_FUTEX] = (struct fbt_sum){length_ns / 4, 2, 1, length_ns / 8};
	return step;
}

static inline void write_step(struct fixture *fixture, const struct step *step)
{
	assert_int_equal(fixture->sink->write_step(fixture->sink, fixture->window, step), 0);
}

static inline void add_steps(struct fixture *fixture, int count, uint64_t length_ns)
{
	for (int i = 0; i < count; i++) {
		struct step step = make_step(fixture, length_ns);

		write_step(fixture, &step);
	}
}

static inline const char *finish(struct fixture *fixture)
{
	assert_int_equal(fixture->sink->finish(fixture->sink, fixture->window, fixture->classifier),
			 0);
	return fixture->text;
}

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* Whether text begins with prose, wherever the text is wrapped. */
static inline bool begins_with_prose(const char *text, const char *prose)
{
	for (; *prose; prose++) {
		if (*prose == ' ' && *text == '\n')
			text += 1 + strspn(text + 1, " ");
		else if (*text++ != *prose)
			return false;
	}
	return true;
}

static inline void assert_says(const char *text, const char *prose)
{
	for (const char *at = text; *at; at++)
		if (begins_with_prose(at, prose))
			return;
	fail_msg("\"%s\" is not said in:\n%s", prose, text);
}

static inline void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text);
}

#endif
