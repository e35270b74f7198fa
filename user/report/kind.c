/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One step function in the text report, and the table of system calls of each process.
 *
 * report_kind writes a step function: report_durations the percentiles, user/report/times.c the
 * table "time in", write_slowest and write_slow the slowest steps, or write_slowest_untraced where
 * calls are not traced. write_process and write_syscall write the table of system calls, whose
 * figures (struct fbt_table) the kernel side counts.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"
#include "model/syscalls.h"
#include "report/part.h"

#define ROWS_MAX      12
#define PROCESSES_MAX 4

void report_durations(const struct report *report, const char *what, uint64_t count,
		      const struct stats *duration)
{
	const double points[] = {0.5, 0.95, 0.99, 1};

	report_line(report, STYLE_DIM, "  %10s %9s %9s %9s %9s %9s %9s", what, "p50", "p95", "p99",
		    "max", "mean", "CV");
	fprintf(report->out, "  %10s", FORMAT_COUNT(count));
	for (int i = 0; i < 4; i++)
		fprintf(report->out, " %9s", FORMAT_TIME(stats__percentile(duration, points[i])));
	fprintf(report->out, " %9s", FORMAT_TIME(stats__mean(duration)));
	fprintf(report->out, " %9s\n", FORMAT_PERCENT(stats__cv_percent(duration)));
}

static void write_gap(const struct report *report, const struct tally_kind *kind)
{
	const struct stats *gap = kind->gap;
	uint64_t count = stats__count(gap);
	char calls[64] = "";

	if (!count) {
		report_field(report, "  gap before",
			     "unknown: no thread was seen to run two steps in a row");
		return;
	}
	if (tally_calls_known(kind))
		snprintf(calls, sizeof(calls), "; %s of it in syscalls (%s)",
			 FORMAT_TIME((double)kind->gap_syscall_ns / (double)count),
			 FORMAT_PERCENT(percent_of((double)kind->gap_syscall_ns,
						   (double)stats__sum(gap))));
	report_field(report, "  gap before", "mean %s, p99 %s, max %s%s",
		     FORMAT_TIME(stats__mean(gap)), FORMAT_TIME(stats__percentile(gap, 0.99)),
		     FORMAT_TIME(stats__max(gap)), calls);
}

/* What the other threads did, per step in which that was measured. */
static void describe_team(const struct tally_kind *kind, struct line *line)
{
	double steps = (double)kind->team_steps;
	uint64_t used_ns = add_saturating(kind->team_cpu_ns, kind->team_delay_ns);

	if (!kind->team_steps && kind->threads_max > FBT_TEAM_MAX)
		line_add(line, "CPU and waits not measured (more than %d threads)", FBT_TEAM_MAX);
	if (!kind->team_steps)
		return;
	line_add(line, "%s on a CPU, %s waiting for one, %s blocked per step, all together",
		 FORMAT_TIME((double)kind->team_cpu_ns / steps),
		 FORMAT_TIME((double)kind->team_delay_ns / steps),
		 FORMAT_TIME((double)sub_saturating(kind->team_ns, used_ns) / steps));
	if (kind->team_steps < kind->steps)
		line_add(line, " (measured in %s steps)", FORMAT_COUNT(kind->team_steps));
}

static void write_others(const struct report *report, const struct tally_kind *kind)
{
	char text[320] = "";
	struct line line = {text, sizeof(text), 0};

	describe_team(kind, &line);
	if (tally_calls_known(kind) && kind->other_steps) {
		line_add(&line, "%s%s in syscalls per step", line.length ? "; " : "",
			 FORMAT_TIME((double)kind->other_ns / (double)kind->other_steps));
		line_add(&line, "%s (waits included)", kind->team_steps ? "" : ", all together");
	}
	if (line.length && kind->threads_max)
		line_add(&line, "; at most %" PRIu32 " %s", kind->threads_max,
			 kind->threads_max == 1 ? "thread" : "threads");
	if (line.length)
		report_field(report, "  other threads", "%s", text);
	else if (tally_calls_known(kind))
		report_field(report, "  other threads", "not measured");
}

/* What calls inside of the steps gave. Nothing where there was none: those were not called there.
 */
static void write_inner_arg(const struct report *report, const struct tally_kind *kind,
			    const char *label, const struct tally_arg *arg, bool is_time)
{
	char mean[FORMAT_MAX], none[64] = "";

	if (!arg->count)
		return;
	if (arg->count < kind->steps)
		snprintf(none, sizeof(none), "; none in %s step%s",
			 FORMAT_COUNT(kind->steps - arg->count),
			 kind->steps - arg->count == 1 ? "" : "s");
	if (is_time) {
		report_field(report, label, "mean %s, max %s%s; %s of the time of all steps",
			     FORMAT_TIME((double)arg->sum / (double)arg->count * NS_PER_US),
			     FORMAT_TIME((double)arg->max * NS_PER_US), none,
			     FORMAT_PERCENT(percent_of((double)arg->sum * NS_PER_US,
						       (double)kind->total_ns)));
		return;
	}
	format_number(mean, (double)(arg->sum / (long double)arg->count));
	report_field(report, label, "min %" PRId64 ", mean %s, max %" PRId64 "%s", arg->min, mean,
		     arg->max, none);
}

static void write_args(const struct report *report, const struct tally_kind *kind, int index)
{
	const struct kind *known = &report->window->kinds[index];
	char mean[FORMAT_MAX], name[64], label[72];

	for (uint32_t i = 0; i < FBT_ARG_COUNT && i < known->record.arg_count; i++) {
		const struct tally_arg *arg = &kind->args[i];

		shorten_text(name, sizeof(name), known->arg_names[i] ? known->arg_names[i] : "?",
			     LABEL_WIDTH - 3);
		snprintf(label, sizeof(label), "  %s", name);
		if (known->record.header.flags & FBT_KIND_INNER(i)) {
			write_inner_arg(report, kind, label, arg,
					known->record.header.flags & FBT_KIND_TIMED(i));
			continue;
		}
		if (!arg->count) {
			report_field(report, label, "could not be read in any step");
			continue;
		}
		format_number(mean, (double)(arg->sum / (long double)arg->count));
		if (arg->count < kind->steps)
			report_field(
				report, label,
				"min %" PRId64 ", mean %s, max %" PRId64 "; not read in %s step%s",
				arg->min, mean, arg->max, FORMAT_COUNT(kind->steps - arg->count),
				plural(kind->steps - arg->count));
		else
			report_field(report, label, "min %" PRId64 ", mean %s, max %" PRId64,
				     arg->min, mean, arg->max);
	}
}

static void write_polls(const struct report *report, const struct tally_kind *kind)
{
	char each[FORMAT_MAX];

	if (!kind->polls)
		return;
	format_number(each, (double)kind->polls / (double)kind->steps);
	report_field(report, "  polls",
		     "%s, %s per step: an async function, whose step is a future from its first "
		     "poll until it is ready",
		     FORMAT_COUNT(kind->polls), each);
}

static void write_ends(const struct report *report, const struct tally_kind *kind, uint32_t index)
{
	uint64_t cut = tally_cut_steps(report->tally, report->window, index);
	const struct {
		uint64_t count;
		const char *words;
	} rows[] = {{kind->ends[FBT_END_UNWOUND],
		     kind->polls ? "dropped or panicked" : "exception or longjmp"},
		    {kind->ends[FBT_END_RAISED], "exception"},
		    {kind->ends[FBT_END_EXITED], "thread exit"},
		    {kind->ends[FBT_END_TRUNCATED] - cut, "end of window"},
		    {cut, "switching probes off"}};
	char text[160] = "";
	struct line line = {text, sizeof(text), 0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].count)
			line_add(&line, "%s %s %s", line.length ? "," : "", rows[i].words,
				 FORMAT_COUNT(rows[i].count));
	}
	if (line.length)
		report_field(report, "  ended by",
			     "return %s,%s. Only those that returned are in the percentiles, mean "
			     "and CV; the table has all",
			     FORMAT_COUNT(kind->ends[FBT_END_RETURN]), text);
}

static void write_sampling(const struct report *report, uint32_t index)
{
	const struct fbt_sampling *sampling = &report->window->sampling[index];

	if (!sampling->kind)
		return;
	report_field(report, "  sampled",
		     "its probes were on for %s of %s (%s): %s calls in that time, %s per second; "
		     "steps cut off by switching: %s",
		     FORMAT_TIME(sampling->watched_ns),
		     FORMAT_TIME((double)sampling->watched_ns + (double)sampling->off_ns),
		     FORMAT_PERCENT(window__sampled_percent(report->window, index)),
		     FORMAT_COUNT(sampling->calls),
		     FORMAT_COUNT(window__sampled_calls_per_s(report->window, index)),
		     FORMAT_COUNT(window__cut_steps(report->window, index)));
	report_field(
		report, "",
		"durations are those of the steps seen, probe cost included; counts, sums and gaps "
		"do not cover all of its calls%s",
		window__traces_calls(report->window) ? ". The syscall table is complete" : "");
}

static void write_incomplete(const struct report *report, const struct tally_kind *kind)
{
	const char *noun = kind->incomplete == 1 ? "step" : "steps";

	if (kind->lost_calls)
		report_field(report, "  incomplete", "%s %s; %s call record%s lost",
			     FORMAT_COUNT(kind->incomplete), noun, FORMAT_COUNT(kind->lost_calls),
			     plural(kind->lost_calls));
	else if (kind->incomplete)
		report_field(report, "  incomplete", "%s %s", FORMAT_COUNT(kind->incomplete), noun);
}

/* A step of a sampled function that was over this long before the window was not open at its end.
 */
#define OPEN_NS (100 * NS_PER_MS)

bool report_was_open(const struct report *report, const struct tally_step *step)
{
	uint64_t end_ns = add_saturating(step->start_ns, step->total_ns);

	return step->end == FBT_END_TRUNCATED &&
	       (!report->window->sampling[step->kind].kind ||
		add_saturating(end_ns, OPEN_NS) >= tally_window_ns(report->window));
}

/* Why the duration of a step is unreliable, or "". */
static const char *find_doubt(const struct report *report, const struct tally_step *step)
{
	switch (step->end) {
	case FBT_END_UNWOUND:
		/* A future ends with its last poll. */
		return report->tally->kinds[step->kind]->polls ? "* dropped or panicked"
							       : "* unwound, end is late";
	case FBT_END_TRUNCATED:
		return report_was_open(report, step) ? "* still open"
						     : "* cut off: its probes were switched off";
	case FBT_END_EXITED:
		return "* thread exited";
	case FBT_END_RAISED:
		return "* exception";
	case FBT_END_RETURN:
		break;
	}
	return step->complete ? "" : "* incomplete";
}

/*
 * The row of a step says that another thread had no CPU if that lasted for this share of the step.
 */
#define STARVED_PERCENT 10

/* Below the row of a step: its cause, what it may have waited for, and whether to doubt it. */
static void write_notes(const struct report *report, const struct tally_step *step)
{
	char words[CAUSE_WORDS_SIZE], name[64];
	const char *known = window__thread_name(report->window, step->starved_tid);

	if (step->is_escalated && step->cause != CAUSE_UNKNOWN) {
		cause_words(step->cause, words);
		fprintf(report->out, "%21scause: %s\n", "", words);
	}
	if (percent_of((double)step->starved_ns, (double)step->total_ns) >= STARVED_PERCENT) {
		shorten_text(name, sizeof(name), known ? known : "", 15);
		fprintf(report->out, "%21sthread %" PRIu32 "%s%s waited for a CPU for %s\n", "",
			step->starved_tid, *name ? " " : "", name, FORMAT_TIME(step->starved_ns));
	}
	if (*find_doubt(report, step))
		fprintf(report->out, "%21s%s\n", "", find_doubt(report, step));
}

/* The same where neither calls nor the time on a CPU are known. */
static void write_slowest_untraced(const struct report *report, const struct tally_kind *kind)
{
	report_line(report, STYLE_DIM, "  %-8s %9s %9s %9s %8s", "slowest", "at", "took", "usual",
		    "thread");
	for (int i = 0; i < TALLY_SLOWEST && kind->slowest[i].number; i++) {
		const struct tally_step *step = &kind->slowest[i];
		char number[FORMAT_MAX + 1];

		snprintf(number, sizeof(number), "#%" PRIu64, step->number);
		fprintf(report->out, "  %-8s %9s %9s %9s %8" PRIu32 "\n", number,
			FORMAT_TIME(step->start_ns), FORMAT_TIME(step->total_ns),
			step->usual_ns ? FORMAT_TIME(step->usual_ns) : "-", step->tid);
		write_notes(report, step);
	}
}

/* The last column is this argument of the step, which says more than its thread; -1: its thread. */
static void write_slow(const struct report *report, const struct tally_kind *kind,
		       const struct tally_step *step, int arg)
{
	char number[FORMAT_MAX + 1], last[24] = "-", rest[3 * FORMAT_MAX] = "-";
	/* Without its parts, what is in none of them is the whole of a kind without parts only. */
	bool own_known = step->parts_known || !kind->parts_known;

	snprintf(number, sizeof(number), "#%" PRIu64, step->number);
	if (step->rest_ns)
		snprintf(rest, sizeof(rest), "%-9s %9s", report_part(kind, step->rest),
			 FORMAT_TIME(step->rest_ns));
	if (arg < 0)
		snprintf(last, sizeof(last), "%" PRIu32, step->tid);
	else if (step->arg_mask & 1u << arg)
		snprintf(last, sizeof(last), "%" PRId64, step->args[arg]);
	fprintf(report->out, "  %-8s %9s %9s %9s %9s  %-19s %8s\n", number,
		FORMAT_TIME(step->start_ns), FORMAT_TIME(step->total_ns),
		step->usual_ns ? FORMAT_TIME(step->usual_ns) : "-",
		own_known ? FORMAT_TIME(step->own_ns) : "-", rest, last);
	write_notes(report, step);
}

/*
 * Of the arguments that steps had the one of their classes, or the first; the first of all if they
 * had none; -1: there is none.
 */
static int find_shown_arg(const struct report *report, int index)
{
	const char *class_by =
		classifier__class_by(report->classifier, report->window, (uint32_t)index);
	const struct kind *known = &report->window->kinds[index];
	int first = -1;

	for (int i = FBT_ARG_COUNT - 1; i >= 0; i--) {
		if (!known->arg_names[i] || !report->tally->kinds[index]->args[i].count)
			continue;
		if (class_by && !strcmp(known->arg_names[i], class_by))
			return i;
		first = i;
	}
	return first < 0 && known->arg_names[0] ? 0 : first;
}

static void write_slowest(const struct report *report, const struct tally_kind *kind, int index)
{
	const struct kind *known = &report->window->kinds[index];
	int arg = find_shown_arg(report, index);
	char name[64] = "thread";

	if (arg >= 0)
		shorten_text(name, sizeof(name), known->arg_names[arg], 8);
	if (!tally_calls_known(kind) && !kind->parts_known) {
		write_slowest_untraced(report, kind);
		return;
	}
	report_line(report, STYLE_DIM, "  %-8s %9s %9s %9s %9s  %-19s %8s", "slowest", "at", "took",
		    "usual", report_part(kind, STEP_OWN), "most of the rest", name);
	for (int i = 0; i < TALLY_SLOWEST && kind->slowest[i].number; i++)
		write_slow(report, kind, &kind->slowest[i], arg);
}

void report_kind(const struct report *report, int index)
{
	const struct tally_kind *kind = report->tally->kinds[index];
	char name[128];

	shorten_name(name, sizeof(name), window__kind_name(report->window, (uint32_t)index), 80);
	fputc('\n', report->out);
	report_line(report, STYLE_BOLD, "%s%s", name, index ? "" : ", time of all threads");
	if (stats__count(kind->duration))
		report_durations(report, index ? "steps" : "intervals", kind->steps,
				 kind->duration);
	report_times(report, index);
	write_slowest(report, kind, index);
	report_tail(report, index);
	if (index) {
		write_gap(report, kind);
		write_others(report, kind);
		write_polls(report, kind);
		write_args(report, kind, index);
		write_ends(report, kind, (uint32_t)index);
		write_sampling(report, (uint32_t)index);
	}
	write_incomplete(report, kind);
	report_gpu_kind(report, index);
}

/* A process and the sums of its table. */
struct entry {
	const struct process *process;
	uint64_t ns;
	uint64_t calls;
	bool has_calls; /* perhaps only calls that are still open */
};

static bool is_used(const struct fbt_table *row)
{
	return row->sum.calls || row->unfinished;
}

static int compare_rows(const void *left, const void *right)
{
	const struct fbt_table *a = *(const struct fbt_table *const *)left;
	const struct fbt_table *b = *(const struct fbt_table *const *)right;

	if (a->sum.ns != b->sum.ns)
		return a->sum.ns < b->sum.ns ? 1 : -1;
	if (a->sum.calls != b->sum.calls)
		return a->sum.calls < b->sum.calls ? 1 : -1;
	return a < b ? -1 : a > b; /* rows of one table */
}

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return a->process->record.tgid < b->process->record.tgid ? -1 : 1;
}

static void write_syscall(const struct report *report, const struct fbt_table *row)
{
	const struct fbt_sum *sum = &row->sum;
	char name[24];

	fprintf(report->out, "  %-18s %10s %9s %9s %9s %9s %6s\n",
		syscall_label(report->window->record.arch, row->nr, name), FORMAT_COUNT(sum->calls),
		FORMAT_COUNT(sum->errors), FORMAT_TIME(sum->ns),
		FORMAT_TIME(sum->calls ? (double)sum->ns / (double)sum->calls : 0),
		FORMAT_TIME(sum->max_ns), FORMAT_COUNT(row->unfinished));
}

static void write_process(const struct report *report, const struct entry *entry)
{
	const struct process *process = entry->process;
	const struct fbt_table *rows[FBT_NR_COUNT];
	char comm[32];
	size_t count = 0;

	vec_for_each (row, &process->table.rows) {
		if (is_used(row))
			rows[count++] = row;
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
	shorten_text(comm, sizeof(comm), *process->comm ? process->comm : "?", 15);
	fputc('\n', report->out);
	report_line(report, STYLE_BOLD,
		    "Syscalls of process %" PRIu32 " %s: %s call%s by all threads, in steps or "
		    "not",
		    process->record.tgid, comm, FORMAT_COUNT(entry->calls), plural(entry->calls));
	report_line(report, STYLE_DIM, "  %-18s %10s %9s %9s %9s %9s %6s", "syscall", "calls",
		    "errors", "total", "mean", "max", "open");
	for (size_t i = 0; i < count && i < ROWS_MAX; i++)
		write_syscall(report, rows[i]);
	if (count > ROWS_MAX)
		fprintf(report->out, "  and %zu more (--report json has all)\n", count - ROWS_MAX);
}

void report_processes(const struct report *report)
{
	const struct window *window = report->window;
	size_t count = 0, all = window->processes.count;
	struct entry *entries = calloc(all ? all : 1, sizeof(*entries));

	if (!entries)
		return;
	for (size_t i = 0; i < all; i++) {
		struct entry entry = {.process = window->processes.items[i]};

		vec_for_each (row, &entry.process->table.rows) {
			entry.has_calls |= is_used(row);
			entry.ns += row->sum.ns;
			entry.calls += row->sum.calls;
		}
		if (entry.has_calls || (report->verbose && entry.process->threads.threads.count))
			entries[count++] = entry;
	}
	qsort(entries, count, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < count && i < PROCESSES_MAX; i++) {
		if (entries[i].has_calls)
			write_process(report, &entries[i]);
		if (report->verbose)
			report_threads(report, entries[i].process);
	}
	if (count > PROCESSES_MAX)
		fprintf(report->out, "\nand %zu more processes (--report json has all)\n",
			count - PROCESSES_MAX);
	free(entries);
}
