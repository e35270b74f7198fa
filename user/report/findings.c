/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What is worth a look, most time at stake first: in the first lines of the report, and in JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "model/syscalls.h"
#include "report/part.h"

/*
 * Share of the step time above which a part is a finding. Calls of a category have a limit of their
 * own.
 */
#define PART_PERCENT 10
#define CALL_PERCENT 30
/*
 * Least share of waits for a CPU, both in the time that threads were ready to run and in the
 * window.
 */
#define THREADS_PERCENT 10
/* Share of the time of all steps that a cause of escalations took more than usual. */
#define CAUSE_PERCENT 1
/* Share of a wait for a CPU above which the step's own threads are what it waited for. */
#define OWN_PERCENT 50
/* Share of the time of all steps above which garbage collection is a finding. */
#define COLLECTION_PERCENT 5
/* How many are shown in the text. */
#define SHOWN_MAX 4

enum finding_kind {
	FOUND_PART,    /* time of a step function where none or less should be */
	FOUND_THREADS, /* threads of a process that waited for a CPU */
	FOUND_CAUSE,   /* of escalated steps */
	FOUND_RANK,    /* that was late */
	FOUND_GARBAGE, /* garbage collections of CPython, in all steps */
};

/* How many CPUs the threads of a process may use, and how many threads wanted to run. */
struct room {
	double cpus; /* 0: not known */
	bool limited;
	double runnable; /* threads for each of them, on average */
};

struct report_finding {
	enum finding_kind kind;
	uint64_t ns; /* at stake */
	double percent;
	int function; /* FOUND_PART */
	enum step_part part;
	enum cause_kind cause;
	const struct team_tally *team; /* FOUND_RANK */
	const struct rank_tally *rank;
	const struct process *process; /* FOUND_THREADS, and of a wait for a CPU */
	const struct fbt_thread_use *worst;
	struct room room;
	struct tally_stalls stalls; /* FOUND_GARBAGE */
	bool is_all;		    /* FOUND_THREADS: all threads, not only those without steps */
};

typedef VEC(struct report_finding) finding_vec;

static int compare_findings(const void *left, const void *right)
{
	const struct report_finding *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	if (a->kind != b->kind)
		return (int)a->kind - (int)b->kind;
	if (a->rank && b->rank)
		return a->rank->tgid < b->rank->tgid ? -1 : 1;
	if (a->function != b->function)
		return a->function - b->function;
	return (int)a->part - (int)b->part;
}

static struct room find_room(const struct window *window, const struct process *process)
{
	const struct fbt_cpus *record = &process->cpus;
	const struct fbt_thread_use *rest = &process->threads.rest;
	double ready_ns = (double)rest->cpu_ns + (double)rest->delay_ns;
	double traced_ns = (double)tally_process_ns(window, process);
	struct room room = {.cpus = record->cpus};

	if (record->quota_ns && record->period_ns &&
	    (double)record->quota_ns < room.cpus * (double)record->period_ns) {
		room.cpus = (double)record->quota_ns / (double)record->period_ns;
		room.limited = true;
	}
	vec_for_each (use, &process->threads.threads)
		ready_ns += (double)use->cpu_ns + (double)use->delay_ns;
	if (room.cpus > 0 && traced_ns > 0)
		room.runnable = ready_ns / traced_ns / room.cpus;
	return room;
}

static bool is_most_gil(const struct tally_kind *kind)
{
	return kind->stalls.gil_ns > kind->parts_ns[STEP_CALLS + FBT_FUTEX] / 2;
}

static int part_percent(const struct tally_kind *kind, enum step_part part)
{
	/* Waits for workers are work; waits for the GIL are not. */
	if (part == STEP_CALLS + FBT_FUTEX && is_most_gil(kind))
		return PART_PERCENT;
	if (part >= STEP_CALLS && part < STEP_CALLS + FBT_CATEGORY_COUNT)
		return CALL_PERCENT;
	/* Own code is no problem, nor is sleep that may be in calls: never a finding. */
	if (part == STEP_OWN || (part == STEP_OFF_CPU && !tally_calls_known(kind)))
		return 101;
	return PART_PERCENT;
}

/* The process whose steps waited longest for a CPU. NULL: it is not known. */
static const struct process *longest_waiter(const struct window *window,
					    const struct tally_kind *kind)
{
	const struct shortage_waiter *longest = NULL;

	vec_for_each (waiter, &kind->shortage.waiters) {
		if (!longest || waiter->wait_ns > longest->wait_ns)
			longest = waiter;
	}
	return longest ? window__process(window, longest->tgid) : NULL;
}

static void find_parts(const struct report *report, int function, finding_vec *found)
{
	const struct tally_kind *kind = report->tally->kinds[function];

	for (int i = 0; kind && i < STEP_PARTS; i++) {
		enum step_part part = (enum step_part)i;
		int least = part_percent(kind, part);
		struct report_finding finding = {
			.kind = FOUND_PART,
			.ns = kind->parts_ns[i],
			.percent = percent_of((double)kind->parts_ns[i], (double)kind->total_ns),
			.function = function,
			.part = part,
			.process =
				part == STEP_CPU_WAIT ? longest_waiter(report->window, kind) : NULL,
		};
		uint64_t usual_ns = sub_saturating(finding.ns, kind->escalated_part_ns[i]);

		if (percent_of((double)usual_ns, (double)kind->total_ns) < least)
			continue;
		if (finding.process)
			finding.room = find_room(report->window, finding.process);
		vec_push(found, finding);
	}
}

/*
 * Threads that waited for a CPU. If steps were seen, only threads that run no steps count: the
 * waits of the others are a part of their steps. A step whose workers have no CPU waits for them,
 * perhaps in a loop, and that wait looks like its own code.
 */
static void find_threads(const struct report *report, const struct process *process,
			 finding_vec *found)
{
	const struct thread_table *table = &process->threads;
	uint64_t cpu_ns = table->rest.cpu_ns, delay_ns = table->rest.delay_ns, most_ns = 0;
	uint64_t window_ns = tally_window_ns(report->window);
	struct report_finding finding = {
		.kind = FOUND_THREADS,
		.process = process,
		.is_all = tally_main_kind(report->tally) <= 0,
	};

	if (!finding.is_all) {
		cpu_ns = sub_saturating(cpu_ns, table->rest_steps_cpu_ns);
		delay_ns = sub_saturating(delay_ns, table->rest_steps_delay_ns);
	}
	vec_for_each (use, &table->threads) {
		if (!finding.is_all && use->header.flags & FBT_USE_STEPS)
			continue;
		cpu_ns = add_saturating(cpu_ns, use->cpu_ns);
		delay_ns = add_saturating(delay_ns, use->delay_ns);
		if (use->delay_ns <= most_ns)
			continue;
		finding.worst = use;
		most_ns = use->delay_ns;
	}
	finding.ns = delay_ns;
	finding.percent = percent_of((double)delay_ns, (double)cpu_ns + (double)delay_ns);
	if (!finding.worst || finding.percent < THREADS_PERCENT ||
	    percent_of((double)delay_ns, (double)window_ns) < THREADS_PERCENT)
		return;
	finding.room = find_room(report->window, process);
	vec_push(found, finding);
}

static uint64_t all_steps_ns(const struct tally *tally)
{
	uint64_t ns = 0;

	for (int i = 1; i < FBT_KIND_COUNT; i++) {
		if (tally->kinds[i])
			ns = add_saturating(ns, tally->kinds[i]->total_ns);
	}
	return ns;
}

static void find_causes(const struct report *report, finding_vec *found)
{
	double steps_ns = (double)all_steps_ns(report->tally);

	for (int i = 0; i < CAUSE_COUNT; i++) {
		uint64_t ns = report->tally->escalations.causes[i].extra_ns;
		struct report_finding finding = {
			.kind = FOUND_CAUSE,
			.ns = ns,
			.percent = percent_of((double)ns, steps_ns),
			.cause = (enum cause_kind)i,
		};

		if (finding.percent >= CAUSE_PERCENT)
			vec_push(found, finding);
	}
}

static void find_ranks(const struct report *report, finding_vec *found)
{
	vec_for_each (entry, &report->tally->iterations.teams) {
		const struct team_tally *team = *entry;

		if (!team_tally_is_shown(team))
			continue;
		vec_for_each (rank, &team->ranks) {
			struct report_finding finding = {
				.kind = FOUND_RANK,
				.ns = rank->late_ns,
				.percent = percent_of((double)rank->late_ns,
						      (double)stats__sum(team->duration)),
				.team = team,
				.rank = rank,
			};

			if (finding.percent >= CAUSE_PERCENT)
				vec_push(found, finding);
		}
	}
}

/* Those of escalated steps are a finding of their own. */
static void find_garbage(const struct report *report, finding_vec *found)
{
	uint64_t escalated_ns =
		report->tally->escalations.causes[CAUSE_GARBAGE_COLLECTION].extra_ns;
	struct report_finding finding = {.kind = FOUND_GARBAGE};
	struct tally_stalls *sum = &finding.stalls;
	double steps_ns = (double)all_steps_ns(report->tally);

	for (int i = 1; i < FBT_KIND_COUNT; i++) {
		if (report->tally->kinds[i])
			tally_add_garbage(sum, &report->tally->kinds[i]->stalls);
	}
	finding.ns = sum->gc_ns;
	finding.percent = percent_of((double)sum->gc_ns, steps_ns);
	if (percent_of((double)sub_saturating(sum->gc_ns, escalated_ns), steps_ns) >=
	    COLLECTION_PERCENT)
		vec_push(found, finding);
}

/* Without memory a finding is left out. */
static void find_all(const struct report *report, finding_vec *found)
{
	for (int i = 1; i < FBT_KIND_COUNT; i++)
		find_parts(report, i, found);
	for (size_t i = 0; i < report->window->processes.count; i++)
		find_threads(report, report->window->processes.items[i], found);
	find_causes(report, found);
	find_ranks(report, found);
	find_garbage(report, found);
	vec_sort(found, compare_findings);
}

/* " (2 CPUs, 3.1 runnable threads of the process each)", or "". */
static const char *room_words(const struct room *room, char text[96])
{
	*text = '\0';
	if (room->cpus > 0 && room->limited)
		snprintf(text, 96,
			 " (CPU limit %.3g, %.1f runnable threads of the process for each CPU)",
			 room->cpus, room->runnable);
	else if (room->cpus > 0)
		snprintf(text, 96, " (%.0f %s, %.1f runnable threads of the process%s)", room->cpus,
			 room->cpus > 1 ? "CPUs" : "CPU", room->runnable,
			 room->cpus > 1 ? " each" : "");
	return text;
}

/* Of page faults: a memory limit explains most of their time. Memory cannot be kept below it. */
static bool is_memory_limit(const struct tally_kind *kind, enum step_part part)
{
	return (part == STEP_FAULTS || part == STEP_DISK_WAIT) &&
	       kind->shortage.limited_ns[part] > kind->parts_ns[part] / 2;
}

/* " (its cgroup was at its memory limit 5,120 times)", or "". */
static const char *limit_words(const struct tally_kind *kind, enum step_part part, char text[96])
{
	struct line line = {.text = text, .size = 96};

	*text = '\0';
	if (!is_memory_limit(kind, part))
		return text;
	line_add(&line, " (its cgroup was at its memory limit %s",
		 kind->shortage.limited.count > 1 ? "at least " : "");
	line_add_times(&line, kind->shortage.limited_hits);
	line_add(&line, ")");
	return text;
}

/* Of the time off the CPU: the host of this virtual machine took most of it. */
static bool is_steal(const struct tally_kind *kind, enum step_part part)
{
	return part == STEP_OFF_CPU && kind->shortage.steal_ns > kind->parts_ns[part] / 2;
}

/* " (the host of this virtual machine took its CPU for 1.20 s)", or "". */
static const char *steal_words(const struct tally_kind *kind, enum step_part part, char text[96])
{
	*text = '\0';
	if (is_steal(kind, part))
		snprintf(text, 96, " (the host of this virtual machine took its CPU for %s)",
			 FORMAT_TIME(kind->shortage.steal_ns));
	return text;
}

/* In which of several processes: " in process 7", ", longest in process 7", or "". */
static const char *waiter_words(const struct report *report, const struct report_finding *finding,
				char text[48])
{
	const struct tally_kind *kind = report->tally->kinds[finding->function];

	*text = '\0';
	if (finding->process && report->window->processes.count > 1)
		snprintf(text, 48, "%s in process %" PRIu32,
			 kind->shortage.waiters.count > 1 ? ", longest" : "",
			 finding->process->record.tgid);
	return text;
}

static const char *part_advice(const struct tally_kind *kind, enum step_part part)
{
	if (part == STEP_CALLS + FBT_FUTEX && is_most_gil(kind))
		return "most of it waiting for the GIL: find out which threads hold it; they "
		       "compute in Python, or in C code that does not release it (--detail all "
		       "shows their calls)";
	switch ((int)part) {
	case STEP_FAULTS:
	case STEP_DISK_WAIT:
		return cause_advice(is_memory_limit(kind, part) ? CAUSE_MEMORY_LIMIT
								: CAUSE_PAGE_FAULTS);
	case STEP_STOPPED:
		return cause_advice(CAUSE_STOPPED);
	case STEP_OFF_CPU:
		return cause_advice(is_steal(kind, part) ? CAUSE_STEAL : CAUSE_OFF_CPU);
	case STEP_AWAIT:
		return cause_advice(CAUSE_AWAIT);
	case STEP_CPU_WAIT:
		return cause_advice(CAUSE_RUN_QUEUE);
	case STEP_CALLS + FBT_MMAP:
		return cause_advice(CAUSE_ALLOCATION_CHURN);
	case STEP_CALLS + FBT_FUTEX:
		return "find out which threads it waits for (--detail all shows their calls)";
	case STEP_CALLS + FBT_IOCTL:
		return cause_advice(CAUSE_DRIVER_CALLS);
	case STEP_CALLS + FBT_OTHER:
		return cause_advice(CAUSE_OTHER_CALLS);
	default:
		return cause_advice(CAUSE_FILE_IO);
	}
}

static void write_part(const struct report *report, const struct report_finding *finding)
{
	const struct tally_kind *kind = report->tally->kinds[finding->function];
	bool is_call = finding->part >= STEP_CALLS && finding->part < STEP_FAULTS;
	char name[64], where[48], room[96], limit[96], steal[96];

	shorten_name(name, sizeof(name),
		     window__kind_name(report->window, (uint32_t)finding->function), 32);
	report_line(report, STYLE_WARN,
		    "! %.0f %% of the time of %s (%s) was spent %s%s%s%s%s%s%s: %s",
		    finding->percent, name, FORMAT_TIME(finding->ns), is_call ? "in " : "",
		    report_part_words(kind, finding->part), is_call ? " calls" : "",
		    waiter_words(report, finding, where), room_words(&finding->room, room),
		    limit_words(kind, finding->part, limit),
		    steal_words(kind, finding->part, steal), part_advice(kind, finding->part));
}

static void write_threads(const struct report *report, const struct report_finding *finding)
{
	const struct fbt_thread_use *worst = finding->worst;
	char name[64], room[96];

	shorten_text(name, sizeof(name), report_thread_name(report, worst), 15);
	report_line(report, STYLE_WARN,
		    "! %s threads of process %" PRIu32
		    " waited for a CPU for %s, %.0f %% of the time that they were ready to run%s, "
		    "most of all %s (tid %" PRIu32 ", %s): %s",
		    finding->is_all ? "the" : "the other", finding->process->record.tgid,
		    FORMAT_TIME(finding->ns), finding->percent, room_words(&finding->room, room),
		    name, worst->tid, FORMAT_TIME(worst->delay_ns), cause_advice(CAUSE_RUN_QUEUE));
}

/*
 * Of the waits for a CPU that were looked at, what threads of the step's own process had; negative:
 * none was looked at.
 */
static double own_percent(const struct cause_tally *cause, const struct report_finding *finding)
{
	const struct explained_tally *explained = &cause->explained;

	if (finding->cause != CAUSE_RUN_QUEUE || !explained->waited_ns)
		return -1;
	return percent_of((double)explained->own_ns, (double)explained->waited_ns);
}

/* What the time of a cause is measured against. */
static const char *extra_words(enum cause_kind kind, const struct cause_tally *cause)
{
	/* All of it: they are found by their share of the step, whatever is usual. */
	if (kind == CAUSE_GPU_TRANSFER)
		return "of copies";
	return cause->is_usual * 2 > cause->steps ? "over the budget" : "more than usual";
}

static void write_cause(const struct report *report, const struct report_finding *finding)
{
	const struct cause_tally *cause = &report->tally->escalations.causes[finding->cause];
	double own = own_percent(cause, finding);
	char words[CAUSE_WORDS_SIZE], about_own[96] = "";

	cause_words(finding->cause, words);
	if (own >= OWN_PERCENT)
		snprintf(about_own, sizeof(about_own),
			 ", %.0f %% of what was seen by its own threads: more threads than CPUs",
			 own);
	report_line(report, STYLE_WARN, "! %s%s: %s%s %s in %s escalated %s (%s#%" PRIu64 ")%s",
		    words, finding->cause == CAUSE_UNKNOWN ? " cause" : "",
		    cause->estimated ? "about " : "", FORMAT_TIME(finding->ns),
		    extra_words(finding->cause, cause), FORMAT_COUNT(cause->steps),
		    cause->steps == 1 ? "step" : "steps", cause->steps == 1 ? "" : "most in ",
		    cause->worst_step, about_own);
}

static void write_rank(const struct report *report, const struct report_finding *finding)
{
	const struct late *worst = &finding->rank->worst;
	char title[PROCESS_TITLE_MAX], name[PROCESS_TITLE_MAX];

	window__process_title(report->window, finding->rank->tgid, title);
	shorten_text(name, sizeof(name), title, 20);
	report_line(report, STYLE_WARN,
		    "! rank %s (process %" PRIu32
		    ") was late in %s of %s iterations, by %s in all: "
		    "at worst %s, %s",
		    name, finding->rank->tgid, FORMAT_COUNT(finding->rank->late),
		    FORMAT_COUNT(finding->team->iterations), FORMAT_TIME(finding->ns),
		    FORMAT_TIME(worst->total_ns),
		    late_cause_words(worst->cause, finding->team->calls_known));
}

static void write_garbage(const struct report *report, const struct report_finding *finding)
{
	const struct tally_stalls *stalls = &finding->stalls;
	char generation[32] = "";

	if (stalls->gc_generation < FBT_GENERATION_UNKNOWN)
		snprintf(generation, sizeof(generation), " of generation %" PRIu32,
			 stalls->gc_generation);
	report_line(report, STYLE_WARN,
		    "! %.0f %% of all step time (%s) was garbage collection: %s %s, the longest "
		    "%s%s: %s",
		    finding->percent, FORMAT_TIME(finding->ns), FORMAT_COUNT(stalls->gc_count),
		    stalls->gc_count == 1 ? "collection" : "collections",
		    FORMAT_TIME(stalls->gc_longest_ns), generation,
		    cause_advice(CAUSE_GARBAGE_COLLECTION));
}

static void write_finding(const struct report *report, const struct report_finding *finding)
{
	switch (finding->kind) {
	case FOUND_PART:
		write_part(report, finding);
		break;
	case FOUND_THREADS:
		write_threads(report, finding);
		break;
	case FOUND_CAUSE:
		write_cause(report, finding);
		break;
	case FOUND_RANK:
		write_rank(report, finding);
		break;
	case FOUND_GARBAGE:
		write_garbage(report, finding);
		break;
	}
}

void report_findings(const struct report *report)
{
	finding_vec found = {0};

	find_all(report, &found);
	for (size_t i = 0; i < found.count && i < SHOWN_MAX; i++)
		write_finding(report, &found.items[i]);
	if (found.count > SHOWN_MAX)
		report_line(report, STYLE_WARN, "! and %zu more (--report json has all)",
			    found.count - SHOWN_MAX);
	vec_free(&found);
}

static void put_room(struct json *json, const struct report_finding *finding)
{
	if (finding->process)
		json_uint(json, "pid", finding->process->record.tgid);
	if (!(finding->room.cpus > 0))
		return;
	json_double(json, "cpus", finding->room.cpus);
	json_double(json, "runnable_per_cpu", finding->room.runnable);
}

static void put_cause(struct json *json, const struct cause_tally *cause,
		      const struct report_finding *finding)
{
	double own = own_percent(cause, finding);

	json_string(json, "cause", cause_name(finding->cause));
	json_uint(json, "steps", cause->steps);
	json_uint(json, "worst_step", cause->worst_step);
	if (own >= 0)
		json_double(json, "own_threads_percent", own);
}

static void put_finding(struct json *json, const struct report *report,
			const struct report_finding *finding)
{
	static const char *const kinds[] = {
		[FOUND_PART] = "part",
		[FOUND_THREADS] = "threads",
		[FOUND_CAUSE] = "cause",
		[FOUND_RANK] = "rank",
		[FOUND_GARBAGE] = "garbage_collection",
	};
	const struct tally_kind *kind = report->tally->kinds[finding->function];

	json_object_begin(json, NULL);
	json_string(json, "kind", kinds[finding->kind]);
	json_uint(json, "ns", finding->ns);
	json_double(json, "percent", finding->percent);
	if (finding->kind == FOUND_PART) {
		json_string(json, "function",
			    window__kind_name(report->window, (uint32_t)finding->function));
		json_string(json, "part", step_part_name(finding->part, tally_calls_known(kind)));
		put_room(json, finding);
		if (is_memory_limit(kind, finding->part))
			json_uint(json, "memory_limit_hits", kind->shortage.limited_hits);
		if (is_steal(kind, finding->part))
			json_uint(json, "steal_ns", kind->shortage.steal_ns);
	} else if (finding->kind == FOUND_THREADS) {
		put_room(json, finding);
		json_bool(json, "with_step_threads", finding->is_all);
		json_uint(json, "worst_tid", finding->worst->tid);
		json_uint(json, "worst_ns", finding->worst->delay_ns);
	} else if (finding->kind == FOUND_RANK) {
		json_uint(json, "pid", finding->rank->tgid);
		json_uint(json, "late", finding->rank->late);
		json_string(
			json, "worst_cause",
			late_cause_name(finding->rank->worst.cause, finding->team->calls_known));
	} else if (finding->kind == FOUND_GARBAGE) {
		json_uint(json, "collections", finding->stalls.gc_count);
		json_uint(json, "longest_ns", finding->stalls.gc_longest_ns);
		if (finding->stalls.gc_generation < FBT_GENERATION_UNKNOWN)
			json_uint(json, "longest_generation", finding->stalls.gc_generation);
	} else {
		put_cause(json, &report->tally->escalations.causes[finding->cause], finding);
	}
	json_object_end(json);
}

void report_json_findings(struct json *json, const struct report *report)
{
	finding_vec found = {0};

	find_all(report, &found);
	json_array_begin(json, "findings");
	vec_for_each (finding, &found)
		put_finding(json, report, finding);
	json_array_end(json);
	vec_free(&found);
}
