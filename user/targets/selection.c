/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/selection.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/process.h"
#include "python/guest.h"
#include "search/descendant.h"
#include "steps/find.h"
#include "targets/engine_tree.h"
#include "targets/step_sites.h"
#include "targets/steps_found.h"

/*
 * Whether a failure is tolerated: any, for a process that -p does not name; with --flag also that a
 * named one has ended, while the others continue.
 */
static bool may_be_gone(const struct live *live, const struct traced *traced, int err)
{
	return !traced->wanted || (err == -ESRCH && live->options->windows.flag);
}

static int search_wanted(const struct live *live, uint32_t tgid)
{
	struct traced *traced = traced_set__add(live->traced, tgid);
	int added;

	if (!traced)
		return -ENOMEM;
	traced->wanted = true;
	added = steps_found__search(live->found, traced);
	if (added < 0 && may_be_gone(live, traced, added)) {
		traced_set__forget(live->traced, traced);
		return 0;
	}
	return added < 0 ? added : 0;
}

/* Warns of processes without steps if another process has some. */
static void warn_of_unmatched(const struct live *live)
{
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(live->traced, i)); i++) {
		if (traced->wanted && !traced->kinds.count)
			log_warn("process %u: no step function in it: %s", traced->tgid,
				 live->options->detail == FBT_DETAIL_PROBES
					 ? "nothing of it is measured (--detail probes)"
					 : "only its syscalls are counted");
	}
}

/*
 * Adds children of the -p processes for -f, and all processes for -a, unless they are known
 * already.
 */
static int add_others(const struct live *live)
{
	const struct options *options = live->options;
	process_vec processes = {0};
	struct traced *traced;
	int err = 0;

	if (options->all || (options->follow && options->pids.count))
		err = processes_list(&processes);
	vec_for_each (process, &processes) {
		if (err || traced_set__find(live->traced, process->tgid) ||
		    (!options->all &&
		     !processes_descends(&processes, process->tgid, options->pids.items,
					 options->pids.count)))
			continue;
		traced = traced_set__add(live->traced, process->tgid);
		if (traced)
			traced->parent_tgid = process->parent_tgid;
		else
			err = -ENOMEM;
	}
	vec_free(&processes);
	return err;
}

static int search_others(const struct live *live)
{
	struct traced *traced;
	int err = add_others(live);

	for (size_t i = 0; !err && (traced = traced_set__at(live->traced, i)); i++) {
		if (!traced->wanted)
			steps_found__ask_python(live->found, traced->tgid);
	}
	for (size_t i = 0; !err && (traced = traced_set__at(live->traced, i)); i++) {
		if (!traced->wanted)
			steps_found__search(live->found, traced);
	}
	return err;
}

static bool must_match(const struct options *options)
{
	if (!options->pids.count || options->wait_step)
		return false;
	/* A child may have the function that the process itself does not have. */
	return options->specs.count || (options->detail == FBT_DETAIL_PROBES && !options->follow);
}

static enum target_python python_of(const struct live *live, uint32_t tgid)
{
	if (steps_found__python_is_told(live->found, tgid))
		return TARGET_PYTHON_TOLD;
	return python_guest_is_there(tgid) ? TARGET_PYTHON_THERE : TARGET_PYTHON_NONE;
}

/* The user may have named what has started the engine. With -f, descendants were searched too. */
static void name_descendant(const struct options *options)
{
	const struct descendant_roots roots = {options->pids.items, options->pids.count};
	struct descendant found;
	char steps[1024];

	if (options->follow || !descendant_find(options, &roots, options->specs.count, &found))
		return;
	descendant_steps(steps, sizeof(steps), options);
	log_err("%s %u (%s) of process %u has such a function: ferrum-bpftrace -p %u%s, or -p %u "
		"-f%s",
		found.is_child ? "child" : "descendant", found.tgid, found.name, found.root_tgid,
		found.tgid, steps, found.root_tgid, steps);
}

static void explain_no_match(const struct live *live)
{
	struct target_options target_options = target_options_of(live->options);
	uint32_t tgid = live->options->pids.items[0];

	if (live->options->specs.count)
		target_explain_no_match(tgid, &target_options, python_of(live, tgid));
	else
		log_err("--detail probes measures steps only, and process %u has no known step "
			"function: name one with --step (--list-steps -p %u shows candidates), or "
			"use --detail steps",
			tgid, tgid);
	name_descendant(live->options);
}

static void tell_of_steps(const struct live *live)
{
	struct traced *traced;

	steps_found__explain(live->found);
	if (steps_found__count(live->found)) {
		warn_of_unmatched(live);
		return;
	}
	for (size_t i = 0; (traced = traced_set__at(live->traced, i)); i++)
		steps_found__offer_python(live->found, traced);
}

static int check_python(const struct live *live)
{
	if (live->options->python != PYTHON_REQUIRE || live->quiet ||
	    steps_found__has_python(live->found))
		return 0;
	log_err("--python require: no traced process has a Python step: it must run CPython 3.9 to "
		"3.14, have libferrum_python.so (--python inject loads it; ferrum-bpftrace "
		"engine-env says how to start with it), and be an engine that is known, or --step "
		"names its function; --python auto goes on without");
	return -ENOENT;
}

int selection_find(const struct live *live)
{
	const struct options *options = live->options;
	int err = 0;

	for (size_t i = 0; i < options->pids.count && !err; i++)
		err = search_wanted(live, options->pids.items[i]);
	if (!err)
		err = engine_tree__search(live->tree);
	if (!err)
		err = search_others(live);
	if (!err && !live->quiet)
		tell_of_steps(live);
	if (!err)
		err = check_python(live);
	if (err || !must_match(options) || steps_found__count(live->found))
		return err;
	explain_no_match(live);
	return -ENOENT;
}

/* processes: with -f all processes, else none. */
static bool is_still_selected(const struct live *live, const struct traced *traced,
			      const process_vec *processes)
{
	const struct options *options = live->options;

	if (traced->wanted)
		return options_name_process(options, traced->tgid);
	if (options->follow && options->pids.count)
		return processes_descends(processes, traced->tgid, options->pids.items,
					  options->pids.count);
	return traced_is_there(traced);
}

void selection_refresh(const struct live *live)
{
	const struct options *options = live->options;
	process_vec processes = {0};
	struct traced *traced;
	size_t i = 0;

	if (options->follow && options->pids.count)
		processes_list(&processes);
	while ((traced = traced_set__at(live->traced, i))) {
		if (!is_still_selected(live, traced, &processes)) {
			steps_found__forget(live->found, traced->tgid);
			traced_set__forget(live->traced, traced);
			continue;
		}
		traced->rescan = true;
		if (!options->all)
			steps_found__search(live->found, traced);
		i++;
	}
	vec_free(&processes);
}

int selection_attach(const struct live *live)
{
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(live->traced, i)); i++) {
		int err = step_sites__attach(live->sites, traced);

		/*
		 * A function of the built-in table may fail: intervals replace it, unless there
		 * are none.
		 */
		if (err < 0 && !may_be_gone(live, traced, err) &&
		    (live->options->specs.count || err == -ENOMEM ||
		     live->options->detail == FBT_DETAIL_PROBES))
			return err;
	}
	steps_found__finish_arming(live->found);
	return 0;
}

/*
 * The list is read twice: a thread that is created meanwhile is seen by the kernel side or in the
 * second list.
 */
static int take_threads(const struct live *live, struct traced *traced)
{
	uint64_t counted = traced_set__counted(live->traced);
	int err = loader__add_target(live->loader, traced->tgid), threads;

	/* The table is full: counted as where the kernel side finds it full. */
	if (err == -E2BIG)
		__atomic_add_fetch(&loader__shared(live->loader)->control->lost[FBT_LOST_NAMES], 1,
				   __ATOMIC_RELAXED);
	if (err)
		return err;
	traced->taken = true;
	traced->start_ns = clock_ns(CLOCK_MONOTONIC);
	threads = traced_set__take_threads(live->traced, traced->tgid, traced->start_ns);
	/* From the first list: threads that are only in the second one have begun since. */
	traced_set__count_missing(live->traced, traced, counted);
	if (threads >= 0)
		threads = traced_set__take_threads(live->traced, traced->tgid, traced->start_ns);
	return threads < 0 ? threads : 0;
}

static int describe_process(const struct live *live, struct traced *traced)
{
	struct process_text text;
	int err;

	process_text_read(&text, traced->tgid);
	err = record_send_target(live->output, traced->tgid, traced->parent_tgid, traced->start_ns,
				 &text);
	if (!err)
		err = step_sites__attach(live->sites, traced);
	return err < 0 ? err : 0;
}

/*
 * Calls act for each process that is taken, or each that is not. Processes that -p does not name
 * may be gone. 0; 1: for some of these the table is full; or -errno.
 */
static int for_each_found(const struct live *live, bool taken,
			  int (*act)(const struct live *live, struct traced *traced))
{
	struct traced *traced;
	bool is_full = false;
	size_t i = 0;

	while ((traced = traced_set__at(live->traced, i))) {
		int err = traced->taken == taken ? act(live, traced) : 0;

		if (err && !may_be_gone(live, traced, err)) {
			if (err == -ESRCH)
				log_err("process %u: ended while attaching", traced->tgid);
			return err;
		}
		is_full |= err == -E2BIG;
		if (err)
			traced_set__forget(live->traced, traced);
		else
			i++;
	}
	return is_full;
}

/*
 * A process may fork after the list was read and before its turn: read lists until nothing is new,
 * or the table is full: what found no place would be in each list, and be counted again.
 */
#define LISTS_MAX 20

int selection_take(const struct live *live)
{
	struct traced *traced;
	int err = for_each_found(live, false, take_threads);

	for (int i = 0; i < LISTS_MAX && !err; i++) {
		size_t before = traced_set__count(live->traced);

		err = add_others(live);
		for (size_t j = before; !err && (traced = traced_set__at(live->traced, j)); j++)
			traced->rescan = true;
		if (!err)
			err = for_each_found(live, false, take_threads);
		if (traced_set__count(live->traced) == before)
			break;
	}
	/* Names and files take longer, and can wait. */
	if (err >= 0)
		err = for_each_found(live, true, describe_process);
	return err < 0 ? err : 0;
}

int selection_take_late(const struct live *live, struct traced *traced)
{
	int err;

	if (traced->taken)
		err = step_sites__attach(live->sites, traced);
	else if (!(err = take_threads(live, traced)))
		err = describe_process(live, traced);
	return err < 0 ? err : 0;
}
