/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <inttypes.h>

#include "report_format.h"
#include "report_part.h"

#define CAUSES_SHOWN 3
#define NS_PER_S     1e9

static void write_none(const struct report *report, const struct classify_counts *counts)
{
	char judged[FORMAT_MAX], unjudged[FORMAT_MAX];

	format_count(judged, counts->judged);
	format_count(unjudged, counts->unjudged);
	if (report->tally->kinds[0] && !counts->judged)
		report_field(report, "Escalations",
			     "intervals are not judged; --step SPEC names a step function");
	else if (!counts->judged)
		report_field(report, "Escalations",
			     "no step was judged: none had %d like it before", CLASS_KNOWN_STEPS);
	else if (counts->unjudged)
		report_field(
			report, "Escalations",
			"no step was escalated: %s judged, %s not (fewer than %d like them before)",
			judged, unjudged, CLASS_KNOWN_STEPS);
	else
		report_field(report, "Escalations", "no step was escalated: %s judged", judged);
}

static void write_reasons(const struct report *report, const struct classify_counts *counts)
{
	char text[256] = "", count[FORMAT_MAX];
	size_t used = 0;

	for (int i = ESCALATION_NONE + 1; i < ESCALATION_REASON_COUNT; i++) {
		if (!counts->by_reason[i])
			continue;
		format_count(count, counts->by_reason[i]);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s",
					 used ? ", " : "",
					 escalation_otlp_value((enum escalation_reason)i), count);
	}
	report_field(report, "  reasons", "%s", text);
}

static void write_unjudged(const struct report *report, const struct classify_counts *counts)
{
	char unjudged[FORMAT_MAX];

	if (!counts->unjudged)
		return;
	format_count(unjudged, counts->unjudged);
	if (report->tally->kinds[0])
		report_field(report, "  not judged", "%s: intervals never are", unjudged);
	else
		report_field(report, "  not judged", "%s, which had fewer than %d like them before",
			     unjudged, CLASS_KNOWN_STEPS);
}

static void write_suppressed(const struct report *report, const struct classify_counts *counts)
{
	const struct escalation_thresholds *thresholds =
		escalation_manager__thresholds(classifier__manager(report->classifier));
	char suppressed[FORMAT_MAX], limit[FORMAT_MAX];

	if (!counts->suppressed)
		return;
	format_count(suppressed, counts->suppressed);
	format_count(limit, thresholds->rate_limit);
	report_field(report, "  not shown",
		     "%s, more than %s in %g s (--rate-limit, --rate-interval): counted here, not "
		     "in the trace and the profile",
		     suppressed, limit, (double)thresholds->rate_interval_ns / NS_PER_S);
}

static void write_repeated(const struct report *report, const struct classify_counts *counts)
{
	char repeated[FORMAT_MAX];

	if (!counts->repeated)
		return;
	format_count(repeated, counts->repeated);
	report_field(report, counts->suppressed ? "" : "  not shown",
		     "%s more of classes already said to be unsteady: one in --cv-window is shown",
		     repeated);
}

static void write_cause(const struct report *report, int rank, enum cause_kind kind)
{
	const struct cause_tally *cause = &report->tally->escalations.causes[kind];
	char words[CAUSE_WORDS_SIZE], steps[FORMAT_MAX], extra[FORMAT_MAX], took[FORMAT_MAX];
	char about[FORMAT_MAX + 1], worst[FORMAT_MAX + 1], evidence[4 * EVIDENCE_SIZE];

	cause_words(kind, words);
	format_count(steps, cause->steps);
	snprintf(about, sizeof(about), "%s%s", cause->estimated ? "~" : "",
		 format_time(extra, (double)cause->extra_ns));
	snprintf(worst, sizeof(worst), "#%" PRIu64, cause->worst_step);
	format_time(took, (double)cause->worst_total_ns);
	fprintf(report->out, "  %d  %-20s %9s %11s %11s %9s\n", rank, words, steps, about, worst,
		took);
	shorten_text(evidence, sizeof(evidence), cause->worst_evidence, EVIDENCE_SIZE);
	report_field(report, "     evidence", "%s", evidence);
	report_field(report, "     advice", "%s", cause_advice(kind));
}

/* Not those that cost no time: a step that was asked for by hand may be as fast as any. */
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

void report_escalations(const struct report *report)
{
	const struct classify_counts *counts = classifier__counts(report->classifier);
	char escalated[FORMAT_MAX], steps[FORMAT_MAX];

	if (tally_main_kind(report->tally) < 0)
		return;
	fputc('\n', report->out);
	if (!counts->escalated) {
		write_none(report, counts);
		return;
	}
	format_count(escalated, counts->escalated);
	format_count(steps, counts->judged + counts->unjudged);
	report_line(report, STYLE_BOLD, "Escalations: %s of %s steps", escalated, steps);
	write_reasons(report, counts);
	write_unjudged(report, counts);
	write_suppressed(report, counts);
	write_repeated(report, counts);
	write_causes(report);
}
