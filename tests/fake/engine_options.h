/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The embedded engine's options: one table is both the parser and the help. */
#ifndef FBT_TESTS_ENGINE_OPTIONS_H
#define FBT_TESTS_ENGINE_OPTIONS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine_calls.h"

enum kind { NUMBER, FLAG, STRING, SIX };

#define ROW(name, kind, member, help)                                                              \
	{                                                                                          \
		name, kind, offsetof(struct config, member), help                                  \
	}

#define INDENT "                             "

static const struct row {
	const char *name;
	enum kind kind;
	size_t offset;
	const char *help;
} rows[] = {
	ROW("--steps", NUMBER, steps, "steps of each step thread; 0: until SIGTERM (100)"),
	ROW("--sleep-us", NUMBER, sleep_us, "one nanosleep of that length between steps (1000)"),
	ROW("--compute-us", NUMBER, compute_us, "busy time in a step, no syscall (0)"),
	ROW("--steady", FLAG, steady, "busy by the clock, not by a number of loops"),
	ROW("--step-threads", NUMBER, step_threads, "1: the main thread makes the steps (1)"),
	ROW("--calls", SIX, calls,
	    "calls in a step: mmap,futex,ioctl,read,write,other (5,4,3,7,6,2)"),
	ROW("--errors", SIX, errors, "how many of those fail (1,2,0,3,1,1)"),
	ROW("--recurse", NUMBER, recurse,
	    "engine_step calls itself that often, all calls each time"),
	ROW("--panic-every", NUMBER, panic_every, "every Nth step is left by longjmp, before read"),
	ROW("--slow-futex-every", NUMBER, slow_every, "every Nth step waits on a futex"),
	ROW("--slow-us", NUMBER, slow_us, "for that long (20000)"),
	ROW("--mixed-us", NUMBER, mixed_us,
	    "two sorts of steps at random, one computes about as long, one about --compute-us"),
	ROW("--trouble", STRING, trouble,
	    "what every Nth step suffers from: lock, mmap, write, bigwrite, fileread,\n" INDENT
	    "pipe, ioctl, threads, processes, sleep, signals, runqueue (root), faults\n" INDENT
	    "or compute"),
	ROW("--trouble-every", NUMBER, trouble_every, "N (20)"),
	ROW("--trouble-us", NUMBER, trouble_us, "for about that long (50000)"),
	ROW("--file", STRING, file, "of write, bigwrite and fileread"),
	ROW("--fork-every", NUMBER, fork_every,
	    "a child that makes one step, after every Nth step"),
	ROW("--noise", NUMBER, noise, "threads that make calls all the time"),
	ROW("--noise-us", NUMBER, noise_us, "and sleep that long after every 5 calls (100)"),
	ROW("--blocked", FLAG, blocked,
	    "a thread in read() since before the go, let go at the end"),
	ROW("--short-threads", NUMBER, short_threads, "short-lived threads before the first step"),
	ROW("--short-calls", NUMBER, short_calls, "getppid calls of each (10)"),
	ROW("--exec", FLAG, exec, "run itself again at the end, without this and --wait"),
	ROW("--exec-thread", FLAG, exec_thread, "the same, but a second thread calls execve"),
	ROW("--late", STRING, late, "library whose late_step is the step instead of engine_step"),
	ROW("--late-ms", NUMBER, late_ms, "loaded that long after the go (0)"),
	ROW("--truth", STRING, truth,
	    "FILE for the counts as JSON (with --exec also FILE.before-exec)"),
	ROW("--wait", FLAG, wait,
	    "the go is a line on stdin; 'ready PID' on stdout comes before it"),
};

static inline void print_help(void)
{
	puts("usage: engine [OPTION]...\nAn engine whose steps (engine_step) make known syscalls.");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		printf("  %-18s %-7s %s\n", rows[i].name,
		       rows[i].kind == FLAG  ? ""
		       : rows[i].kind == SIX ? "M,F,I,R,W,O"
					     : "VALUE",
		       rows[i].help);
}

static inline int parse_six(const char *text, long *values)
{
	char *end;

	for (int i = 0; i < CATS; i++) {
		values[i] = strtol(text, &end, 10);
		if (end == text || values[i] < 0 || *end != (i < CATS - 1 ? ',' : '\0'))
			return -EINVAL;
		text = end + 1;
	}
	return 0;
}

static inline int set_option(struct config *c, const struct row *row, const char *value)
{
	char *field = (char *)c + row->offset, *end;

	switch (row->kind) {
	case FLAG:
		*(bool *)field = true;
		return 0;
	case STRING:
		*(const char **)field = value;
		return 0;
	case SIX:
		return parse_six(value, (long *)field);
	default:
		*(long *)field = strtol(value, &end, 10);
		return *value && !*end && *(long *)field >= 0 ? 0 : -EINVAL;
	}
}

static inline int parse_options(struct config *c, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const struct row *row = NULL;

		for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
			if (strcmp(argv[i], rows[r].name) == 0)
				row = &rows[r];
		if (!row || (row->kind != FLAG && i + 1 == argc))
			return -EINVAL;
		if (set_option(c, row, row->kind == FLAG ? NULL : argv[++i]))
			return -EINVAL;
	}
	for (int i = 0; i < CATS; i++)
		if (c->errors[i] > c->calls[i])
			return -EINVAL;
	if (c->trouble && (c->step_threads != 1 || c->late || c->trouble_every < 1))
		return -EINVAL;
	if (c->step_threads < 1 || c->step_threads + c->noise > MAX_THREADS - 4)
		return -EINVAL;
	if (c->truth)
		snprintf(c->truth_before_exec, sizeof(c->truth_before_exec), "%s.before-exec",
			 c->truth);
	return 0;
}

#endif
