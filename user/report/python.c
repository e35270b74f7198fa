/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What is measured of CPython interpreters, and what is not. */
#include <inttypes.h>

#include "base/format.h"
#include "report/part.h"

/* Processes that are described. */
#define SHOWN_MAX 4

static const char *collections_text(enum fbt_collector collector)
{
	switch (collector) {
	case FBT_COLLECTOR_USDT:
		return "garbage collections are measured (USDT probes)";
	case FBT_COLLECTOR_SYMBOL:
		return "garbage collections are measured (its function)";
	case FBT_COLLECTOR_OFF:
		return "garbage collections are not measured any more: they came too often";
	case FBT_COLLECTOR_FAILED:
		return "garbage collections are not measured: its probes could not be attached "
		       "(-v says why)";
	case FBT_COLLECTOR_NONE:
	case FBT_COLLECTOR_COUNT:
		break;
	}
	return "garbage collections are not measured: it has neither USDT probes nor a symbol of "
	       "the function that collects";
}

static const char *gil_text(const struct window *window, const struct fbt_python *python)
{
	if (!window__traces_calls(window))
		return "waits for the GIL are not measured without system calls";
	return python->gil_end ? "waits for the GIL are measured"
			       : "waits for the GIL are not measured: it does not export its data, "
				 "or its C "
				 "library is musl";
}

void report_python(const struct report *report)
{
	const struct window *window = report->window;
	size_t shown = 0, more = 0;

	for (size_t i = 0; i < window->processes.count; i++) {
		const struct fbt_python *python = &window->processes.items[i]->python;

		if (!python->tgid)
			continue;
		if (shown == SHOWN_MAX) {
			more++;
			continue;
		}
		report_field(report, shown++ ? "" : "Python",
			     "CPython 3.%" PRIu32 " in process %" PRIu32 ": %s; %s", python->minor,
			     python->tgid, gil_text(window, python),
			     collections_text((enum fbt_collector)python->collector));
	}
	if (more)
		report_field(report, "", "and %zu more processes (--report json has all)", more);
}

uint32_t report_offered_python(const struct window *window)
{
	for (size_t i = 0; i < window->processes.count; i++) {
		const struct fbt_python *python = &window->processes.items[i]->python;

		if (python->flags & FBT_PYTHON_OFFERED)
			return python->tgid;
	}
	return 0;
}

void report_json_python(struct json *json, const struct window *window,
			const struct process *process)
{
	static const char *const collectors[FBT_COLLECTOR_COUNT] = {
		[FBT_COLLECTOR_NONE] = "none",	   [FBT_COLLECTOR_USDT] = "usdt",
		[FBT_COLLECTOR_SYMBOL] = "symbol", [FBT_COLLECTOR_OFF] = "off",
		[FBT_COLLECTOR_FAILED] = "failed",
	};
	const struct fbt_python *python = &process->python;
	char version[16];

	if (!python->tgid)
		return;
	snprintf(version, sizeof(version), "3.%" PRIu32, python->minor);
	json_object_begin(json, "python");
	json_string(json, "version", version);
	json_string(json, "interpreter", process->interpreter);
	json_bool(json, "gil_measured", python->gil_end && window__traces_calls(window));
	json_string(json, "collections", collectors[python->collector % FBT_COLLECTOR_COUNT]);
	if (python->flags & FBT_PYTHON_OFFERED)
		json_bool(json, "inject_advised", true);
	json_object_end(json);
}

void report_json_stalls(struct json *json, const struct tally_kind *kind)
{
	const struct tally_stalls *stalls = &kind->stalls;

	if (stalls->gil_steps) {
		json_object_begin(json, "gil");
		json_uint(json, "steps", stalls->gil_steps);
		json_uint(json, "total_ns", stalls->gil_ns);
		json_uint(json, "waits", stalls->gil_waits);
		json_object_end(json);
	}
	if (!stalls->gc_steps)
		return;
	json_object_begin(json, "gc");
	json_uint(json, "steps", stalls->gc_steps);
	json_uint(json, "total_ns", stalls->gc_ns);
	json_uint(json, "collections", stalls->gc_count);
	json_uint(json, "longest_ns", stalls->gc_longest_ns);
	if (stalls->gc_generation < FBT_GENERATION_UNKNOWN)
		json_uint(json, "longest_generation", stalls->gc_generation);
	json_object_end(json);
}
