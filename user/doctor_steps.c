/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_steps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "image.h"
#include "processes.h"
#include "report_format.h"
#include "steps_found.h"
#include "target.h"

/* A line that holds a whole one is of no use to read; --list-steps gives them uncut. */
#define NAME_COLUMNS 120
#define PATH_COLUMNS 160

static bool is_program_stripped(uint32_t thread, const struct target_options *options)
{
	bool stripped = false;
	mapping_vec maps = {0};
	struct stat program;
	struct image image;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/exe", thread);
	if (stat(path, &program) || maps_read(thread, &maps))
		return false;
	vec_for_each (mapping, &maps) {
		if (mapping->inode != program.st_ino)
			continue;
		if (!image_open(&image, thread, mapping) &&
		    !image_read(&image, thread, options->symbol_files, options->symbol_file_count))
			stripped = !image.symbols.complete;
		image_close(&image);
		break;
	}
	maps_free(&maps);
	return stripped;
}

static int find(struct doctor_steps *steps, uint32_t thread, const struct target_options *options)
{
	struct target_seen *seen = target_seen__new();
	int found = -ENOMEM;

	if (seen)
		found = target_find(thread, options, seen, &steps->functions);
	target_seen__free(seen);
	return found;
}

/* Nothing matched: why --step did not, and what else there is. */
static void look_further(struct doctor_steps *steps, uint32_t thread,
			 const struct target_options *options)
{
	struct doctor_words unheard;

	if (steps->named && !steps->waits) {
		doctor_listen(&steps->words);
		target_explain_no_match(thread, options);
		doctor_listen_end();
	}
	doctor_listen(&unheard);
	target_find_candidates(thread, options, DOCTOR_CANDIDATES_MAX, &steps->candidates);
	steps->stripped = is_program_stripped(thread, options);
	doctor_listen_end();
}

void doctor_steps_read(struct doctor_steps *steps, uint32_t tgid, const struct options *options,
		       struct doctor_trial *trial)
{
	struct target_options target_options = target_options_of(options);
	uint32_t thread = processes_living_thread(tgid);

	*steps = (struct doctor_steps){
		.named = options->specs.count,
		.waits = options->wait_step,
		.interval_ns = options->interval_ns,
	};
	doctor_listen(&steps->words);
	steps->found = find(steps, thread, &target_options);
	doctor_listen_end();
	if (steps->found > 0)
		steps->probe_err = doctor_trial_probe(trial, &steps->functions, &steps->words);
	else if (!steps->found)
		look_further(steps, thread, &target_options);
}

void doctor_steps_clear(struct doctor_steps *steps)
{
	vec_for_each (function, &steps->functions)
		target_function_free(*function);
	vec_for_each (candidate, &steps->candidates)
		target_function_free(*candidate);
	vec_free(&steps->functions);
	vec_free(&steps->candidates);
}

static void judge_function(const struct step_function *function, struct doctor_checks *checks)
{
	char name[4 * NAME_COLUMNS], path[4 * PATH_COLUMNS];
	size_t exits = function->exit_offsets.count;

	snprintf(name, sizeof(name), "%.*s", NAME_COLUMNS, function->name);
	snprintf(path, sizeof(path), "%.*s", PATH_COLUMNS, function->path ? function->path : "");
	if (function->uretprobe) {
		doctor_say(checks, DOCTOR_WARN, "step function",
			   "%s, which ends at a uretprobe: a panic or exception that passes "
			   "through it aborts the process; %s",
			   name, path);
		doctor_advise(checks, "leave out --uretprobe");
		return;
	}
	doctor_say(checks, DOCTOR_OK, "step function", "%s, %zu %s%s%s, %s+0x%" PRIx64, name, exits,
		   function->usdt ? "USDT end" : "exit", exits == 1 ? "" : "s",
		   function->builtin ? ", of the built-in table" : "", path, function->address);
}

static void judge_probe(const struct doctor_steps *steps, struct doctor_checks *checks)
{
	const char *words = doctor_words_text(&steps->words, 0, steps->probe_err);
	char interval[FORMAT_MAX];

	if (steps->named) {
		doctor_say(checks, DOCTOR_NO, "step probes", "%s", words);
	} else {
		doctor_say(checks, DOCTOR_WARN, "step probes",
			   "%s: steps would be fixed intervals of %s", words,
			   format_time(interval, (double)steps->interval_ns));
	}
	doctor_advise(checks, "name a function around it, or one that it calls, with --step "
			      "(--list-steps shows candidates)");
}

static void advise_candidates(const struct doctor_steps *steps, uint32_t tgid,
			      struct doctor_checks *checks)
{
	char names[DOCTOR_TEXT_MAX / 2] = "";
	size_t used = 0;

	vec_for_each (candidate, &steps->candidates) {
		const struct step_function *function = *candidate;

		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s'%.*s'",
						 used ? ", " : "", NAME_COLUMNS, function->name);
	}
	if (steps->candidates.count)
		doctor_advise(checks,
			      "by their names these may be it: %s; ferrum-bpftrace --list-steps -p "
			      "%" PRIu32 " measures candidates for --step",
			      names, tgid);
	else if (steps->stripped)
		doctor_advise(checks,
			      "its program is stripped: --symbols FILE with the file it was "
			      "stripped from, or --step PATH+0xADDR (what nm prints there)");
	else
		doctor_advise(checks, "name the function that makes one forward pass: --step "
				      "SYMBOL, a glob, /REGEX/, PATH+0xADDR or a USDT pair");
}

static void judge_none(const struct doctor_steps *steps, uint32_t tgid,
		       struct doctor_checks *checks)
{
	char interval[FORMAT_MAX];

	format_time(interval, (double)steps->interval_ns);
	if (steps->named && !steps->waits)
		doctor_say(checks, DOCTOR_NO, "step function", "%s",
			   steps->words.any ? steps->words.text : "nothing matches --step");
	else if (steps->named)
		doctor_say(checks, DOCTOR_WARN, "step function",
			   "nothing matches --step yet: intervals of %s until it comes "
			   "(--wait-step)",
			   interval);
	else
		doctor_say(checks, DOCTOR_WARN, "step function",
			   "none of the built-in table (llama.cpp, ferrum): steps would be fixed "
			   "intervals of %s",
			   interval);
	advise_candidates(steps, tgid, checks);
}

void doctor_steps_judge(const struct doctor_steps *steps, uint32_t tgid,
			struct doctor_checks *checks)
{
	if (steps->found < 0) {
		doctor_say(checks, DOCTOR_NO, "step function", "%s",
			   doctor_words_text(&steps->words, tgid, steps->found));
		if (steps->found == -E2BIG)
			doctor_advise(checks, "put PATH: before the name, or name it in full");
		else if (steps->found == -EPERM)
			doctor_advise(checks, "run with sudo");
		else
			doctor_advise(checks,
				      "ferrum-bpftrace --list-steps -p %" PRIu32
				      " shows functions that can be probed",
				      tgid);
		return;
	}
	if (!steps->found) {
		judge_none(steps, tgid, checks);
		return;
	}
	vec_for_each (function, &steps->functions)
		judge_function(*function, checks);
	if (steps->probe_err)
		judge_probe(steps, checks);
}
