/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The embedded engine's own account of what it did, as one JSON object. */
#ifndef FBT_TESTS_ENGINE_TRUTH_H
#define FBT_TESTS_ENGINE_TRUTH_H

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "engine_calls.h"

__attribute__((format(printf, 2, 3))) static inline void emit(struct engine *e, const char *format,
							      ...)
{
	va_list args;

	va_start(args, format);
	e->text_len +=
		(size_t)vsnprintf(e->text + e->text_len, TEXT_BYTES - e->text_len, format, args);
	va_end(args);
}

static inline void emit_categories(struct engine *e, const char *key, const uint64_t *calls,
				   const uint64_t *errors)
{
	emit(e, "\"%s\":{", key);
	for (int i = 0; i < CATS; i++)
		emit(e, "%s\"%s\":{\"calls\":%" PRIu64 ",\"errors\":%" PRIu64 "}", i ? "," : "",
		     cat_names[i], calls[i], errors[i]);
	emit(e, "},\n");
}

static inline void emit_names(struct engine *e, const char *key, const uint64_t *counts)
{
	const char *comma = "";

	emit(e, "\"%s\":{", key);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (counts[known[i].nr] == 0)
			continue;
		emit(e, "%s\"%s\":%" PRIu64, comma, known[i].name, counts[known[i].nr]);
		comma = ",";
	}
	emit(e, "},\n");
}

static inline void emit_threads(struct engine *e)
{
	emit(e, "\"threads\":[");
	for (int i = 0; i < e->n_workers; i++) {
		struct worker *w = &e->workers[i];
		uint64_t shown = w->steps < MAX_SPANS ? w->steps : MAX_SPANS;

		emit(e, "%s\n{\"tid\":%d,\"role\":\"%s\",\"steps\":%" PRIu64 ",\"spans_ns\":[",
		     i ? "," : "", w->tid, w->role, w->steps);
		for (uint64_t s = 0; s < shown; s++)
			emit(e, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", s ? "," : "",
			     w->spans[s][0], w->spans[s][1], w->spans[s][2]);
		emit(e, "],\"taken_ns\":[");
		for (uint64_t s = 0; s < shown; s++)
			emit(e, "%s%" PRIu64, s ? "," : "", w->spans[s][3]);
		emit(e, "],\"delay_ns\":[");
		for (uint64_t s = 0; s < shown; s++)
			emit(e, "%s%" PRIu64, s ? "," : "", w->spans[s][4]);
		emit(e, "],\"cpu_ns\":[");
		for (uint64_t s = 0; s < shown; s++)
			emit(e, "%s%" PRIu64, s ? "," : "", w->spans[s][5]);
		emit(e, "],\"troubled\":[");
		for (uint64_t s = 1; s <= w->troubled; s++)
			emit(e, "%s%" PRIu64, s > 1 ? "," : "",
			     s * (uint64_t)e->config.trouble_every);
		emit(e, "]}");
	}
	emit(e, "]}\n");
}

/*
 * The calls of a whole step, and of one that panics. A slow step makes one more futex call, which
 * fails.
 */
static inline void emit_step_shape(struct engine *e)
{
	const struct config *c = &e->config;
	uint64_t calls[2][CATS] = {0}, errors[2][CATS] = {0};
	uint64_t levels = e->late_step ? 1 : (uint64_t)c->recurse + 1;

	for (int i = 0; i < CATS; i++) {
		calls[0][i] = levels * (uint64_t)c->calls[i];
		errors[0][i] = levels * (uint64_t)c->errors[i];
		if (i < CAT_READ) {
			calls[1][i] = calls[0][i];
			errors[1][i] = errors[0][i];
		}
	}
	emit_categories(e, "per_step", calls[0], errors[0]);
	emit_categories(e, "per_panicked_step", calls[1], errors[1]);
}

static inline void sum_workers(const struct engine *e, struct worker *sum)
{
	for (int i = 0; i < e->n_workers; i++) {
		const struct worker *w = &e->workers[i];

		for (int nr = 0; nr < MAX_NR; nr++) {
			sum->calls[nr] += w->calls[nr];
			sum->errors[nr] += w->errors[nr];
		}
		for (int cat = 0; cat < CATS; cat++) {
			sum->step_calls[cat] += w->step_calls[cat];
			sum->step_errors[cat] += w->step_errors[cat];
		}
		sum->steps += w->steps;
		sum->panics += w->panics;
		sum->slow += w->slow;
		sum->children += w->children;
		sum->n_tokens += w->n_tokens;
	}
}

/*
 * Makes four calls: openat, write, close, and exit_group or execve. All but the last are counted.
 */
static inline void write_truth(struct worker *self, const char *path)
{
	struct engine *e = self->engine;
	struct worker sum = {0};
	long fd;

	self->calls[SYS_openat]++;
	self->calls[SYS_write]++;
	self->calls[SYS_close]++;
	sum_workers(e, &sum);
	emit(e, "{\"pid\":%d,\"exact\":%s,\n", e->workers[0].tid, e->exact ? "true" : "false");
	emit(e, "\"steps\":%" PRIu64 ",\"panics\":%" PRIu64 ",\"slow_steps\":%" PRIu64, sum.steps,
	     sum.panics, sum.slow);
	emit(e, ",\"trouble\":\"%s\",\"trouble_every\":%ld",
	     e->config.trouble ? e->config.trouble : "none", e->config.trouble_every);
	emit(e, ",\"children\":%" PRIu64 ",\"n_tokens\":%" PRIu64 ",\n", sum.children,
	     sum.n_tokens);
	emit_step_shape(e);
	emit_categories(e, "in_steps", sum.step_calls, sum.step_errors);
	emit_names(e, "calls", sum.calls);
	emit_names(e, "errors", sum.errors);
	emit_threads(e);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	syscall(SYS_write, fd, e->text, e->text_len);
	syscall(SYS_close, fd);
}

#endif
