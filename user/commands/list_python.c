/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/list_python.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "python/guest.h"
#include "python/inject.h"
#include "python/outlook.h"
#include "python/steps.h"
#include "python/tree.h"
#include "shim/library.h"

#define WATCH_NS (2 * NS_PER_S)
#define BEAT_US	 200000

struct listing {
	FILE *out;
	uint64_t now_ns;
	int count;
};

static void inject_all(const struct options *options, const process_vec *processes)
{
	char *path = python_library_path();

	if (!path)
		log_warn("--python=inject: " PYTHON_LIBRARY_MISSING);
	vec_for_each (process, processes) {
		if (path && !python_guest_is_there(process->tgid))
			python_inject(process->tgid, path, options->gpu.inject_timeout_ns);
	}
	free(path);
}

static void print(void *ctx, const struct python_count *count)
{
	struct listing *listing = ctx;
	char title[PYTHON_TITLE_MAX];

	if (!listing->count++)
		terminal_line(listing->out, "%10s  %12s  %s", "calls/s", "mean", "step function");
	python_tree_title(count->tgid, title);
	terminal_line(listing->out, "%10.1f  %12s  py:%s  [process %u (%s), %s:%u]",
		      (double)count->calls * 1e9 / (double)(listing->now_ns - count->armed_ns),
		      "not known", count->function, count->tgid, title, count->file, count->line);
}

/* Nothing else is looked for here: the markers are not probed, so only calls are counted. */
static int count_calls(struct python_steps *steps, const process_vec *processes, FILE *out)
{
	struct listing listing = {.out = out};
	function_vec functions = {0};
	uint64_t start_ns, now_ns;

	/* The first is the one that -p names. */
	for (size_t i = 1; i < processes->count; i++)
		python_steps__ask(steps, processes->items[i].tgid);
	for (size_t i = 0; i < processes->count; i++) {
		const struct python_search search = {.tgid = processes->items[i].tgid,
						     .is_named = !i};

		python_steps__search(steps, &search, &functions);
	}
	step_functions_free(&functions);
	python_steps__explain(steps);
	vec_for_each (process, processes)
		python_steps__arm(steps, process->tgid);
	python_steps__finish_arming(steps);
	start_ns = now_ns = clock_ns(CLOCK_MONOTONIC);
	while (now_ns < start_ns + WATCH_NS) {
		usleep(BEAT_US);
		now_ns = clock_ns(CLOCK_MONOTONIC);
		python_steps__beat(steps, now_ns);
	}
	listing.now_ns = clock_ns(CLOCK_MONOTONIC);
	python_steps__count(steps, print, &listing);
	python_steps__disarm(steps);
	return listing.count;
}

static bool has_guest(const process_vec *processes)
{
	vec_for_each (process, processes) {
		if (python_guest_is_there(process->tgid))
			return true;
	}
	return false;
}

/* Says what is missing for a list. */
static void explain(const struct options *options, const process_vec *processes)
{
	uint32_t tgid = options->pids.items[0];
	char outlook[PYTHON_OUTLOOK_MAX];

	python_outlook(tgid, options->specs.items, options->specs.count, outlook);
	if (has_guest(processes))
		log_err("process %u: neither it nor another process of its engine has a step "
			"function that is known: name one with --step py:MODULE:QUALNAME",
			tgid);
	else
		log_err("process %u runs Python, and its steps are no native functions: "
			"--list-steps -p %u --python=inject loads libferrum_python.so, and looks "
			"for %s",
			tgid, tgid, outlook);
}

int list_python(const struct options *options, FILE *out)
{
	struct process_entry named = {.tgid = options->pids.items[0]};
	struct python_steps *steps = NULL;
	process_vec processes = {0};
	int count = 0, err = vec_push(&processes, named);

	if (!err)
		err = python_tree_list(named.tgid, &processes);
	if (!err && options->python == PYTHON_INJECT)
		inject_all(options, &processes);
	if (!err && has_guest(&processes)) {
		steps = python_steps__new(options->specs.items, options->specs.count);
		if (steps)
			count = count_calls(steps, &processes, out);
		else
			err = -ENOMEM;
		python_steps__free(steps);
	}
	if (!err && !count) {
		explain(options, &processes);
		err = -ENOENT;
	}
	vec_free(&processes);
	return err;
}
