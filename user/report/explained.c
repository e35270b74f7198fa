/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What --explain has found out, and what that has cost. */
#include <inttypes.h>
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "judge/explained.h"
#include "report/part.h"

#define TAKERS_SHOWN	3
#define NAME_COLUMNS	15
#define CGROUP_COLUMNS	39
#define PPM_PER_PERCENT 10000.0

/* Shares below this are not shown. */
#define SHARE_LEAST 2.0

static const char *const state_names[FBT_EXPLAIN_STATES] = {
	[FBT_EXPLAIN_UNUSED] = "unused", [FBT_EXPLAIN_OFF] = "off",
	[FBT_EXPLAIN_ARMED] = "armed",	 [FBT_EXPLAIN_REFUSED] = "refused",
	[FBT_EXPLAIN_FAILED] = "failed",
};

static const char *const kind_names[FBT_EXPLAIN_COUNT] = {
	[FBT_EXPLAIN_SWITCHES] = "switches",
	[FBT_EXPLAIN_WAKES] = "wakes",
	[FBT_EXPLAIN_SAMPLES] = "samples",
	[FBT_EXPLAIN_FAULTS] = "faults",
};

/* Names come from other processes, so they may contain anything. */
static void add_taker(struct line *line, const struct explained_tally *tally, int index)
{
	const struct fbt_taker *taker = &tally->takers[index];
	double share = percent_of((double)taker->ns, (double)tally->waited_ns);
	char name[4 * sizeof(taker->comm) + 1], cgroup[4 * sizeof(taker->cgroup) + 1];

	if (share < SHARE_LEAST)
		return;
	shorten_text(cgroup, sizeof(cgroup), taker->cgroup, CGROUP_COLUMNS);
	if (taker_is_group(taker) && !*taker->comm) {
		line_add(line, "%smany processes of cgroup %s %s", line->length ? ", " : "", cgroup,
			 FORMAT_PERCENT(share));
		return;
	}
	line_add(line, "%s%s (", line->length ? ", " : "",
		 shorten_text(name, sizeof(name), taker->comm, NAME_COLUMNS));
	if (taker->tgid)
		line_add(line, "pid %" PRIu32, taker->tgid);
	else
		line_add(line, "several processes");
	if (*taker->cgroup && strcmp(taker->cgroup, "/") != 0)
		line_add(line, ", cgroup %s", cgroup);
	line_add(line, ") %s", FORMAT_PERCENT(share));
}

static void add_share(struct line *line, const char *words, uint64_t ns, uint64_t all_ns)
{
	double share = percent_of((double)ns, (double)all_ns);

	if (share >= SHARE_LEAST)
		line_add(line, "%s%s %s", line->length ? ", " : "", words, FORMAT_PERCENT(share));
}

/* Own threads first if they have the most: that is for the engine to mend. */
static void write_takers(const struct report *report, const struct explained_tally *tally)
{
	char text[1024] = "";
	struct line line = {text, sizeof(text), 0};
	uint32_t shown = 0;
	int most = explained_tally_most(tally, 0);
	bool own_first = most < 0 || tally->own_ns >= tally->takers[most].ns;

	if (own_first)
		add_share(&line, "its own threads", tally->own_ns, tally->waited_ns);
	for (int i = 0; i < TAKERS_SHOWN && (most = explained_tally_most(tally, shown)) >= 0; i++) {
		add_taker(&line, tally, most);
		shown |= UINT32_C(1) << most;
	}
	if (!own_first)
		add_share(&line, "its own threads", tally->own_ns, tally->waited_ns);
	add_share(&line, "nobody (the CPU was idle)", tally->idle_ns, tally->waited_ns);
	if (*text)
		report_field(report, "     taken by", "of the %s that were seen: %s",
			     FORMAT_TIME(tally->waited_ns), text);
}

static void write_wakers(const struct report *report, const struct explained_tally *tally)
{
	char text[1024] = "", name[4 * sizeof(tally->wakers[0].comm) + 1];
	struct line line = {text, sizeof(text), 0};

	for (int i = 0; i < EXPLAINED_WAKERS && tally->wakers[i].steps; i++) {
		const struct explained_waker *waker = &tally->wakers[i];

		line_add(&line, "%s%s%s%s", line.length ? ", " : "",
			 waker->is_perhaps ? "perhaps " : "",
			 waker->is_own ? "its own thread " : "",
			 shorten_text(name, sizeof(name), waker->comm, NAME_COLUMNS));
		if (waker->tgid && !waker->is_own)
			line_add(&line, " (pid %" PRIu32 ")", waker->tgid);
		line_add(&line, " in %s step%s", FORMAT_COUNT(waker->steps), plural(waker->steps));
	}
	if (tally->interrupts)
		line_add(&line, "%san interrupt (a timer or a device) in %s step%s",
			 line.length ? ", " : "", FORMAT_COUNT(tally->interrupts),
			 plural(tally->interrupts));
	if (*text)
		report_field(report, "     woken by", "%s", text);
}

/* The one with the most growth that is not in skip; -1: there is none. */
static int most_grown(const struct explained_tally *tally, uint32_t skip)
{
	int most = -1;

	for (int i = 0; i < EXPLAINED_FUNCTIONS && tally->functions[i].steps; i++)
		if (!(skip >> i & 1) &&
		    (most < 0 || tally->functions[i].ns > tally->functions[most].ns))
			most = i;
	return most;
}

static void write_functions(const struct report *report, const struct explained_tally *tally)
{
	char text[1024] = "", name[4 * EXPLAINED_NAME];
	struct line line = {text, sizeof(text), 0};
	uint32_t shown = 0;
	int most;

	for (int i = 0; i < TAKERS_SHOWN && (most = most_grown(tally, shown)) >= 0; i++) {
		const struct explained_function *function = &tally->functions[most];

		shown |= UINT32_C(1) << most;
		line_add(&line, "%s%s %s in %s step%s", line.length ? ", " : "",
			 shorten_text(name, sizeof(name), function->name, EXPLAINED_NAME),
			 FORMAT_TIME(function->ns), FORMAT_COUNT(function->steps),
			 plural(function->steps));
	}
	if (*text)
		report_field(report, "     grew", "%s", text);
}

void report_explained(const struct report *report, const struct explained_tally *tally)
{
	enum fbt_explain kind = tally->kind;

	if (tally->waited_ns)
		write_takers(report, tally);
	write_wakers(report, tally);
	write_functions(report, tally);
	if (!tally->missed || report->window->explained[kind].header.type != FBT_EVENT_EXPLAIN)
		return;
	report_field(report, "     not known",
		     "%s in %s of %s step%s, as that was not looked at then%s",
		     explain_subject(kind), FORMAT_COUNT(tally->missed), FORMAT_COUNT(tally->steps),
		     plural(tally->steps),
		     report->window->explained[kind].state == FBT_EXPLAIN_ARMED
			     ? "; the next one will be explained"
			     : "");
}

static void write_explain_cost(const struct report *report, const struct fbt_explained *explained)
{
	const char *subject = explain_subject((enum fbt_explain)explained->kind);
	double events_ns = (double)explained->events * (double)explained->event_ps / 1000;
	bool are_samples = explained->kind == FBT_EXPLAIN_SAMPLES;
	uint64_t lost = report->window->explain_lost.count[explained->kind];
	char events[2 * FORMAT_MAX];

	snprintf(events, sizeof(events), "%s%s %s", are_samples ? "up to " : "",
		 FORMAT_COUNT(explained->events),
		 are_samples				 ? "samples"
		 : explained->kind == FBT_EXPLAIN_FAULTS ? "page faults"
							 : "context switches");

	if (explained->armed_ns)
		report_field(report, "", "%s: looked at for %s, %s x %s = %s on all CPUs", subject,
			     FORMAT_TIME(explained->armed_ns), events,
			     FORMAT_TIME((double)explained->event_ps / 1000),
			     FORMAT_TIME(events_ns));
	if (lost)
		report_field(report, "", "%s: lost %s %s: there was no room", subject,
			     FORMAT_COUNT(lost), are_samples ? "samples" : "wake-ups");
	if (explained->state == FBT_EXPLAIN_REFUSED)
		report_field(report, "",
			     "%s: not looked at, as it would take %.2g %% of the machine's CPU "
			     "time, more than %.2g %% (--explain always does it all the same)",
			     subject, (double)explained->price_ppm / PPM_PER_PERCENT,
			     (double)explained->limit_ppm / PPM_PER_PERCENT);
	if (explained->state == FBT_EXPLAIN_FAILED)
		report_field(report, "", "%s: this machine does not allow to look at it", subject);
}

void report_explain_cost(const struct report *report)
{
	for (int i = 0; i < FBT_EXPLAIN_COUNT; i++)
		if (report->window->explained[i].header.type == FBT_EVENT_EXPLAIN)
			write_explain_cost(report, &report->window->explained[i]);
}

static void write_json_functions(struct json *json, const struct explained_tally *tally)
{
	uint32_t shown = 0;
	int most;

	json_array_begin(json, "grown_functions");
	while ((most = most_grown(tally, shown)) >= 0) {
		const struct explained_function *function = &tally->functions[most];

		shown |= UINT32_C(1) << most;
		json_object_begin(json, NULL);
		json_string(json, "name", function->name);
		json_uint(json, "ns", function->ns);
		json_uint(json, "steps", function->steps);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_json_wakers(struct json *json, const struct explained_tally *tally)
{
	json_array_begin(json, "woken_by");
	for (int i = 0; i < EXPLAINED_WAKERS && tally->wakers[i].steps; i++) {
		const struct explained_waker *waker = &tally->wakers[i];

		json_object_begin(json, NULL);
		json_string(json, "name", waker->comm);
		if (waker->tgid)
			json_uint(json, "pid", waker->tgid);
		else
			json_null(json, "pid");
		json_bool(json, "own", waker->is_own);
		json_bool(json, "perhaps", waker->is_perhaps);
		json_uint(json, "steps", waker->steps);
		json_object_end(json);
	}
	json_array_end(json);
	json_uint(json, "woken_by_interrupt", tally->interrupts);
}

void report_json_explained(struct json *json, const struct explained_tally *tally)
{
	uint32_t shown = 0;
	int most;

	if (tally->steps == tally->missed)
		return;
	json_uint(json, "explained_steps", tally->steps - tally->missed);
	json_uint(json, "unexplained_steps", tally->missed);
	if (tally->kind == FBT_EXPLAIN_SAMPLES)
		write_json_functions(json, tally);
	if (tally->kind == FBT_EXPLAIN_WAKES)
		write_json_wakers(json, tally);
	if (!tally->waited_ns)
		return;
	json_object_begin(json, "cpu_taken");
	json_uint(json, "waited_ns", tally->waited_ns);
	json_uint(json, "own_threads_ns", tally->own_ns);
	json_uint(json, "idle_ns", tally->idle_ns);
	json_uint(json, "others_ns", tally->others_ns);
	json_array_begin(json, "by");
	while ((most = explained_tally_most(tally, shown)) >= 0) {
		const struct fbt_taker *taker = &tally->takers[most];

		shown |= UINT32_C(1) << most;
		json_object_begin(json, NULL);
		if (taker->tgid)
			json_uint(json, "pid", taker->tgid);
		else
			json_null(json, "pid");
		json_string(json, "name", *taker->comm ? taker->comm : NULL);
		json_string(json, "cgroup", *taker->cgroup ? taker->cgroup : NULL);
		json_uint(json, "ns", taker->ns);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

void report_json_explain_cost(struct json *json, const struct window *window)
{
	bool any = false;

	for (int i = 0; i < FBT_EXPLAIN_COUNT; i++) {
		const struct fbt_explained *explained = &window->explained[i];

		if (explained->header.type != FBT_EVENT_EXPLAIN)
			continue;
		if (!any)
			json_array_begin(json, "explain");
		any = true;
		json_object_begin(json, NULL);
		json_string(json, "what", kind_names[i]);
		json_string(json, "state", state_names[explained->state]);
		json_uint(json, "missed", explained->missed);
		json_uint(json, "armed_ns", explained->armed_ns);
		json_uint(json, "events", explained->events);
		if (window->explain_lost.count[i])
			json_uint(json, "lost", window->explain_lost.count[i]);
		json_uint(json, "per_event_ps", explained->event_ps);
		json_uint(json, "price_ppm", explained->price_ppm);
		json_uint(json, "limit_ppm", explained->limit_ppm);
		json_object_end(json);
	}
	if (any)
		json_array_end(json);
}

static void write_site_functions(struct json *json, const struct window *window,
				 const struct fbt_fault_site *site)
{
	char name[FRAMES_NAME];

	json_array_begin(json, "functions");
	for (int i = 0; i < FBT_FAULT_CALLERS && site->codes[i]; i++)
		json_string(json, NULL, frames_name(window__code(window, site->codes[i]), name));
	json_array_end(json);
}

static void write_site(struct json *json, const struct window *window,
		       const struct fbt_fault_site *site)
{
	static const char *const mappings[FBT_MAPPING_COUNT] = {
		[FBT_MAPPING_UNKNOWN] = "unknown",
		[FBT_MAPPING_FILE] = "file",
		[FBT_MAPPING_ANON] = "anon",
		[FBT_MAPPING_STACK] = "stack",
	};
	const struct file *file = site->file ? window__file(window, site->file) : NULL;

	json_object_begin(json, NULL);
	json_uint(json, "faults", site->faults);
	json_uint(json, "majors", site->majors);
	json_string(json, "mapping", mappings[site->mapping % FBT_MAPPING_COUNT]);
	json_string(json, "path", file && *file->path ? file->path : NULL);
	write_site_functions(json, window, site);
	json_object_end(json);
}

void report_json_faults(struct json *json, const struct window *window,
			const struct fbt_fault_sites *sites)
{
	if (sites->header.type != FBT_EVENT_FAULT_SITES)
		return;
	json_object_begin(json, "page_faults");
	json_uint(json, "faults", sites->faults);
	json_uint(json, "in_calls", sites->in_calls);
	json_array_begin(json, "sites");
	for (uint32_t i = 0; i < sites->count; i++)
		write_site(json, window, &sites->sites[i]);
	json_array_end(json);
	json_object_end(json);
}
