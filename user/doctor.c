/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor_engines.h"
#include "doctor_gpu.h"
#include "doctor_machine.h"
#include "doctor_print.h"
#include "doctor_process.h"
#include "doctor_room.h"
#include "doctor_steps.h"
#include "doctor_trial.h"
#include "log.h"

/* All of doctor is to take less than a second, on a machine that has time for it. */
#define ENGINES_BUDGET_NS 300000000ull

/* Each of these would keep -p from starting. */
static void check_metadata(const struct options *options, struct doctor_checks *checks)
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
	doctor_say(checks, DOCTOR_NO, "metadata", "%s", words.any ? words.text : strerror(-err));
	doctor_advise(checks, "correct that, or unset the variable");
}

static void check_machine(const struct options *options, struct doctor_trial *trial,
			  struct doctor_checks *checks)
{
	struct doctor_machine machine;
	struct doctor_room room;
	struct doctor_gpu gpu;

	doctor_machine_read(&machine);
	doctor_machine_judge(&machine, checks);
	doctor_room_read(&room, options);
	*trial = (struct doctor_trial){.skipped = doctor_obstacle(checks) != NULL};
	if (!trial->skipped)
		doctor_trial_run(trial, options);
	doctor_trial_judge(trial, checks);
	doctor_room_judge(&room, checks);
	doctor_gpu_read(&gpu);
	doctor_gpu_judge(&gpu, checks);
	doctor_gpu_clear(&gpu);
	check_metadata(options, checks);
}

static void check_process(const struct options *options, uint32_t tgid, struct doctor_trial *trial,
			  struct doctor_checks *checks)
{
	struct doctor_process process;
	struct doctor_process_gpu gpu;
	struct doctor_steps steps;

	checks->tgid = tgid;
	doctor_process_read(&process, tgid);
	doctor_process_judge(&process, checks);
	if (process.err)
		return;
	doctor_steps_read(&steps, tgid, options, trial);
	doctor_steps_judge(&steps, tgid, checks);
	doctor_steps_clear(&steps);
	doctor_process_gpu_read(&gpu, tgid, options->gpu.mode);
	doctor_process_gpu_judge(&gpu, tgid, checks);
	doctor_process_gpu_clear(&gpu);
}

static void check_engines(struct doctor_checks *checks)
{
	struct doctor_engines engines;

	doctor_engines_find(&engines, ENGINES_BUDGET_NS);
	doctor_engines_judge(&engines, checks);
}

static bool is_colored(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

static int print(const struct options *options, const struct doctor_checks *checks, FILE *out)
{
	if (options->report == REPORT_JSON)
		doctor_print_json(checks, out);
	else if (options->report == REPORT_TEXT)
		doctor_print_text(checks, options->pids.items, options->pids.count, is_colored(out),
				  out);
	if (fflush(out)) {
		int err = -errno;

		log_err("doctor: %s", strerror(-err));
		return err;
	}
	return 0;
}

int doctor(const struct options *options, FILE *out)
{
	struct doctor_checks checks = {.tgid = 0};
	struct doctor_trial trial;
	int err;

	check_machine(options, &trial, &checks);
	vec_for_each (pid, &options->pids)
		check_process(options, *pid, &trial, &checks);
	if (!options->pids.count)
		check_engines(&checks);
	doctor_trial_clear(&trial);
	err = print(options, &checks, out);
	if (!err && (checks.failed || doctor_obstacle(&checks)))
		err = -EPERM;
	doctor_checks_clear(&checks);
	return err;
}
