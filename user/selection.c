/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include "clock.h"
#include <signal.h>
#include "log.h"
#include "processes.h"
#include "selection.h"

/* Where windows come and go one target may end, and the others still be waited for. */
static bool may_be_gone(const struct selection *selection, const struct traced *traced, int err)
{
	return !traced->wanted || (err == -ESRCH && selection->options->windows.flag);
}

static int search_wanted(const struct selection *selection, uint32_t tgid)
{
	struct traced *traced = traced_set__add(selection->traced, tgid);
	int added;

	if (!traced)
		return -ENOMEM;
	traced->wanted = true;
	added = steps_found__search(selection->found, traced);
	if (added < 0 && may_be_gone(selection, traced, added)) {
		traced_set__forget(selection->traced, traced);
		return 0;
	}
	return added < 0 ? added : 0;
}

/* Nothing silently goes without steps beside a process that has them. */
static void warn_of_unmatched(const struct selection *selection)
{
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(selection->traced, i)); i++) {
		if (traced->wanted && !traced->kinds.count)
			log_warn(
				"process %u: no step function in it: only its syscalls are counted",
				traced->tgid);
	}
}

/* Children of -p for -f, everything for -a: those that are not known yet. */
static int add_others(const struct selection *selection)
{
	const struct options *options = selection->options;
	process_vec processes = {0};
	struct traced *traced;
	int err = 0;

	if (options->all || (options->follow && options->pids.count))
		err = processes_list(&processes);
	vec_for_each (process, &processes) {
		if (err || traced_set__find(selection->traced, process->tgid) ||
		    (!options->all &&
		     !processes_descends(&processes, process->tgid, options->pids.items,
					 options->pids.count)))
			continue;
		traced = traced_set__add(selection->traced, process->tgid);
		if (traced)
			traced->parent_tgid = process->parent_tgid;
		else
			err = -ENOMEM;
	}
	vec_free(&processes);
	return err;
}

static int search_others(const struct selection *selection)
{
	struct traced *traced;
	int err = add_others(selection);

	for (size_t i = 0; !err && (traced = traced_set__at(selection->traced, i)); i++) {
		if (!traced->wanted)
			steps_found__search(selection->found, traced);
	}
	return err;
}

int selection_find(const struct selection *selection)
{
	const struct options *options = selection->options;
	bool must_match = options->specs.count && !options->wait_step && options->pids.count;
	int err = 0;

	for (size_t i = 0; i < options->pids.count && !err; i++)
		err = search_wanted(selection, options->pids.items[i]);
	if (!err)
		err = search_others(selection);
	if (!err && steps_found__count(selection->found))
		warn_of_unmatched(selection);
	if (err || !must_match || steps_found__count(selection->found))
		return err;
	steps_found__explain(selection->found, options->pids.items[0]);
	return -ENOENT;
}

static bool is_named(const struct options *options, uint32_t tgid)
{
	vec_for_each (pid, &options->pids) {
		if (*pid == tgid)
			return true;
	}
	return false;
}

/* processes: with -f, those there are, else empty. A number may be another process's by now. */
static bool is_still_selected(const struct selection *selection, const struct traced *traced,
			      const process_vec *processes)
{
	const struct options *options = selection->options;

	if (traced->wanted)
		return is_named(options, traced->tgid);
	if (options->follow && options->pids.count)
		return processes_descends(processes, traced->tgid, options->pids.items,
					  options->pids.count);
	return !kill((pid_t)traced->tgid, 0) || errno != ESRCH;
}

void selection_refresh(const struct selection *selection)
{
	const struct options *options = selection->options;
	process_vec processes = {0};
	struct traced *traced;
	size_t i = 0;

	if (options->follow && options->pids.count)
		processes_list(&processes);
	while ((traced = traced_set__at(selection->traced, i))) {
		if (!is_still_selected(selection, traced, &processes)) {
			traced_set__forget(selection->traced, traced);
			continue;
		}
		traced->rescan = true;
		if (!options->all)
			steps_found__search(selection->found, traced);
		i++;
	}
	vec_free(&processes);
}

int selection_attach(const struct selection *selection)
{
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(selection->traced, i)); i++) {
		int err = steps_found__attach(selection->found, traced);

		/* Nobody asked for what the built-in table found: then there are intervals. */
		if (err < 0 && !may_be_gone(selection, traced, err) &&
		    (selection->options->specs.count || err == -ENOMEM))
			return err;
	}
	return 0;
}

/* A thread that is made meanwhile is seen by the kernel side, or else by the second look. */
static int take_threads(const struct selection *selection, struct traced *traced)
{
	int err = loader__add_target(selection->loader, traced->tgid), threads;

	if (err)
		return err;
	traced->taken = true;
	traced->start_ns = clock_ns(CLOCK_MONOTONIC);
	threads = traced_set__take_threads(selection->traced, traced->tgid, traced->start_ns);
	if (threads >= 0)
		threads =
			traced_set__take_threads(selection->traced, traced->tgid, traced->start_ns);
	return threads < 0 ? threads : 0;
}

static int describe_process(const struct selection *selection, struct traced *traced)
{
	int err = record_send_target(selection->output, traced->tgid, traced->parent_tgid,
				     traced->start_ns);

	if (!err)
		err = steps_found__attach(selection->found, traced);
	return err < 0 ? err : 0;
}

/* With each that is taken, or is not. A process that -p does not name may be gone. */
static int for_each_found(const struct selection *selection, bool taken,
			  int (*act)(const struct selection *selection, struct traced *traced))
{
	struct traced *traced;
	size_t i = 0;

	while ((traced = traced_set__at(selection->traced, i))) {
		int err = traced->taken == taken ? act(selection, traced) : 0;

		if (err && !may_be_gone(selection, traced, err)) {
			if (err == -ESRCH)
				log_err("process %u: ended while attaching", traced->tgid);
			return err;
		}
		if (err)
			traced_set__forget(selection->traced, traced);
		else
			i++;
	}
	return 0;
}

/* A process may fork between the list and its own turn: until a list brings nothing new. */
#define LISTS_MAX 20

int selection_take(const struct selection *selection)
{
	struct traced *traced;
	int err = for_each_found(selection, false, take_threads);

	for (int i = 0; i < LISTS_MAX && !err; i++) {
		size_t before = traced_set__count(selection->traced);

		err = add_others(selection);
		for (size_t j = before; !err && (traced = traced_set__at(selection->traced, j));
		     j++)
			traced->rescan = true;
		if (!err)
			err = for_each_found(selection, false, take_threads);
		if (traced_set__count(selection->traced) == before)
			break;
	}
	/* Names and files take longer, and can wait. */
	return err ? err : for_each_found(selection, true, describe_process);
}
