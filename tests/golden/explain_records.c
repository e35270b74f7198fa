/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "records.h"

#include <stdlib.h>
#include <string.h>
#include "fbt_explain.h"

static void write_stop_sender(struct events *events)
{
	static const char *const origins[] = {"process", "terminal", "tracer", "kernel", NULL};
	struct fbt_stop_sender *sender =
		record_begin(events, FBT_EVENT_STOP_SENDER, sizeof(*sender));

	sender->tgid = record_take_tgid(events);
	sender->time_ns = events->window_ns + line_take_time(&events->line, "time", 0);
	sender->number = (uint32_t)line_take_number(&events->line, "number", 19);
	sender->origin = line_take_name(&events->line, "origin", origins);
	sender->sender = (uint32_t)line_take_number(&events->line, "sender", 0);
	sender->parent = (uint32_t)line_take_number(&events->line, "parent", 0);
	snprintf(sender->comm, sizeof(sender->comm), "%s",
		 line_take_text(&events->line, "comm", ""));
	snprintf(sender->parent_comm, sizeof(sender->parent_comm), "%s",
		 line_take_text(&events->line, "parent_comm", ""));
}

/* One more site of the next step. */
static void write_fault_sites(struct events *events)
{
	static const char *const mappings[] = {"unknown", "file", "anon", "stack", NULL};
	struct fbt_fault_sites *sites = record_begin(events, FBT_EVENT_FAULT_SITES, sizeof(*sites));
	const char *codes;

	sites->tgid = record_take_tgid(events);
	sites->tid = (uint32_t)line_take_number(&events->line, "tid", sites->tgid);
	sites->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	sites->faults = line_take_number(&events->line, "faults", 0);
	sites->in_calls = line_take_number(&events->line, "in_calls", 0);
	codes = line_take_text(&events->line, "codes", "");
	for (int i = 0; i < FBT_FAULT_CALLERS && *codes; i++) {
		sites->sites[0].codes[i] = (uint32_t)strtoul(codes, (char **)&codes, 10);
		codes += *codes == ',';
	}
	sites->sites[0].faults = (uint32_t)line_take_number(&events->line, "first", 0);
	sites->sites[0].majors = (uint32_t)line_take_number(&events->line, "majors", 0);
	sites->sites[0].mapping = line_take_name(&events->line, "mapping", mappings);
	sites->sites[0].file = (uint32_t)line_take_number(&events->line, "file", 0);
	sites->sites[1].faults = (uint32_t)line_take_number(&events->line, "second", 0);
	sites->sites[1].mapping = FBT_MAPPING_ANON;
	sites->count = sites->sites[1].faults ? 2 : sites->sites[0].faults ? 1 : 0;
}

/*
 * by is a list NAME:PID:TID:TIME in us[:CGROUP], the one with the most time first. NAME "-": all of
 * a cgroup.
 */
static void add_taker(struct fbt_taken *taken, const char *text)
{
	struct fbt_taker *taker = &taken->takers[taken->count];
	unsigned long long us = 0;

	if (sscanf(text, "%15[^:]:%u:%u:%llu:%39[^,]", taker->comm, &taker->tgid, &taker->tid, &us,
		   taker->cgroup) < 4)
		return;
	if (!strcmp(taker->comm, "-"))
		memset(taker->comm, 0, sizeof(taker->comm));
	taker->ns = us * 1000;
	if (taker->tid)
		taken->own_ns += taker->ns;
	taken->count++;
}

static void write_taken(struct events *events)
{
	struct fbt_taken *taken = record_begin(events, FBT_EVENT_TAKEN, sizeof(*taken));
	const char *by = line_take_text(&events->line, "by", "");

	taken->tgid = record_take_tgid(events);
	taken->tid = (uint32_t)line_take_number(&events->line, "tid", taken->tgid);
	taken->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	taken->waited_ns = line_take_time(&events->line, "waited", 0);
	taken->idle_ns = line_take_time(&events->line, "idle", 0);
	taken->other_ns = line_take_time(&events->line, "other", 0);
	taken->cpu = (uint32_t)line_take_number(&events->line, "cpu", 0);
	taken->header.flags = (uint16_t)line_take_number(&events->line, "flags", 0);
	while (by && *by && taken->count < FBT_TAKERS) {
		add_taker(taken, by);
		by = strchr(by, ',');
		by = by ? by + 1 : NULL;
	}
}

static void write_woken(struct events *events)
{
	struct fbt_woken *woken = record_begin(events, FBT_EVENT_WOKEN, sizeof(*woken));
	static const char *const contexts[] = {"thread", "interrupt", "sending", "kernel", NULL};
	const char *name = line_take_text(&events->line, "by", "");

	woken->tgid = record_take_tgid(events);
	woken->tid = (uint32_t)line_take_number(&events->line, "tid", woken->tgid);
	woken->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	woken->wake_ns = woken->start_ns + line_take_time(&events->line, "after", 0);
	woken->context = (uint32_t)line_take_name(&events->line, "context", contexts);
	woken->waker_tgid = (uint32_t)line_take_number(&events->line, "pid", 0);
	woken->waker_tid = (uint32_t)line_take_number(&events->line, "waker", woken->waker_tgid);
	woken->nr = (uint32_t)line_take_number(&events->line, "nr", FBT_NR_UNKNOWN);
	snprintf(woken->comm, sizeof(woken->comm), "%s", name);
}

/* by is a list CODE:SAMPLES,… */
static void write_samples(struct events *events)
{
	struct fbt_samples *samples = record_begin(events, FBT_EVENT_SAMPLES, sizeof(*samples));
	const char *by = line_take_text(&events->line, "by", "");

	samples->tgid = record_take_tgid(events);
	samples->tid = (uint32_t)line_take_number(&events->line, "tid", samples->tgid);
	samples->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	while (by && samples->count < FBT_SAMPLED_FUNCTIONS) {
		unsigned int code = 0, count = 0;

		if (sscanf(by, "%u:%u", &code, &count) != 2)
			break;
		samples->functions[samples->count].code = code;
		samples->functions[samples->count++].samples = count;
		samples->samples += count;
		by = strchr(by, ',');
		by = by ? by + 1 : NULL;
	}
}

static void write_explain(struct events *events)
{
	struct fbt_explained *explained =
		record_begin(events, FBT_EVENT_EXPLAIN, sizeof(*explained));
	static const char *const kinds[] = {"switches", "wakes", "samples", "faults", NULL};
	static const char *const states[] = {"unused", "off", "armed", "refused", "failed", NULL};

	explained->kind = (uint32_t)line_take_name(&events->line, "kind", kinds);
	explained->state = (uint32_t)line_take_name(&events->line, "state", states);
	explained->missed = line_take_number(&events->line, "missed", 0);
	explained->armed_ns = line_take_time(&events->line, "armed", 0);
	explained->events = line_take_number(&events->line, "events", 0);
	explained->event_ps = line_take_number(&events->line, "event_ps", 0);
	explained->price_ppm = line_take_number(&events->line, "price_ppm", 0);
	explained->limit_ppm = line_take_number(&events->line, "limit_ppm", 2000);
}

static void write_explain_lost(struct events *events)
{
	struct fbt_explain_lost *lost = record_begin(events, FBT_EVENT_EXPLAIN_LOST, sizeof(*lost));

	lost->count[FBT_EXPLAIN_WAKES] = line_take_number(&events->line, "wakes", 0);
	lost->count[FBT_EXPLAIN_SAMPLES] = line_take_number(&events->line, "samples", 0);
}

static const struct {
	const char *type;
	record_writer write;
} writers[] = {
	{"stop_sender", write_stop_sender},
	{"fault_sites", write_fault_sites},
	{"taken", write_taken},
	{"woken", write_woken},
	{"samples", write_samples},
	{"explain", write_explain},
	{"explain_lost", write_explain_lost},
};

record_writer explain_record_writer(const char *type)
{
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		if (!strcmp(writers[i].type, type))
			return writers[i].write;
	}
	return NULL;
}
