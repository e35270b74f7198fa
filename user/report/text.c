/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The report as text: the headline, the escalations with their causes, and what was traced, lost
 * and paid for. Step functions, tables and warnings are written by the other files of this folder.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format.h"
#include "fbt_shared.h"
#include "output/slice.h"
#include "report/part.h"

#define TARGETS_MAX   8
#define CMDLINE_WIDTH 160
#define CAUSES_SHOWN  3

static void format_durations(const struct report *report, const struct tally_kind *kind, char *to,
			     size_t size)
{
	char p50[FORMAT_MAX], max[FORMAT_MAX];
	uint64_t p99_ns = stats__percentile(kind->duration, 0.99);
	uint64_t max_ns = stats__max(kind->duration);

	if (!stats__count(kind->duration)) {
		format_time(max, (double)kind->slowest[0].total_ns);
		snprintf(to, size, "none has returned, longest so far %s", max);
		return;
	}
	format_time(p50, (double)stats__percentile(kind->duration, 0.5));
	format_time(max, (double)max_ns);
	if (max_ns / 3 * 2 > p99_ns)
		snprintf(to, size, "p50 %s, p99 %s, max %s", p50, FORMAT_TIME(p99_ns), max);
	else
		snprintf(to, size, "p50 %s, p99 %s", p50, FORMAT_TIME(p99_ns));
	/* The longest of all is in none of these: they are of steps that returned. */
	if (report_was_open(report, &kind->slowest[0]) && kind->slowest[0].total_ns > max_ns)
		snprintf(to + strlen(to), size - strlen(to), ", one still open after %s",
			 FORMAT_TIME(kind->slowest[0].total_ns));
}

/* Of the processes that had no step function yet, if others are the main thing. */
static void write_intervals(const struct report *report, bool is_main)
{
	const struct tally_kind *kind = report->tally->kinds[0];
	char shares[128];

	report_shares(kind, shares, sizeof(shares));
	report_line(report, STYLE_BOLD, "%s%s %s of %s%s%s, no step function; %s",
		    is_main ? "" : "and ", FORMAT_COUNT(kind->steps),
		    kind->steps == 1 ? "interval" : "intervals",
		    FORMAT_TIME(report->window->record.interval_ns), is_main ? " in " : "",
		    is_main ? FORMAT_TIME(tally_window_ns(report->window)) : "", shares);
}

static void write_steps(const struct report *report, int index, bool is_main)
{
	const struct tally_kind *kind = report->tally->kinds[index];
	char name[64], durations[6 * FORMAT_MAX], shares[128];

	if (!index) {
		write_intervals(report, is_main);
		return;
	}
	report_shares(kind, shares, sizeof(shares));
	shorten_name(name, sizeof(name), window__kind_name(report->window, (uint32_t)index), 32);
	format_durations(report, kind, durations, sizeof(durations));
	report_line(report, STYLE_BOLD, "%s%s %s of %s%s%s: %s; %s", is_main ? "" : "and ",
		    FORMAT_COUNT(kind->steps), kind->steps == 1 ? "step" : "steps", name,
		    is_main ? " in " : "",
		    is_main ? FORMAT_TIME(tally_window_ns(report->window)) : "", durations, shares);
}

/* Other step functions in the headline. */
#define OTHERS_SHOWN 4

/* In the order of the report: the functions with the most steps need not come first. */
static void write_other_steps(const struct report *report, int main_kind)
{
	int count = 0;

	for (int i = 1; i < FBT_KIND_COUNT; i++) {
		if (i == main_kind || !report->tally->kinds[i])
			continue;
		if (count++ >= OTHERS_SHOWN)
			continue;
		write_steps(report, i, false);
	}
	if (count > OTHERS_SHOWN)
		report_line(report, STYLE_BOLD, "and steps of %d more functions",
			    count - OTHERS_SHOWN);
	if (main_kind && report->tally->kinds[0])
		write_steps(report, 0, false);
}

static bool has_profiled(const struct tally *tally)
{
	for (int i = 0; i < FBT_KIND_COUNT; i++) {
		if (tally->profiled[i])
			return true;
	}
	return false;
}

/* --torch-trace: what it has made of the steps is no figure of the engine. */
static void write_profiled(const struct report *report)
{
	const char *label = "Profiled";
	char name[64];

	for (int i = 0; i < FBT_KIND_COUNT; i++) {
		const struct stats *stats = report->tally->profiled[i];

		if (!stats)
			continue;
		shorten_name(name, sizeof(name), window__kind_name(report->window, (uint32_t)i),
			     40);
		report_field(report, label,
			     "%s %s of %s while PyTorch's profiler was on: p50 %s, p99 %s, max %s",
			     FORMAT_COUNT(stats__count(stats)),
			     stats__count(stats) == 1 ? "step" : "steps", name,
			     FORMAT_TIME(stats__percentile(stats, 0.5)),
			     FORMAT_TIME(stats__percentile(stats, 0.99)),
			     FORMAT_TIME(stats__max(stats)));
		label = "";
	}
	if (!*label)
		report_field(
			report, "",
			"they take several times as long as others, were not judged, and are in "
			"no other figure");
}

/* The first sentence. */
static void write_headline(const struct report *report)
{
	int kind = tally_main_kind(report->tally);

	if (kind < 0) {
		report_line(report, STYLE_BOLD, "No step was seen%s in %s",
			    has_profiled(report->tally) ? " without PyTorch's profiler" : "",
			    FORMAT_TIME(tally_window_ns(report->window)));
		return;
	}
	write_steps(report, kind, true);
	write_other_steps(report, kind);
}

static void write_targets(const struct report *report)
{
	const struct window *window = report->window;
	size_t count = window->processes.count;

	for (size_t i = 0; i < count && i < TARGETS_MAX; i++) {
		const struct process *process = window->processes.items[i];
		const char *shown = *process->cmdline ? process->cmdline : process->exe;
		char comm[40], cmdline[4 * CMDLINE_WIDTH + 1], end[FORMAT_MAX + 16] = "";

		shorten_text(comm, sizeof(comm), *process->comm ? process->comm : "?", 15);
		shorten_text(cmdline, sizeof(cmdline), shown, CMDLINE_WIDTH);
		if (process->exit_ns)
			snprintf(end, sizeof(end), ", exited after %s",
				 FORMAT_TIME(tally_process_ns(window, process)));
		report_field(report, i ? "" : "Target", "%" PRIu32 " %s%s: %s",
			     process->record.tgid, comm, end, *cmdline ? cmdline : "-");
	}
	if (count > TARGETS_MAX)
		report_field(report, "", "and %zu more processes", count - TARGETS_MAX);
}

/*
 * How its steps end: "3 exits probed", "1 tail call to decode, followed to 3 exits", "ends at 2
 * call sites".
 */
static void describe_ends(char *text, size_t size, const struct window *window, uint32_t kind)
{
	const struct fbt_kind *record = &window->kinds[kind].record;
	const struct fbt_ends *ends = &window->ends[kind];
	struct ways_out ways = window__ways_out(window, kind);
	char tails[FORMAT_WAYS_MAX];

	if (record->source == FBT_SOURCE_USDT) {
		snprintf(text, size, "USDT probes");
	} else if (!ends->kind && !record->exits) {
		snprintf(text, size, "uretprobe");
	} else if (ends->kind && ends->exits && ends->tail_calls) {
		snprintf(text, size, "%s, followed to %" PRIu32 " exit%s",
			 format_ways_out(tails, &ways), ends->exits, plural(ends->exits));
	} else if (!ends->kind || ends->exits) {
		snprintf(text, size, "%" PRIu32 " exit%s probed",
			 ends->kind ? ends->exits : record->exits,
			 plural(ends->kind ? ends->exits : record->exits));
	} else {
		format_ways_out(tails, &ways);
		snprintf(text, size, "%s%sends at %" PRIu32 " call site%s", tails,
			 *tails ? "; " : "", ends->sites, plural(ends->sites));
	}
}

static bool was_called(const struct report *report, uint32_t index)
{
	return report->tally->kinds[index] || report->window->ends[index].unseen_steps ||
	       report->window->late_polls[index];
}

static void write_function(const struct report *report, const char *label, uint32_t index)
{
	const struct kind *kind = &report->window->kinds[index];
	const struct fbt_ends *ends = &report->window->ends[index];
	const struct fbt_kind *record = &kind->record;
	uint64_t late_polls = report->window->late_polls[index];
	char name[1024], path[1024], place[1100], how[FORMAT_WAYS_MAX + 64];

	shorten_text(name, sizeof(name), kind->name, 240);
	shorten_text(path, sizeof(path), kind->path && *kind->path ? kind->path : "?", 200);
	if (record->address)
		snprintf(place, sizeof(place), "%s+0x%" PRIx64, path, (uint64_t)record->address);
	else
		snprintf(place, sizeof(place), "%s", path);
	describe_ends(how, sizeof(how), report->window, index);
	report_field(report, label, "%s (%s; %s%s)", name,
		     record->builtin ? "built-in table" : "--step", how,
		     was_called(report, index) ? "" : "; never called");
	report_field(report, "", "%s", place);
	if (record->header.flags & FBT_KIND_POLLED)
		report_field(report, "",
			     "each poll of it is a step, because when its future is "
			     "ready cannot be told: --step of the function below it "
			     "that does the work, and is not async, has whole steps");
	if (late_polls)
		report_field(report, "",
			     "%s poll%s of futures that began before the window%s: in no step",
			     FORMAT_COUNT(late_polls), plural(late_polls),
			     report->window->sampling[index].kind
				     ? ", or awaited while the probes were off"
				     : "");
	if (ends->unseen_steps)
		report_field(report, "", "%s call%s not traced: no probe was where they end",
			     FORMAT_COUNT(ends->unseen_steps), plural(ends->unseen_steps));
}

/* The table has functions of several versions of an engine: of those, the ones that are called. */
static void write_functions(const struct report *report)
{
	const struct window *window = report->window;
	bool is_known = !report->verbose && tally_main_kind(report->tally) > 0;
	const char *label = "Step function";
	uint32_t others = 0;

	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		if (!window->kind_known[i])
			continue;
		if (is_known && window->kinds[i].record.builtin && !was_called(report, i)) {
			others++;
			continue;
		}
		write_function(report, label, i);
		label = "";
	}
	if (others)
		report_field(report, label,
			     "%" PRIu32 " more of the built-in table, never called (-v lists them)",
			     others);
	if (!window->record.interval_ns)
		return;
	report_field(report, label, "%s: fixed intervals of %s",
		     tally_main_kind(report->tally) > 0 ? "none at first" : "none",
		     FORMAT_TIME(window->record.interval_ns));
}

static void write_window(const struct report *report)
{
	const struct window *window = report->window;
	const char *detail = detail_name(window->record.detail);
	char tag[128], host[256], kernel[256];

	shorten_text(tag, sizeof(tag), window->tag, 40);
	shorten_text(host, sizeof(host), window->host, 60);
	shorten_text(kernel, sizeof(kernel), window->kernel_release, 60);
	report_field(report, "Window", "%s, --detail %s, tag %s",
		     FORMAT_TIME(tally_window_ns(window)), detail ? detail : "unknown", tag);
	report_field(report, "Host", "%s, Linux %s", host, kernel);
}

static void write_incomplete(const struct report *report)
{
	const struct window *window = report->window;
	uint64_t open = tally_open_steps(report->tally, window);
	uint64_t cut = tally_all_cut_steps(report->tally, window);
	char text[160] = "";
	struct line line = {text, sizeof(text), 0};

	if (open)
		line_add(&line, " still open at the end: %s", FORMAT_COUNT(open));
	if (cut)
		line_add(&line, "%s cut off by switching probes off: %s", open ? "," : "",
			 FORMAT_COUNT(cut));
	report_field(report, "", "incomplete steps: %s%s%s", FORMAT_COUNT(window->incomplete_steps),
		     line.length ? ", of which" : "", text);
}

/* Always shown: that nothing was lost is worth a line. */
static void write_lost(const struct report *report)
{
	const struct window *window = report->window;
	char text[256] = "";
	struct line line = {text, sizeof(text), 0};

	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		if (window->lost.count[i])
			line_add(&line, "%s%s %s", line.length ? ", " : "", lost_cause_name(i),
				 FORMAT_COUNT(window->lost.count[i]));
	}
	report_field(report, "Records", line.length ? "lost %s (%s)" : "lost %s",
		     FORMAT_COUNT(window__lost_total(window)), text);
	write_incomplete(report);
	if (window->stacks.skipped)
		report_field(report, "",
			     "slow calls with a stack: %s; %s more have none: at most 50 a second "
			     "are taken, and 16 within 10 ms",
			     FORMAT_COUNT(window->stacks.taken),
			     FORMAT_COUNT(window->stacks.skipped));
	if (window->looks.skipped)
		report_field(report, "",
			     "waits that were looked at: %s; %s more were not: at most 10 a "
			     "second are",
			     FORMAT_COUNT(window->looks.taken),
			     FORMAT_COUNT(window->looks.skipped));
	if (window->looks.blind)
		report_field(report, "", "waits of which nothing could be seen: %s (see doctor)",
			     FORMAT_COUNT(window->looks.blind));
}

static void write_own_note(const struct report *report, const struct tally_kind *kind)
{
	char faults[128] = "";

	if (kind->faults_untimed == kind->parts_known)
		snprintf(faults, sizeof(faults), "page faults that need no disk and ");
	else if (kind->faults_untimed)
		snprintf(faults, sizeof(faults),
			 "the page faults of %s step%s, which were not timed, and ",
			 FORMAT_COUNT(kind->faults_untimed), kind->faults_untimed == 1 ? "" : "s");
	report_field(report, "Notes",
		     "own code is time on a CPU outside of syscalls, with %swaits for a GPU that "
		     "spin in user space; times of calls are without their waits for a CPU, but "
		     "max call is with them",
		     faults);
}

static void write_notes(const struct report *report)
{
	const struct tally *tally = report->tally;
	int main_kind = tally_main_kind(tally);

	if (!window__traces_calls(report->window)) {
		report_field(
			report, "Notes",
			main_kind >= 0 && tally->kinds[main_kind]->parts_known
				? "system calls were not traced (--detail probes): each part "
				  "includes the time in calls; asleep is in calls, for a page "
				  "from a disk, or off the CPU"
				: "system calls were not traced (--detail probes): \"rest\" is "
				  "own code, page faults and calls together, and \"cpu wait\" "
				  "includes that in calls");
		return;
	}
	if (main_kind >= 0 && tally->kinds[main_kind]->parts_known)
		write_own_note(report, tally->kinds[main_kind]);
	else if (main_kind >= 0)
		report_field(report, "Notes",
			     "compute is all time outside of system calls, including page faults "
			     "and waits for a GPU that spin in user space");
	if (tally->kinds[0])
		report_field(report, "",
			     "figures of an interval add up the time of all threads, so they may "
			     "exceed its length");
}

/* Target, step functions, lost records, cost, resolution, notes, files. */
static void write_about(const struct report *report)
{
	fputc('\n', report->out);
	write_targets(report);
	write_functions(report);
	write_window(report);
	write_lost(report);
	report_gpu_about(report);
	report_python(report);
	report_cost(report);
	write_notes(report);
	report_files(report);
}

/* Intervals, because the steps of a Python engine can only be seen from within. */
static void write_no_steps(const struct report *report)
{
	uint32_t tgid = report_offered_python(report->window);

	report_field(report, "Escalations",
		     "intervals are not judged; --step SPEC selects a step function");
	if (tgid)
		report_field(report, "",
			     "process %" PRIu32 " runs Python: with --python=inject each forward "
			     "pass of vLLM, SGLang or transformers is a step, with its batch size "
			     "and tokens (docs/python.md says what that does to the process)",
			     tgid);
}

#define UNJUDGED_MAX 160

/*
 * "fewer than 10 similar steps before"; of steps that have no true end, "left by an exception or
 * longjmp"; "intervals never are"; or several, with their numbers.
 */
static const char *unjudged_words(const struct report *report, const struct classify_counts *counts,
				  char text[UNJUDGED_MAX])
{
	const struct tally_kind *none = report->tally->kinds[0];
	uint64_t intervals = none ? min_u64(none->steps, counts->unjudged) : 0;
	uint64_t left = counts->unjudged - intervals;
	char few[64];
	const struct {
		uint64_t count;
		const char *words;
	} parts[] = {
		{sub_saturating(left, counts->late_ends), few},
		{min_u64(left, counts->late_ends), "left by an exception or longjmp"},
		{intervals, left ? "intervals, which never are" : "intervals never are"},
	};
	struct line line = {.text = text, .size = UNJUDGED_MAX};

	*text = '\0';
	snprintf(few, sizeof(few), "fewer than %d similar steps before", CLASS_KNOWN_STEPS);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!parts[i].count)
			continue;
		if (line.length)
			line_add(&line, "; ");
		if (parts[i].count < counts->unjudged)
			line_add(&line, "%s: ", FORMAT_COUNT(parts[i].count));
		line_add(&line, "%s", parts[i].words);
	}
	return text;
}

static void write_none(const struct report *report, const struct classify_counts *counts)
{
	char words[UNJUDGED_MAX];

	if (!tally_main_kind(report->tally) && !counts->judged)
		write_no_steps(report);
	else if (!counts->judged && (counts->late_ends || report->tally->kinds[0]))
		report_field(report, "Escalations", "no step was judged (%s)",
			     unjudged_words(report, counts, words));
	else if (!counts->judged)
		report_field(report, "Escalations",
			     "no step was judged: none had %d similar steps before",
			     CLASS_KNOWN_STEPS);
	else if (counts->unjudged)
		report_field(report, "Escalations", "no step was escalated: %s judged, %s not (%s)",
			     FORMAT_COUNT(counts->judged), FORMAT_COUNT(counts->unjudged),
			     unjudged_words(report, counts, words));
	else
		report_field(report, "Escalations", "no step was escalated: %s judged",
			     FORMAT_COUNT(counts->judged));
}

static void write_reasons(const struct report *report, const struct classify_counts *counts)
{
	char text[256] = "";
	struct line line = {text, sizeof(text), 0};

	for (int i = ESCALATION_NONE + 1; i < ESCALATION_REASON_COUNT; i++) {
		if (!counts->by_reason[i])
			continue;
		line_add(&line, "%s%s %s", line.length ? ", " : "",
			 escalation_reason_text((enum escalation_reason)i),
			 FORMAT_COUNT(counts->by_reason[i]));
	}
	report_field(report, "  reasons", "%s", text);
}

static void write_unjudged(const struct report *report, const struct classify_counts *counts)
{
	char words[UNJUDGED_MAX];

	if (counts->unjudged)
		report_field(report, "  not judged", "%s (%s)", FORMAT_COUNT(counts->unjudged),
			     unjudged_words(report, counts, words));
}

/* The escalations that are in the profile and in no other output. */
static void write_not_shown(const struct report *report, const struct classify_counts *counts)
{
	const struct escalation_thresholds *thresholds = classifier__thresholds(report->classifier);
	const char *label = "  not shown";

	if (counts->suppressed) {
		report_field(report, label,
			     "%s above the limit of %s in %g s (--rate-limit, --rate-interval)",
			     FORMAT_COUNT(counts->suppressed), FORMAT_COUNT(thresholds->rate_limit),
			     (double)thresholds->rate_interval_ns / NS_PER_S);
		label = "";
	}
	if (counts->repeated) {
		report_field(report, label,
			     "%s more in classes already reported as unsteady (shown once per "
			     "--cv-window steps)",
			     FORMAT_COUNT(counts->repeated));
		label = "";
	}
	if (counts->as_usual) {
		report_field(report, label,
			     "%s in unsteady classes that took about as long as is usual there",
			     FORMAT_COUNT(counts->as_usual));
		label = "";
	}
	if (!*label)
		report_field(report, label,
			     "counted here and in the profile (not_shown), not in the trace");
}

/* Where most of the slow calls of a cause were made. */
static void write_stack(const struct report *report, const struct cause_tally *cause)
{
	const struct cause_stack *stack = cause_tally_stack(cause);
	char text[4 * FRAMES_SIZE];

	if (!stack)
		return;
	shorten_text(text, sizeof(text), stack->text, FRAMES_SIZE);
	if (stack->steps < cause->steps)
		report_field(report, "     in", "%s (%s of %s steps)", text,
			     FORMAT_COUNT(stack->steps), FORMAT_COUNT(cause->steps));
	else
		report_field(report, "     in", "%s", text);
}

static void write_end(const struct report *report, const struct cause_tally *cause)
{
	char text[4 * FRAMES_SIZE + 64];
	struct line line = {text, sizeof(text), 0};

	shorten_text(text, sizeof(text), cause->worst_waker, FRAMES_SIZE);
	line.length = strlen(text);
	ended_after_add(&line, cause->worst_after_ns);
	if (*cause->worst_waker)
		report_field(report, "     ended in", "%s", text);
}

static void write_cause(const struct report *report, int rank, enum cause_kind kind)
{
	const struct cause_tally *cause = &report->tally->escalations.causes[kind];
	char words[CAUSE_WORDS_SIZE];
	char about[FORMAT_MAX + 5], worst[FORMAT_MAX + 1], evidence[4 * EVIDENCE_SIZE];
	char others[4 * LOOK_OTHERS_SIZE];

	cause_words(kind, words);
	/* Of copies it is not known what is usual, so this is all of their time. */
	snprintf(about, sizeof(about), "%s%s%s", cause->estimated ? "~" : "",
		 FORMAT_TIME(cause->extra_ns), kind == CAUSE_GPU_TRANSFER ? " all" : "");
	snprintf(worst, sizeof(worst), "#%" PRIu64, cause->worst_step);
	fprintf(report->out, "  %d  %-20s %9s %11s %11s %9s\n", rank, words,
		FORMAT_COUNT(cause->steps), about, worst, FORMAT_TIME(cause->worst_total_ns));
	shorten_text(evidence, sizeof(evidence), cause->worst_evidence, EVIDENCE_SIZE);
	report_field(report, "     evidence", "%s", evidence);
	write_stack(report, cause);
	write_end(report, cause);
	shorten_text(evidence, sizeof(evidence), cause->worst_holder, FRAMES_SIZE);
	if (*evidence)
		report_field(report, "     held in", "%s", evidence);
	shorten_text(others, sizeof(others), cause->worst_others, LOOK_OTHERS_SIZE);
	if (*others && !cause->worst_is_known)
		report_field(report, "     meanwhile", "%s", others);
	report_explained(report, &cause->explained);
	report_field(report, "     advice", "%s",
		     cause_advice_beside(kind, cause->worst_is_named, cause->worst_calls_known,
					 report->window->record.detail));
}

/* Leaves out causes that cost no time: a step escalated by hand may be as fast as any. */
static void write_causes(const struct report *report)
{
	const struct escalation_tally *tally = &report->tally->escalations;
	enum cause_kind order[CAUSE_COUNT];
	int count = escalation_tally_sort(tally, order);

	while (count && !tally->causes[order[count - 1]].extra_ns)
		count--;
	if (!count)
		return;
	fputc('\n', report->out);
	report_line(report, STYLE_DIM, "  %-23s %9s %11s %11s %9s", "most expensive causes",
		    "steps", "extra time", "worst step", "took");
	for (int i = 0; i < count && i < CAUSES_SHOWN; i++)
		write_cause(report, i + 1, order[i]);
	if (count > CAUSES_SHOWN)
		fprintf(report->out, "  and %d more (--report json has all)\n",
			count - CAUSES_SHOWN);
}

/* Says what steps were not judged by: otherwise it would seem that no step waited in a call. */
static void write_limits(const struct report *report)
{
	if (!window__traces_calls(report->window) && classifier__counts(report->classifier)->judged)
		report_field(
			report, "  judged by",
			"waits for a CPU and page faults; calls were not traced, so a step that "
			"is slow for them is not named");
}

/* How many steps were escalated, and the most expensive causes. */
static void write_escalations(const struct report *report)
{
	const struct classify_counts *counts = classifier__counts(report->classifier);

	if (tally_main_kind(report->tally) < 0)
		return;
	fputc('\n', report->out);
	if (!counts->escalated) {
		write_none(report, counts);
		write_limits(report);
		return;
	}
	report_line(report, STYLE_BOLD, "Escalations: %s of %s steps",
		    FORMAT_COUNT(counts->escalated),
		    FORMAT_COUNT(counts->judged + counts->unjudged));
	write_reasons(report, counts);
	write_limits(report);
	write_unjudged(report, counts);
	write_not_shown(report, counts);
	write_causes(report);
}

void report_text_write(const struct report *report)
{
	const struct tally *tally = report->tally;
	int main_kind = tally_main_kind(tally);

	write_headline(report);
	report_hangs(report);
	report_gpu_headline(report);
	report_findings(report);
	report_warnings(report);
	report_gpu_warnings(report);
	write_escalations(report);
	report_ranks(report);
	if (main_kind >= 0)
		report_kind(report, main_kind);
	for (int i = 0; i < FBT_KIND_COUNT; i++)
		if (tally->kinds[i] && i != main_kind)
			report_kind(report, i);
	report_driver(report);
	report_processes(report);
	fputs(has_profiled(tally) ? "\n" : "", report->out);
	write_profiled(report);
	write_about(report);
}
