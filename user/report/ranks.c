/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Iterations of Python engines: how long they took, and which rank was late, and why. */
#include <inttypes.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "judge/stopper.h"
#include "report/part.h"

/* Of text: engines, ranks of one, and causes of one. --report json has all. */
#define TEAMS_SHOWN  4
#define RANKS_SHOWN  16
#define CAUSES_SHOWN 3

#define TITLE_COLUMNS 20

static const char *rank_title(const struct report *report, uint32_t tgid,
			      char title[PROCESS_TITLE_MAX])
{
	char whole[PROCESS_TITLE_MAX];

	window__process_title(report->window, tgid, whole);
	return shorten_text(title, PROCESS_TITLE_MAX, whole, TITLE_COLUMNS);
}

static void write_heading(const struct report *report, const struct team_tally *team)
{
	uint32_t tgid = team->ranks.count > 1 ? team->parent : team->ranks.items[0].tgid;
	char title[PROCESS_TITLE_MAX], ranks[32] = "";

	fputc('\n', report->out);
	if (team->ranks.count > 1)
		snprintf(ranks, sizeof(ranks), "%zu ranks of ", team->ranks.count);
	report_line(report, STYLE_BOLD, "Iterations of %sprocess %" PRIu32 " %s", ranks, tgid,
		    rank_title(report, tgid, title));
}

/* The functions that a process calls in one iteration, as shares of its time. */
static void write_parts(const struct report *report, const struct team_tally *team)
{
	char text[320] = "", name[64];
	struct line line = {text, sizeof(text), 0};

	for (int i = 0; i < TICK_KINDS && team->kinds[i].kind; i++) {
		shorten_name(name, sizeof(name),
			     window__kind_name(report->window, team->kinds[i].kind), 32);
		line_add(&line, "%s %s, ",
			 FORMAT_PERCENT(
				 percent_of((double)team->kinds[i].ns, (double)team->tick_ns)),
			 name);
	}
	line_add(&line, "%s between",
		 FORMAT_PERCENT(percent_of((double)team->between_ns, (double)team->tick_ns)));
	report_field(report, "  parts", "%s", text);
}

static void write_engine(const struct report *report, const struct team_tally *team)
{
	char name[64];

	if (!team->engine_seen)
		return;
	shorten_name(name, sizeof(name), window__kind_name(report->window, team->engine_kind), 32);
	report_field(report, "  engine", "%s of %s within one %s of process %" PRIu32,
		     FORMAT_COUNT(team->within), FORMAT_COUNT(team->engine_seen), name,
		     team->parent);
}

static const char *time_or_none(char buffer[FORMAT_MAX], uint64_t ns)
{
	return ns ? format_time(buffer, (double)ns) : "-";
}

static void write_rank(const struct report *report, const struct rank_tally *rank)
{
	char title[PROCESS_TITLE_MAX], times[LATE_WHERE_COUNT][FORMAT_MAX], worst[FORMAT_MAX];

	fprintf(report->out, "  %-20s %8" PRIu32 " %6s", rank_title(report, rank->tgid, title),
		rank->tgid, rank->late ? FORMAT_COUNT(rank->late) : "-");
	for (int i = 0; i < LATE_WHERE_COUNT; i++)
		fprintf(report->out, " %9s", time_or_none(times[i], rank->where_ns[i]));
	fprintf(report->out, " %9s\n", time_or_none(worst, rank->worst.total_ns));
}

/* The causes by their time, most first. Returns how many have any. */
static int sort_causes(const struct rank_tally *rank, int order[TICK_PARTS + 1])
{
	int count = 0;

	for (int i = 0; i <= TICK_PARTS; i++) {
		int at = count;

		if (!rank->cause_count[i])
			continue;
		for (; at && rank->cause_ns[order[at - 1]] < rank->cause_ns[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
		count++;
	}
	return count;
}

/* Where it was late. */
static const char *where_words(enum late_where where)
{
	static const char *const words[LATE_WHERE_COUNT] = {
		[LATE_BEGINS] = "it began late",
		[LATE_WITHIN] = "the others waited in their steps",
		[LATE_ENDS] = "it ended late",
	};

	return words[where];
}

static void write_causes(const struct report *report, const struct team_tally *team,
			 const struct rank_tally *rank, const char *label)
{
	char text[640] = "", title[PROCESS_TITLE_MAX];
	struct line line = {text, sizeof(text), 0};
	const struct late *worst = &rank->worst;
	int order[TICK_PARTS + 1], count = sort_causes(rank, order);

	for (int i = 0; i < count && i < CAUSES_SHOWN; i++)
		line_add(&line, "%s %s in %s", i ? ";" : "",
			 late_cause_words((enum tick_part)order[i], team->calls_known),
			 FORMAT_COUNT(rank->cause_count[order[i]]));
	if (count > CAUSES_SHOWN)
		line_add(&line, "; and %d more", count - CAUSES_SHOWN);
	line_add(&line, "; worst %s in iteration %s (step #%" PRIu64 ", at %s), %s: %s",
		 FORMAT_TIME(worst->total_ns), FORMAT_COUNT(rank->worst_number), rank->worst_step,
		 FORMAT_TIME(rank->worst_ns), where_words(worst->where),
		 late_cause_words(worst->cause, team->calls_known));
	if (worst->stop.header.type == FBT_EVENT_STOP)
		stopper_add(&line, &worst->stop, &worst->stop_sender);
	if (worst->cause_ns)
		line_add(&line, " for %s", FORMAT_TIME(worst->cause_ns));
	report_field(report, label, "%s:%s", rank_title(report, rank->tgid, title), text);
}

static void write_ranks(const struct report *report, const struct team_tally *team)
{
	const char *label = "  why";
	size_t shown = 0;

	if (team->ranks.count < 2)
		return;
	report_line(report, STYLE_DIM, "  %-20s %8s %6s %9s %9s %9s %9s", "late rank", "pid",
		    "late", "begins", "within", "ends", "worst");
	vec_for_each (rank, &team->ranks) {
		if (shown++ < RANKS_SHOWN)
			write_rank(report, rank);
	}
	if (shown > RANKS_SHOWN)
		fprintf(report->out, "  and %zu more (--report json has all)\n",
			shown - RANKS_SHOWN);
	shown = 0;
	vec_for_each (rank, &team->ranks) {
		if (!rank->late || shown++ >= RANKS_SHOWN)
			continue;
		write_causes(report, team, rank, label);
		label = "";
	}
	if (team->unmatched)
		report_field(report, "  left out",
			     "%s of single ranks, without a counterpart in the others",
			     FORMAT_COUNT(team->unmatched));
}

void report_ranks(const struct report *report)
{
	size_t shown = 0;

	vec_for_each (entry, &report->tally->iterations.teams) {
		const struct team_tally *team = *entry;

		if (!team_tally_is_shown(team) || shown++ >= TEAMS_SHOWN)
			continue;
		write_heading(report, team);
		report_durations(report, "iterations", team->iterations, team->duration);
		write_parts(report, team);
		write_engine(report, team);
		write_ranks(report, team);
	}
	if (shown > TEAMS_SHOWN)
		fprintf(report->out,
			"\nand iterations of %zu more engines (--report json has all)\n",
			shown - TEAMS_SHOWN);
}

static void put_worst(struct json *json, const struct team_tally *team,
		      const struct rank_tally *rank)
{
	const struct late *worst = &rank->worst;

	if (!rank->late) {
		json_null(json, "worst");
		return;
	}
	json_object_begin(json, "worst");
	json_uint(json, "iteration", rank->worst_number);
	json_uint(json, "step", rank->worst_step);
	json_uint(json, "start_ns", rank->worst_ns);
	json_uint(json, "late_ns", worst->total_ns);
	json_string(json, "where", late_where_name(worst->where));
	json_string(json, "cause", late_cause_name(worst->cause, team->calls_known));
	json_uint(json, "cause_ns", worst->cause_ns);
	json_string(json, "stop_reason",
		    worst->stop.header.type == FBT_EVENT_STOP
			    ? stop_reason_name((enum fbt_stop_reason)worst->stop.reason)
			    : NULL);
	json_object_end(json);
}

static void put_rank(struct json *json, const struct report *report, const struct team_tally *team,
		     const struct rank_tally *rank)
{
	char title[PROCESS_TITLE_MAX], key[32];
	int order[TICK_PARTS + 1], count = sort_causes(rank, order);

	json_object_begin(json, NULL);
	json_uint(json, "pid", rank->tgid);
	json_string(json, "title", window__process_title(report->window, rank->tgid, title));
	json_uint(json, "late", rank->late);
	json_uint(json, "late_ns", rank->late_ns);
	for (int i = 0; i < LATE_WHERE_COUNT; i++) {
		snprintf(key, sizeof(key), "%s_ns", late_where_name((enum late_where)i));
		json_uint(json, key, rank->where_ns[i]);
	}
	json_array_begin(json, "causes");
	for (int i = 0; i < count; i++) {
		json_object_begin(json, NULL);
		json_string(json, "cause",
			    late_cause_name((enum tick_part)order[i], team->calls_known));
		json_uint(json, "late", rank->cause_count[order[i]]);
		json_uint(json, "ns", rank->cause_ns[order[i]]);
		json_object_end(json);
	}
	json_array_end(json);
	put_worst(json, team, rank);
	json_object_end(json);
}

static void put_parts(struct json *json, const struct report *report, const struct team_tally *team)
{
	json_array_begin(json, "parts");
	for (int i = 0; i < TICK_KINDS && team->kinds[i].kind; i++) {
		json_object_begin(json, NULL);
		json_string(json, "name", window__kind_name(report->window, team->kinds[i].kind));
		json_uint(json, "steps", team->kinds[i].steps);
		json_uint(json, "total_ns", team->kinds[i].ns);
		json_object_end(json);
	}
	json_array_end(json);
	json_uint(json, "between_ns", team->between_ns);
}

static void put_engine(struct json *json, const struct report *report,
		       const struct team_tally *team)
{
	if (!team->engine_seen) {
		json_null(json, "engine");
		return;
	}
	json_object_begin(json, "engine");
	json_uint(json, "pid", team->parent);
	json_string(json, "name", window__kind_name(report->window, team->engine_kind));
	json_uint(json, "iterations", team->engine_seen);
	json_uint(json, "within_one_step", team->within);
	json_object_end(json);
}

static void put_team(struct json *json, const struct report *report, const struct team_tally *team)
{
	const struct stats *duration = team->duration;

	json_object_begin(json, NULL);
	json_string(json, "function", team->name);
	if (team->parent)
		json_uint(json, "parent_pid", team->parent);
	else
		json_null(json, "parent_pid");
	json_uint(json, "iterations", team->iterations);
	json_uint(json, "left_out", team->unmatched);
	json_uint(json, "total_ns", stats__sum(duration));
	json_uint(json, "p50_ns", stats__percentile(duration, 0.5));
	json_uint(json, "p99_ns", stats__percentile(duration, 0.99));
	json_uint(json, "max_ns", stats__max(duration));
	put_parts(json, report, team);
	put_engine(json, report, team);
	json_uint(json, "late", team->late);
	json_array_begin(json, "ranks");
	vec_for_each (rank, &team->ranks)
		put_rank(json, report, team, rank);
	json_array_end(json);
	json_object_end(json);
}

void report_json_ranks(struct json *json, const struct report *report)
{
	bool is_begun = false;

	vec_for_each (team, &report->tally->iterations.teams) {
		if (!team_tally_is_shown(*team))
			continue;
		if (!is_begun)
			json_array_begin(json, "iterations");
		is_begun = true;
		put_team(json, report, *team);
	}
	if (is_begun)
		json_array_end(json);
}
