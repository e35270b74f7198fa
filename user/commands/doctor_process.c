/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "commands/doctor_needs.h"
#include "inject/cuda_use.h"
#include "inject/python_use.h"
#include "stream/stacks.h"
#include "proc/maps.h"
#include "proc/process.h"
#include "proc/status.h"
#include "python/guest.h"
#include "sandbox/privilege.h"
#include "steps/find.h"
#include "search/candidates.h"

#define DELETED " (deleted)"

/* Longer names and paths make a line unreadable; --list-steps prints whole names. */
#define NAME_SHOWN 120
#define PATH_SHOWN 160
/* What is pasted is whole, or left out. */
#define BEST_SHOWN (FINDING_TEXT_MAX / 2)

/* A limit that is reached more often makes steps slow. */
#define THROTTLED_PERCENT 1.0

static void read_exe(struct doctor_process *process)
{
	size_t cut = strlen(DELETED);
	size_t size = proc_readlink((struct proc_ref){.tgid = process->tgid}, "exe", process->exe,
				    sizeof(process->exe));

	process->replaced = size > cut && !strcmp(process->exe + size - cut, DELETED);
	if (process->replaced)
		process->exe[size - cut] = '\0';
}

/* What a look at a lock or at a hang needs (user/proc/memory.h). Nothing is read. */
static int try_memory(struct proc_ref ref)
{
	int fd = proc_open(ref, "mem", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void read_status(struct doctor_process *process, uint32_t thread)
{
	struct thread_status status;

	if (thread_status_read(&status, (struct proc_ref){process->tgid, thread}))
		return;
	process->tracer = status.tracer;
	process->uid = status.uid;
	if (status.ns_depth > 1)
		process->inner_pid = status.ns_tid;
	if (process->tracer)
		proc_comm((struct proc_ref){.tgid = process->tracer}, process->tracer_comm,
			  sizeof(process->tracer_comm));
}

void doctor_process_read(struct doctor_process *process, uint32_t tgid)
{
	uint32_t thread = processes_live_thread(tgid);
	struct thread_stat stat;
	struct privilege_state privilege;
	mapping_vec maps = {0};

	*process = (struct doctor_process){.tgid = tgid, .own_uid = geteuid()};
	process->may_trace =
		!privilege_read(&privilege) && privilege_has(&privilege, CAP_SYS_PTRACE);
	process->ptrace_scope = privilege.ptrace_scope;
	doctor_listen(&process->words);
	process->err = maps_read(thread, &maps);
	doctor_listen_end();
	maps_free(&maps);
	if (process->err)
		return;
	proc_comm((struct proc_ref){.tgid = tgid}, process->comm, sizeof(process->comm));
	read_exe(process);
	read_status(process, thread);
	process->look_err = try_memory((struct proc_ref){tgid, thread});
	process->threads = processes_count_threads(tgid);
	if (!thread_stat_read(&stat, (struct proc_ref){tgid, thread}))
		process->state = stat.state;
}

static void judge_access(const struct doctor_process *process, struct findings *checks)
{
	findings_add(checks, FINDING_FAIL, "process", "%s",
		     process->err == -EPERM
			     ? "its memory map cannot be read"
			     : doctor_words_text(&process->words, checks, strerror(-process->err)));
	if (process->err == -ESRCH)
		findings_advise(checks, "run ferrum-bpftrace doctor without a process ID: it lists "
					"the engines that run here");
	else if (process->err == -EPERM && process->may_trace)
		findings_advise(
			checks,
			"run on the host, and see the kernel's log: a security module "
			"(SELinux, AppArmor) forbids it, or the process is in a parent user "
			"namespace");
	else if (process->err == -EPERM)
		findings_advise(checks, "run with sudo, or grant CAP_SYS_PTRACE");
	else if (process->err == -EINVAL)
		findings_advise(checks, "name the process, not one of its threads");
	else
		findings_advise(checks, "free some memory, or see the kernel's log (dmesg)");
}

static void judge_state(const struct doctor_process *process, struct findings *checks)
{
	if (process->tracer) {
		findings_add(checks, FINDING_WARN, "state",
			     "is traced by process %" PRIu32
			     " (%s), which may slow down or stop its calls",
			     process->tracer, process->tracer_comm);
		findings_advise(checks, "end that tracer first: its cost is in all figures");
	} else if (process->state == 'T' || process->state == 't') {
		findings_add(checks, FINDING_WARN, "state",
			     "is stopped: it makes no steps until it continues");
		findings_advise(checks, "run kill -CONT %" PRIu32, process->tgid);
	}
}

static void judge_look(const struct doctor_process *process, struct findings *checks)
{
	if (!process->look_err)
		return;
	findings_add(
		checks, FINDING_NOTE, "looks",
		"its memory may not be read (%s): the thread that has a lock is named only once "
		"it gives it back, and a hang has no stacks",
		strerror(-process->look_err));
	findings_advise(
		checks,
		process->ptrace_scope == 3
			? "set kernel.yama.ptrace_scope below 3 at the next boot: until then no "
			  "process may read the memory of another one"
		: process->may_trace
			? "run with sudo, or grant CAP_DAC_READ_SEARCH too"
			: "run with sudo, or grant CAP_SYS_PTRACE: kernel.yama.ptrace_scope "
			  "or the process itself forbids it");
}

void doctor_process_judge(const struct doctor_process *process, struct findings *checks)
{
	if (process->err) {
		judge_access(process, checks);
		return;
	}
	findings_add(checks, FINDING_OK, "process",
		     "%s, user %" PRIu32 "%s, %" PRIu32 " thread%s, %s%s", process->comm,
		     process->uid, process->uid == process->own_uid ? " (this user)" : "",
		     process->threads, process->threads == 1 ? "" : "s",
		     *process->exe ? process->exe : "an executable that cannot be read",
		     process->replaced ? " (replaced since it was started)" : "");
	judge_state(process, checks);
	judge_look(process, checks);
	if (process->inner_pid)
		findings_add(checks, FINDING_OK, "container",
			     "has PID %" PRIu32 " in its own PID namespace; shown here with the "
			     "host's PID",
			     process->inner_pid);
}

static void judge_cpu(const struct cgroup_limits *limits, struct findings *checks)
{
	double cpus = (double)limits->quota_us / (double)limits->period_us;
	double percent = 0;

	if (limits->periods)
		percent = (double)limits->throttled / (double)limits->periods * 100.0;
	findings_add(checks, percent < THROTTLED_PERCENT ? FINDING_OK : FINDING_WARN, "CPU limit",
		     "%.2f CPUs (cgroup); reached in %.1f %% of %s periods since it was made", cpus,
		     percent, FORMAT_COUNT(limits->periods));
	if (percent >= THROTTLED_PERCENT)
		findings_advise(checks, "raise or remove the limit, or use no more threads than it "
					"has CPUs: threads wait while it is reached");
}

/* Old files in the cache are thrown out at the limit too, so this need not be bad. */
static void judge_memory(const struct cgroup_limits *limits, struct findings *checks)
{
	findings_add(checks, FINDING_OK, "memory limit", "%s (cgroup); reached %s time%s",
		     FORMAT_BYTES(limits->memory_bytes), FORMAT_COUNT(limits->memory_hits),
		     limits->memory_hits == 1 ? "" : "s");
}

void doctor_process_judge_limits(const struct cgroup_limits *limits, struct findings *checks)
{
	if (limits->hidden) {
		findings_add(
			checks, FINDING_NOTE, "limits",
			"not known: its cgroup is not in this container's cgroup namespace, so "
			"limits of CPUs and memory are not seen, nor whether it is frozen");
		findings_advise(checks,
				"start this container with --cgroupns=host (docker, podman)");
	}
	if (limits->period_us)
		judge_cpu(limits, checks);
	if (limits->memory_bytes != UINT64_MAX)
		judge_memory(limits, checks);
}

static int search_steps(uint32_t thread, const struct target_options *options,
			function_vec *functions)
{
	struct target_seen *seen = target_seen__new();
	int found = seen ? target_find(thread, options, seen, functions) : -ENOMEM;

	target_seen__free(seen);
	return found;
}

/* Names as one list in to, which may cut the last one. */
static void list_names(char *to, size_t size, const function_vec *functions)
{
	size_t used = 0;

	*to = '\0';
	vec_for_each (function, functions) {
		if (used < size)
			used += (size_t)snprintf(to + used, size - used, "%s%.*s", used ? ", " : "",
						 NAME_SHOWN, (*function)->name);
	}
}

/* What to paste for each function, as one list in to. A text that does not fit is left out. */
static void list_options(char *to, size_t size, const function_vec *functions)
{
	char name[FINDING_TEXT_MAX];
	size_t used = 0;

	*to = '\0';
	vec_for_each (function, functions) {
		size_t length = text_quote(name, sizeof(name), step_function_alone(*function));

		if (used + length + strlen(", --step ") >= size)
			continue;
		used += (size_t)snprintf(to + used, size - used, "%s--step %s", used ? ", " : "",
					 name);
	}
}

static bool is_program_stripped(uint32_t thread, const struct target_options *options)
{
	bool stripped = false;
	ino_t program = proc_exe_inode((struct proc_ref){.tgid = thread});
	mapping_vec maps = {0};
	struct image image;

	if (!program || maps_read(thread, &maps))
		return false;
	vec_for_each (mapping, &maps) {
		if (mapping->inode != program)
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

/* No name says which function it is: the stacks of busy threads may. */
static void search_stacks(struct doctor_steps *steps, uint32_t thread,
			  const struct options *options)
{
	struct step_search search;

	steps->searched = !step_search(&search, thread, options, true, false);
	steps->search_end = search.end;
	if (steps->searched && search.end == STEP_SEARCH_FOUND) {
		const struct step_function *function = search.functions.items[0];

		snprintf(steps->best, sizeof(steps->best), "%s", step_function_alone(function));
		if (function->symbol)
			snprintf(steps->best_name, sizeof(steps->best_name), "%s", function->name);
		steps->best_per_s = rate_per_second(&search.rates[0]);
		steps->best_mean_ms = (double)search.rates[0].mean_ns / 1e6;
		steps->best_share = search.share;
	}
	step_search_clear(&search);
}

/* Nothing was found: why --step matched nothing, and what to use instead. */
static void read_alternatives(struct doctor_steps *steps, uint32_t tgid,
			      const struct target_options *options,
			      const struct options *all_options)
{
	uint32_t thread = processes_live_thread(tgid);
	struct stacks stacks = {.threads = 0};
	struct doctor_words ignored;

	if (steps->named && !steps->waits) {
		doctor_listen(&steps->words);
		target_explain_no_match(thread, options,
					python_guest_is_there(thread) ? TARGET_PYTHON_THERE
								      : TARGET_PYTHON_NONE);
		doctor_listen_end();
	}
	descendant_steps(steps->options, sizeof(steps->options), all_options);
	doctor_listen(&ignored);
	descendant_find(all_options, &(struct descendant_roots){&tgid, 1}, steps->named,
			&steps->descendant);
	doctor_listen_end();
	/* Of names like "decode" in the libraries of a Python program none is its step. */
	if (steps->descendant.tgid || steps->is_python)
		return;
	doctor_listen(&ignored);
	steps->idle = !stacks_sample(&stacks, thread, false) && !stacks.threads;
	if (stacks.threads)
		target_find_candidates(thread, options, &stacks.places, DOCTOR_CANDIDATES_MAX,
				       &steps->candidates);
	stacks_clear(&stacks);
	if (!steps->idle && !steps->candidates.count)
		search_stacks(steps, thread, all_options);
	steps->stripped = is_program_stripped(thread, options);
	doctor_listen_end();
}

void doctor_steps_read(struct doctor_steps *steps, uint32_t tgid, const struct options *options,
		       struct doctor_trial *trial)
{
	struct target_options target_options = target_options_of(options);
	uint32_t thread = processes_live_thread(tgid);

	*steps = (struct doctor_steps){
		.named = options->specs.count,
		.waits = options->wait_step,
		.follows = options->follow,
		.alone = options->detail == FBT_DETAIL_PROBES,
		.interval_ns = options->interval_ns,
		.wants_python = doctor_wants_python(options),
		.is_python = python_use_is_there(tgid),
	};
	steps->python_ready = steps->is_python && options->python != PYTHON_OFF &&
			      (options->python == PYTHON_INJECT || python_guest_is_there(tgid));
	doctor_listen(&steps->words);
	steps->found = search_steps(thread, &target_options, &steps->functions);
	doctor_listen_end();
	if (steps->found > 0)
		steps->probe_err = doctor_trial_probe(trial, &steps->functions, &steps->words);
	else if (!steps->found)
		read_alternatives(steps, tgid, &target_options, options);
}

static const char *describe_future(const struct step_function *function)
{
	switch (function->future.kind) {
	case FUTURE_KNOWN:
		return ", async: a step is all its calls for one future";
	case FUTURE_UNTOLD:
		return ", polls a future, and when that is ready cannot be told: each poll would "
		       "be a step";
	case FUTURE_NONE:
		break;
	}
	return "";
}

static void judge_function(const struct step_function *function, struct findings *checks)
{
	const char *path = function->path ? function->path : "";
	size_t exits = function->exit_offsets.count;
	struct ways_out ways = step_function_ways_out(function);
	char ends[FORMAT_WAYS_MAX + 64], tails[FORMAT_WAYS_MAX];

	if (function->uretprobe) {
		findings_add(checks, FINDING_WARN, "step function",
			     "%.*s, ended by a uretprobe: a panic or exception that passes through "
			     "it aborts the process; %.*s",
			     NAME_SHOWN, function->name, PATH_SHOWN, path);
		findings_advise(checks, "leave out --uretprobe");
		return;
	}
	if (exits)
		snprintf(ends, sizeof(ends), "%zu %s%s", exits,
			 function->usdt ? "USDT end" : "exit", exits == 1 ? "" : "s");
	else
		snprintf(ends, sizeof(ends), "%s%sends at its call sites",
			 format_ways_out(tails, &ways), function->tail_calls ? "; " : "");
	findings_add(checks, function->future.kind == FUTURE_UNTOLD ? FINDING_WARN : FINDING_OK,
		     "step function", "%.*s, %s%s%s%s, %.*s+0x%" PRIx64, NAME_SHOWN, function->name,
		     ends, function->builtin ? ", from the built-in table" : "",
		     function->unverified ? ", not measured yet" : "", describe_future(function),
		     PATH_SHOWN, path, function->address);
	if (function->future.kind == FUTURE_UNTOLD)
		findings_advise(checks, "name the function below it that does the work, and is not "
					"async");
}

static void judge_probe(const struct doctor_steps *steps, struct findings *checks)
{
	const char *words = doctor_words_text(&steps->words, checks, strerror(-steps->probe_err));

	if (steps->named || steps->alone)
		findings_add(checks, FINDING_FAIL, "step probes", "%s", words);
	else
		findings_add(checks, FINDING_WARN, "step probes",
			     "%s: steps would be fixed intervals of %s", words,
			     FORMAT_TIME(steps->interval_ns));
	findings_advise(checks, "use --step to name its caller or a function that it calls "
				"(--list-steps shows candidates)");
}

/* What is missing, and what that would mean. */
static void judge_missing(const struct doctor_steps *steps, struct findings *checks)
{
	if (steps->named && !steps->waits)
		findings_add(checks, FINDING_FAIL, "step function", "%s",
			     doctor_words_text(&steps->words, checks, "nothing matches --step"));
	else if (steps->named && steps->alone)
		findings_add(checks, FINDING_WARN, "step function",
			     "nothing matches --step yet: nothing is measured until it is loaded "
			     "(--wait-step, --detail probes)");
	else if (steps->alone)
		findings_add(checks, FINDING_FAIL, "step function",
			     "no function of the built-in table (llama.cpp, ferrum) found, and "
			     "--detail probes measures nothing else");
	else if (steps->named)
		findings_add(checks, FINDING_WARN, "step function",
			     "nothing matches --step yet: steps are intervals of %s until it is "
			     "loaded (--wait-step)",
			     FORMAT_TIME(steps->interval_ns));
	else
		findings_add(checks, FINDING_WARN, "step function",
			     "no function of the built-in table (llama.cpp, ferrum) found: steps "
			     "would be fixed intervals of %s",
			     FORMAT_TIME(steps->interval_ns));
}

static void advise_best(const struct doctor_steps *steps, struct findings *checks)
{
	char quoted[sizeof(steps->best) + 64];

	text_quote(quoted, sizeof(quoted), steps->best);
	findings_advise(
		checks,
		"use --step %s%s%.*s%s: a busy thread is in it for %.0f %% of its CPU time, "
		"by its stacks; it was probed for two seconds, and is called as a step is, "
		"%.1f times a second, mean %.3f ms",
		quoted, *steps->best_name ? " (" : "", NAME_SHOWN, steps->best_name,
		*steps->best_name ? ")" : "", steps->best_share * 100, steps->best_per_s,
		steps->best_mean_ms);
}

/* What the search by stacks came to, in front of what else can be done. */
static const char *describe_search(const struct doctor_steps *steps)
{
	if (!steps->searched)
		return "";
	switch (steps->search_end) {
	case STEP_SEARCH_NONE:
		return "no regular step found by the stacks of its busy threads; ";
	case STEP_SEARCH_STARVED:
		return "its threads are short of CPUs, so their stacks were not searched; ";
	case STEP_SEARCH_IDLE:
		return "its threads are nearly idle: run doctor again while it serves a request; "
		       "or ";
	case STEP_SEARCH_COSTLY:
	case STEP_SEARCH_PYTHON:
	case STEP_SEARCH_FOUND:
		break;
	}
	return "";
}

/* What is to be checked and traced instead of a launcher. */
static void advise_descendant(const struct doctor_steps *steps, struct findings *checks)
{
	const struct descendant *found = &steps->descendant;

	findings_advise(checks,
			"trace its %s %" PRIu32 " (%s), which has such a function: ferrum-bpftrace "
			"doctor %" PRIu32 "%s, then ferrum-bpftrace -p %" PRIu32 "%s; -p %" PRIu32
			" -f traces both",
			found->is_child ? "child" : "descendant", found->tgid, found->name,
			found->tgid, steps->options, found->tgid, steps->options, checks->tgid);
}

static void judge_none(const struct doctor_steps *steps, struct findings *checks)
{
	char names[FINDING_TEXT_MAX - 256];

	if (steps->is_python && steps->wants_python && steps->python_ready) {
		findings_add(checks, FINDING_NOTE, "step function",
			     "none in native code; its Python functions are looked for when the "
			     "trace begins");
		return;
	}
	if (steps->follows && steps->descendant.tgid) {
		findings_add(checks, FINDING_NOTE, "step function",
			     "none in it; its %s %" PRIu32 " (%s), which -f traces too, has one",
			     steps->descendant.is_child ? "child" : "descendant",
			     steps->descendant.tgid, steps->descendant.name);
		return;
	}
	judge_missing(steps, checks);
	if (steps->descendant.tgid) {
		advise_descendant(steps, checks);
		return;
	}
	if (steps->is_python) {
		findings_advise(checks, steps->wants_python
						? "see the line about Python"
						: "name a Python function (--step "
						  "py:MODULE:QUALNAME), or leave out --step");
		return;
	}
	if (*steps->best && strlen(steps->best) < BEST_SHOWN) {
		advise_best(steps, checks);
		return;
	}
	list_options(names, sizeof(names), &steps->candidates);
	if (*names)
		findings_advise(checks,
				"use %s: they have such names and its busy threads are in them; "
				"how often they are called is not known, since doctor probes "
				"nothing: ferrum-bpftrace --list-steps -p %" PRIu32 " measures it",
				names, checks->tgid);
	else if (steps->idle)
		findings_advise(checks,
				"run doctor again while it serves a request: its threads are idle, "
				"and candidates are what busy threads do; or name one with --step");
	else if (steps->stripped)
		findings_advise(
			checks,
			"%suse --symbols FILE with the unstripped file, --step string:TEXT with a "
			"message that only the step writes, or --step PATH+0xADDR with an address "
			"that nm prints: its executable is stripped",
			describe_search(steps));
	else
		findings_advise(checks,
				"%sname the function that makes one forward pass: --step SYMBOL, a "
				"glob, /REGEX/, PATH+0xADDR, string:TEXT or a USDT pair",
				describe_search(steps));
}

static void judge_failure(const struct doctor_steps *steps, struct findings *checks)
{
	findings_add(checks, FINDING_FAIL, "step function", "%s",
		     doctor_words_text(&steps->words, checks, strerror(-steps->found)));
	if (steps->found == -E2BIG)
		findings_advise(checks, "use PATH:NAME, or the full name");
	else if (steps->found == -EPERM)
		findings_advise(checks, "run with sudo");
	else
		findings_advise(checks,
				"run ferrum-bpftrace --list-steps -p %" PRIu32
				" to see functions that can be probed",
				checks->tgid);
}

void doctor_steps_judge(const struct doctor_steps *steps, struct findings *checks)
{
	if (steps->found < 0)
		judge_failure(steps, checks);
	else if (!steps->found)
		judge_none(steps, checks);
	else
		vec_for_each (function, &steps->functions)
			judge_function(*function, checks);
	if (steps->found > 0 && steps->probe_err)
		judge_probe(steps, checks);
}

bool doctor_steps_suffice(const struct doctor_steps *steps, bool has_python)
{
	if (steps->found)
		return steps->found > 0;
	/* A child that comes later may have it: only what --step names must be there. */
	if (steps->follows && (steps->descendant.tgid || !steps->named))
		return true;
	return steps->wants_python &&
	       (steps->python_ready || (steps->follows && has_python && steps->named));
}

void doctor_steps_clear(struct doctor_steps *steps)
{
	step_functions_free(&steps->functions);
	step_functions_free(&steps->candidates);
}

static bool is_code(const struct mapping *mapping, const void *ctx)
{
	(void)ctx;
	return mapping->path && mapping->executable;
}

/* Whether it maps a file that the built-in table knows, or CUDA. */
static bool is_likely_engine(uint32_t tgid)
{
	return maps_search(tgid, "llama", is_code, NULL) ||
	       maps_search(tgid, "ferrum", is_code, NULL) || cuda_use_is_there(tgid);
}

/* Adds the process if it is an engine. */
static void inspect(struct doctor_engines *engines, uint32_t tgid)
{
	struct target_options options = {.specs = NULL};
	struct doctor_engine engine = {.tgid = tgid};
	function_vec functions = {0};

	engine.cuda = cuda_use_is_there(tgid) && !cuda_use_is_inherited(tgid);
	if (search_steps(processes_live_thread(tgid), &options, &functions) > 0)
		list_names(engine.steps, sizeof(engine.steps), &functions);
	step_functions_free(&functions);
	if (!*engine.steps && !engine.cuda)
		return;
	if (engines->count == DOCTOR_ENGINES_MAX) {
		engines->more++;
		return;
	}
	proc_comm((struct proc_ref){.tgid = tgid}, engine.comm, sizeof(engine.comm));
	engines->items[engines->count++] = engine;
}

/* Likely engines first: the budget may not suffice for all processes. */
void doctor_engines_find(struct doctor_engines *engines, uint64_t budget_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + budget_ns;
	process_vec processes = {0};
	struct doctor_words ignored;

	*engines = (struct doctor_engines){.count = 0};
	doctor_listen(&ignored);
	processes_list(&processes);
	vec_for_each (process, &processes) {
		if (clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= end_ns ||
		    !is_likely_engine(process->tgid))
			continue;
		inspect(engines, process->tgid);
		process->tgid = 0;
	}
	vec_for_each (process, &processes) {
		if (!process->tgid)
			continue;
		if (clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= end_ns)
			engines->not_looked++;
		else
			inspect(engines, process->tgid);
	}
	doctor_listen_end();
	vec_free(&processes);
}

void doctor_engines_judge(const struct doctor_engines *engines, struct findings *checks)
{
	for (size_t i = 0; i < engines->count; i++) {
		const struct doctor_engine *engine = &engines->items[i];
		bool known = *engine->steps;

		findings_add(checks, known ? FINDING_OK : FINDING_NOTE, "engine",
			     "-p %" PRIu32 " (%s): %s%s", engine->tgid, engine->comm,
			     known ? engine->steps : "uses CUDA; no known step function",
			     known && engine->cuda ? "; uses CUDA" : "");
	}
	if (engines->more)
		findings_add(checks, FINDING_NOTE, "engines", "and %zu more", engines->more);
	if (!engines->count)
		findings_add(checks, FINDING_NOTE, "engines",
			     "none found: no process has a known step function (llama.cpp, ferrum) "
			     "or uses CUDA");
	if (engines->not_looked)
		findings_add(checks, FINDING_NOTE, "engines",
			     "%zu processes were not searched, to save time", engines->not_looked);
}
