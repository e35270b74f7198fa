/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "commands/doctor_calls.h"
#include "commands/doctor_check.h"
#include "commands/doctor_gpu.h"
#include "commands/doctor_machine.h"
#include "commands/doctor_needs.h"
#include "commands/doctor_process.h"
#include "commands/doctor_python.h"
#include "commands/doctor_room.h"
#include "commands/doctor_stacks.h"
#include "proc/process.h"

/* On a machine that is not busy, all of doctor takes less than a second. */
#define ENGINES_BUDGET_NS 300000000ull

/* An error in the metadata options or their variables keeps -p from starting. */
static void check_metadata(const struct options *options, struct findings *checks)
{
	struct metadata metadata = {0};
	struct doctor_words words;
	int err;

	doctor_listen(&words);
	err = metadata_resolve(&metadata, &options->metadata, environ);
	doctor_listen_end();
	metadata_clear(&metadata);
	if (!err)
		return;
	findings_add(checks, FINDING_FAIL, "metadata", "%s",
		     doctor_words_text(&words, checks, strerror(-err)));
	findings_advise(checks, "correct the value, or unset the variable");
}

static void check_machine(const struct options *options, struct doctor_trial *trial,
			  struct findings *checks)
{
	struct doctor_machine machine;
	struct doctor_room room;
	struct doctor_gpu gpu;

	doctor_machine_read(&machine);
	doctor_machine_judge(&machine, checks);
	doctor_room_read(&room, options);
	*trial = (struct doctor_trial){.skipped = findings_first(checks, FINDING_FAIL) != NULL};
	if (!trial->skipped)
		doctor_trial_run(trial, options);
	doctor_trial_judge(trial, checks);
	doctor_room_judge(&room, checks);
	doctor_gpu_read(&gpu);
	doctor_gpu_judge(&gpu, checks);
	doctor_gpu_clear(&gpu);
	check_metadata(options, checks);
}

/* Step functions: a trace needs one, and none that cannot be probed. */
struct doctor_tally {
	bool has_python; /* doctor_needs */
	bool suffices;
	bool fails;
};

static void check_process(const struct options *options, struct doctor_tally *tally,
			  struct doctor_trial *trial, struct findings *checks)
{
	struct cgroup_limits limits;
	struct doctor_process process;
	struct doctor_process_gpu gpu;
	struct doctor_steps steps;
	struct doctor_calls calls;
	struct doctor_python python;
	struct doctor_stacks stacks;
	uint32_t tgid = checks->tgid;

	doctor_process_read(&process, tgid);
	doctor_process_judge(&process, checks);
	if (process.err)
		return;
	cgroup_limits_read(&limits, processes_ref(tgid));
	doctor_process_judge_limits(&limits, checks);
	doctor_steps_read(&steps, tgid, options, trial);
	doctor_steps_judge(&steps, checks);
	tally->suffices |= doctor_steps_suffice(&steps, tally->has_python);
	tally->fails |= steps.found < 0;
	doctor_python_read(&python, tgid, options);
	doctor_python_judge(&python, checks);
	doctor_calls_read(&calls, tgid, steps.found > 0 && !steps.probe_err, trial);
	doctor_calls_judge(&calls, checks);
	doctor_stacks_read(&stacks, tgid, options);
	doctor_stacks_judge(&stacks, checks);
	doctor_steps_clear(&steps);
	doctor_process_gpu_read(&gpu, tgid, options->gpu.mode);
	doctor_process_gpu_judge(&gpu, checks);
	doctor_process_gpu_clear(&gpu);
}

static void check_processes(const struct options *options, struct doctor_trial *trial,
			    struct findings *checks)
{
	struct doctor_tally tally = {.suffices = false};
	struct doctor_needs needs;
	struct options eased;

	doctor_needs_read(&needs, options);
	eased = doctor_needs_ease(&needs, options);
	tally.has_python = needs.has_python;
	vec_for_each (pid, &options->pids) {
		checks->tgid = *pid;
		check_process(&eased, &tally, trial, checks);
	}
	if (tally.suffices && !tally.fails)
		doctor_ease(checks, "step function");
}

static void check_engines(struct findings *checks)
{
	struct doctor_engines engines;

	doctor_engines_find(&engines, ENGINES_BUDGET_NS);
	doctor_engines_judge(&engines, checks);
}

static bool wants_color(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

/* False: printing failed, which is logged. */
static bool print(const struct options *options, const struct findings *checks, FILE *out)
{
	if (options->report == REPORT_JSON)
		doctor_print_json(checks, out);
	else if (options->report == REPORT_TEXT)
		doctor_print_text(checks, options->pids.items, options->pids.count,
				  wants_color(out), out);
	if (!fflush(out))
		return true;
	log_err("doctor: %s", strerror(errno));
	return false;
}

bool doctor(const struct options *options, FILE *out)
{
	struct findings checks = {.tgid = 0};
	struct doctor_trial trial;
	bool works;

	check_machine(options, &trial, &checks);
	check_processes(options, &trial, &checks);
	if (!options->pids.count)
		check_engines(&checks);
	doctor_trial_clear(&trial);
	works = print(options, &checks, out) && !findings_failed(&checks);
	findings_free(&checks);
	return works;
}
