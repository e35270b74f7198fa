/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The result of diff as text: the headline, reasons to doubt it, a table for each class of steps,
 * classes that only one file has, and what the two files are.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/wrap.h"
#include "diff/write.h"

#define PROSE_WIDTH  80
#define LABEL_WIDTH  16
#define CAUSES_SHOWN 4
#define PARTS_SHOWN  2

/* Less of the time that was compared is told. */
#define NEARLY_ALL 0.9

/* Parts with less of both means are left out. */
#define PART_SHARE 0.002

struct text {
	FILE *out;
	bool color;
};

/* Wrapped at 80 columns; the first line begins at column at, the others at indent. */
static void print_wrapped(const struct text *text, const char *words, size_t at, size_t indent)
{
	for (;;) {
		size_t size = wrap_break(words, PROSE_WIDTH - at);

		fwrite(words, 1, size, text->out);
		words += size;
		words += *words == ' ';
		if (!*words)
			break;
		fprintf(text->out, "\n%*s", (int)indent, "");
		at = indent;
	}
	fputc('\n', text->out);
}

static void prose(const struct text *text, const char *style, const char *label, size_t indent,
		  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A label, and after it words, which are escaped. style: codes of a terminal, or "". */
static void prose(const struct text *text, const char *style, const char *label, size_t indent,
		  const char *format, ...)
{
	va_list args;
	char *words;

	va_start(args, format);
	words = terminal_text(format, args);
	va_end(args);
	if (text->color)
		fputs(style, text->out);
	fprintf(text->out, "%-*s", (int)indent, label);
	if (words)
		print_wrapped(text, words, strlen(label) > indent ? strlen(label) : indent, indent);
	if (text->color && *style)
		fputs("\033[0m", text->out);
	free(words);
}

#define BOLD	   "\033[1m"
#define WARN	   "\033[1;31m"
#define SIGNED_MAX 32

/* "+20.1 %" of a share. */
static const char *signed_percent(char buffer[SIGNED_MAX], double share)
{
	if (isnan(share))
		return "-";
	if (share >= 10)
		snprintf(buffer, SIGNED_MAX, "%.0fx", share + 1);
	else
		snprintf(buffer, SIGNED_MAX, "%+.1f %%", 100 * share);
	return buffer;
}
#define SIGNED(share) signed_percent((char[SIGNED_MAX]){""}, share)

/* "+210 us" */
static const char *signed_time(char buffer[SIGNED_MAX], double ns)
{
	snprintf(buffer, SIGNED_MAX, "%s%s", ns < 0 ? "-" : "+", FORMAT_TIME(fabs(ns)));
	return buffer;
}
#define SIGNED_TIME(ns) signed_time((char[SIGNED_MAX]){""}, ns)

static const char *title(const struct diff_class *class, char text[CLASS_LABEL_MAX + 64])
{
	char label[CLASS_LABEL_MAX], name[64];

	snprintf(text, CLASS_LABEL_MAX + 64, "%s, %s",
		 shorten_name(name, sizeof(name), class->kind, 48), class_label(class, label));
	return text;
}

static bool has_parts(const struct diff_class *class)
{
	return class->sides[0].parts_known && class->sides[1].parts_known &&
	       class->sides[0].calls_known == class->sides[1].calls_known;
}

static double part_change(const struct diff_class *class, int part)
{
	return class->sides[1].part_ns[part] - class->sides[0].part_ns[part];
}

/* "; the mean +121 us: cpu wait +78.5 us, own code +42.8 us": what has changed most. */
static void add_parts(struct line *line, const struct diff_class *class)
{
	double change = class->sides[1].mean_ns - class->sides[0].mean_ns;
	double sign = change < 0 ? -1 : 1;
	bool done[STEP_PARTS] = {false};

	line_add(line, "; the mean %s", SIGNED_TIME(change));
	for (int shown = 0; has_parts(class) && shown < PARTS_SHOWN; shown++) {
		int best = -1;

		for (int i = 0; i < STEP_PARTS; i++)
			if (!done[i] && part_change(class, i) * sign > PART_SHARE * change * sign &&
			    (best < 0 ||
			     part_change(class, i) * sign > part_change(class, best) * sign))
				best = i;
		if (best < 0)
			return;
		done[best] = true;
		line_add(line, "%s %s %s", shown ? "," : ":",
			 diff_part_words((enum step_part)best, class->sides[0].calls_known),
			 SIGNED_TIME(part_change(class, best)));
	}
}

/* "! engine_step, n_tokens 1: p50 +20.0 % (+19.1 % to +21.0 %), 1.00 ms to 1.20 ms; …" */
static void write_changed(const struct text *text, const struct diff_class *class)
{
	char name[CLASS_LABEL_MAX + 64], words[768] = "";
	struct line line = {words, sizeof(words), 0};

	for (int i = 0; i < QUANTILES; i++) {
		const struct change *change = &class->changes[i];

		if (change->verdict != VERDICT_WORSE && change->verdict != VERDICT_BETTER)
			continue;
		line_add(&line, "%s%s %s (%s to %s), from %s to %s", line.length ? "; " : "",
			 diff_share_names[i], SIGNED(change->ratio), SIGNED(change->low),
			 SIGNED(change->high), FORMAT_TIME(class->sides[0].quantiles[i].ns),
			 FORMAT_TIME(class->sides[1].quantiles[i].ns));
	}
	add_parts(&line, class);
	prose(text, class->is_regression ? WARN : "", class->verdict == VERDICT_WORSE ? "!" : "+",
	      2, "%s: %s", title(class, name), words);
}

static void write_headline(const struct text *text, const struct result *result)
{
	char *headline = result_headline(result);

	prose(text, BOLD, "", 0, "%s", headline ? headline : "");
	free(headline);
	vec_for_each (class, &result->classes)
		if (class->verdict == VERDICT_WORSE)
			write_changed(text, class);
	vec_for_each (class, &result->classes)
		if (class->verdict == VERDICT_BETTER)
			write_changed(text, class);
	vec_for_each (doubt, &result->doubts)
		prose(text, doubt->is_serious ? WARN : "", doubt->is_serious ? "!" : "-", 2, "%s",
		      doubt->text);
	if (result->compared[0] < NEARLY_ALL || result->compared[1] < NEARLY_ALL)
		prose(text, WARN, "!", 2,
		      "%s of the time of A and %s of that of B is in classes whose median can be "
		      "compared; the rest is not",
		      FORMAT_PERCENT(100 * result->compared[0]),
		      FORMAT_PERCENT(100 * result->compared[1]));
}

static void row(const struct text *text, const char *label, const char *a, const char *b,
		const char *change, const char *interval, const char *verdict)
{
	char line[256];

	snprintf(line, sizeof(line), "  %-15s %10s %10s %10s  %-22s %s", label, a, b, change,
		 interval, verdict);
	for (size_t end = strlen(line); end && line[end - 1] == ' '; end--)
		line[end - 1] = '\0';
	terminal_line(text->out, "%s", line);
}

static void write_quantile(const struct text *text, const struct diff_class *class, int quantile)
{
	const struct change *change = &class->changes[quantile];
	const char *reason = change_reason(class, quantile);
	char interval[64] = "", verdict[64];

	if (!isnan(change->low) && class->sides[0].steps)
		snprintf(interval, sizeof(interval), "%s to %s", SIGNED(change->low),
			 SIGNED(change->high));
	if (change->verdict == VERDICT_CANNOT_TELL)
		snprintf(verdict, sizeof(verdict), "cannot tell: %s", reason);
	else
		snprintf(verdict, sizeof(verdict), "%s", verdict_name(change->verdict));
	row(text, diff_share_names[quantile], FORMAT_TIME(class->sides[0].quantiles[quantile].ns),
	    FORMAT_TIME(class->sides[1].quantiles[quantile].ns), SIGNED(change->ratio), interval,
	    verdict);
}

static void write_parts(const struct text *text, const struct diff_class *class)
{
	const struct class_side *a = &class->sides[0], *b = &class->sides[1];

	if (!has_parts(class))
		return;
	for (int i = 0; i < STEP_PARTS; i++) {
		const char *words = diff_part_words((enum step_part)i, a->calls_known);
		double least = PART_SHARE * fmax(a->mean_ns, b->mean_ns);

		if (words && (a->part_ns[i] >= least || b->part_ns[i] >= least))
			row(text, words, FORMAT_TIME(a->part_ns[i]), FORMAT_TIME(b->part_ns[i]),
			    SIGNED_TIME(b->part_ns[i] - a->part_ns[i]), "", "");
	}
}

/* The causes with the most extra time in both. */
static void write_causes(const struct text *text, const struct diff_class *class)
{
	bool done[CAUSE_COUNT] = {false};
	char words[CAUSE_WORDS_SIZE], label[CAUSE_WORDS_SIZE + 4];

	for (int shown = 0; shown < CAUSES_SHOWN; shown++) {
		uint64_t most = 0, a, b;
		int best = -1;

		for (int i = 0; i < CAUSE_COUNT; i++) {
			a = class->sides[0].causes[i].extra_ns;
			b = class->sides[1].causes[i].extra_ns;
			if (!done[i] && a + b > most) {
				most = a + b;
				best = i;
			}
		}
		if (best < 0)
			return;
		done[best] = true;
		a = class->sides[0].causes[best].steps;
		b = class->sides[1].causes[best].steps;
		if (!shown)
			row(text, "escalated for", "steps", "steps", "", "", "");
		snprintf(label, sizeof(label), "  %s", cause_words((enum cause_kind)best, words));
		row(text, label, FORMAT_COUNT(a), FORMAT_COUNT(b), "", "", "");
	}
}

static void write_class(const struct text *text, const struct result *result,
			const struct diff_class *class)
{
	const struct class_side *a = &class->sides[0], *b = &class->sides[1];
	char name[CLASS_LABEL_MAX + 64];

	fputc('\n', text->out);
	prose(text, BOLD, "", 0, "%s%s", title(class, name), class->by_bin ? ", size by size" : "");
	row(text, "", "A", "B", "change", "between", "verdict");
	row(text, "steps", FORMAT_COUNT(a->steps), FORMAT_COUNT(b->steps), "", "", "");
	if (a->compared < a->steps || b->compared < b->steps)
		row(text, "of sizes of both", FORMAT_COUNT(a->compared), FORMAT_COUNT(b->compared),
		    "", "", "");
	for (int i = 0; i < QUANTILES; i++)
		write_quantile(text, class, i);
	row(text, "mean", FORMAT_TIME(a->mean_ns), FORMAT_TIME(b->mean_ns),
	    SIGNED_TIME(b->mean_ns - a->mean_ns), "", "");
	write_parts(text, class);
	write_causes(text, class);
	if (class->is_regression)
		prose(text, WARN, "  regression", LABEL_WIDTH + 2, "%s or more (--threshold)",
		      FORMAT_PERCENT(100 * result->options.threshold));
}

static void write_only(const struct text *text, const struct result *result)
{
	bool is_first = true;
	char name[CLASS_LABEL_MAX + 64];

	vec_for_each (class, &result->classes) {
		int side = class_only_in(class);

		if (side < 0)
			continue;
		if (is_first)
			fputc('\n', text->out);
		is_first = false;
		prose(text, "", side ? "Only in B" : "Only in A", LABEL_WIDTH,
		      "%s: %s step%s, p50 %s, %s of its time", title(class, name),
		      FORMAT_COUNT(class->sides[side].steps), plural(class->sides[side].steps),
		      FORMAT_TIME(class->sides[side].quantiles[0].ns),
		      FORMAT_PERCENT(percent_of((double)class->sides[side].ns,
						(double)side_ns(result->sides[side]))));
	}
}

static void write_side(const struct text *text, const struct side *side, const char *name)
{
	static const enum side_fact shown[] = {FACT_HOST, FACT_TOOL, FACT_DETAIL, FACT_COMMIT};
	static const char *const words[] = {"", "ferrum-bpftrace ", "--detail ", "commit "};
	char facts[512] = "";
	struct line line = {facts, sizeof(facts), 0};

	for (int i = 0; i < 4; i++)
		if (side->facts[shown[i]])
			line_add(&line, ", %s%.64s", words[i], side->facts[shown[i]]);
	prose(text, "", name, LABEL_WIDTH, "%s: a %s of %s step%s in %s%s", side->path,
	      side->is_capture ? "recording" : "profile", FORMAT_COUNT(side->steps.count),
	      plural(side->steps.count), FORMAT_TIME(side->windows_ns), facts);
}

static void write_method(const struct text *text, const struct result *result)
{
	if (result->comparisons)
		prose(text, "", "Verdicts", LABEL_WIDTH,
		      "with a probability of 95 %% all %u intervals hold (block bootstrap, "
		      "correlated "
		      "steps "
		      "included); same: the whole interval is within %s",
		      result->comparisons, FORMAT_PERCENT(100 * result->options.margin));
	prose(text, "", "", LABEL_WIDTH, "%s",
	      result->has_regression  ? "exit status 3: a regression"
	      : result->is_comparable ? "exit status 0: no regression was found"
	      : result->moved.count   ? "exit status 1: steps of a function have no counterpart"
				      : "exit status 1: too little of the time can be compared");
}

void result_write_text(const struct result *result, FILE *out, bool color)
{
	const struct text text = {out, color};

	write_headline(&text, result);
	vec_for_each (class, &result->classes)
		if (class_only_in(class) < 0)
			write_class(&text, result, class);
	write_only(&text, result);
	fputc('\n', out);
	write_side(&text, result->sides[0], "A");
	write_side(&text, result->sides[1], "B");
	write_method(&text, result);
}
