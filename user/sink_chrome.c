/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "call_args.h"
#include "escalation_fields.h"
#include "json.h"
#include "sink_chrome.h"
#include "syscalls.h"

#define NS_PER_US    1000
#define NS_PER_S     1000000000ull
#define ARG_KEY_SIZE 64

struct chrome_sink {
	struct sink sink;
	struct json json;
	uint64_t flushed_ns; /* CLOCK_MONOTONIC of now, not of the window */
};

static struct chrome_sink *to_chrome(struct sink *sink)
{
	return (struct chrome_sink *)sink;
}

/* Microseconds since the window began; 0 for what was open already. */
static uint64_t to_ts(const struct window *window, uint64_t ns)
{
	uint64_t start = window->record.start_ns;

	return ns > start ? (ns - start) / NS_PER_US : 0;
}

/*
 * The difference of two rounded times and not a rounded difference: only so a slice never sticks
 * out of the one around it.
 */
static uint64_t to_dur(const struct window *window, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t start = to_ts(window, start_ns);
	uint64_t end = to_ts(window, end_ns);

	return end > start ? end - start : 0;
}

struct slice {
	const char *name;
	const char *cat;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t pid;
	uint32_t tid;
};

static void put_slice(struct chrome_sink *chrome, const struct window *window,
		      const struct slice *slice, const struct json_fields *args)
{
	struct json *json = &chrome->json;

	json_object_begin(json, NULL);
	json_string(json, "name", slice->name);
	json_string(json, "cat", slice->cat);
	json_string(json, "ph", "X");
	json_uint(json, "ts", to_ts(window, slice->start_ns));
	json_uint(json, "dur", to_dur(window, slice->start_ns, slice->end_ns));
	json_uint(json, "pid", slice->pid);
	json_uint(json, "tid", slice->tid);
	if (args->count)
		json_fields_write(json, "args", args);
	json_object_end(json);
}

static void put_call(struct chrome_sink *chrome, const struct window *window,
		     const struct fbt_call *call)
{
	struct call_args args;
	char label[24];
	struct slice slice = {
		.name = syscall_label((enum fbt_arch)window->record.arch, call->nr, label),
		.cat = "syscall",
		.start_ns = call->start_ns,
		.pid = call->tgid,
		.tid = call->tid,
	};

	if (__builtin_add_overflow(call->start_ns, call->duration_ns, &slice.end_ns))
		slice.end_ns = UINT64_MAX;
	call_args_fill(&args, window, call);
	put_slice(chrome, window, &slice, &args.fields);
}

/* --step-arg names are free: one that is taken gets a prefix. keys must outlive fields. */
static void add_step_args(struct json_fields *fields, char keys[][ARG_KEY_SIZE],
			  const struct window *window, const struct fbt_step *record)
{
	if (record->kind >= FBT_KIND_COUNT)
		return;
	for (uint32_t i = 0; i < FBT_ARG_COUNT; i++) {
		const char *name = window->kinds[record->kind].arg_names[i];

		if (!name || !(record->arg_mask & (1u << i)))
			continue;
		snprintf(keys[i], ARG_KEY_SIZE, "%s", name);
		if (json_fields_int(fields, keys[i], record->args[i]))
			continue;
		snprintf(keys[i], ARG_KEY_SIZE, "arg%u.%s", i, name);
		json_fields_int(fields, keys[i], record->args[i]);
	}
}

static void add_step_figures(struct json_fields *fields, const struct step *step)
{
	static const char *const category_keys[FBT_CATEGORY_COUNT] = {
		"mmap_us", "futex_us", "ioctl_us", "read_us", "write_us", "other_us",
	};
	struct breakdown breakdown;

	step_breakdown(step, &breakdown);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		json_fields_uint(fields, category_keys[i], breakdown.category_us[i]);
	json_fields_uint(fields, "compute_us", breakdown_compute_us(&breakdown));
	json_fields_uint(fields, "syscall_us", breakdown_syscall_us(&breakdown));
	json_fields_string(fields, "dominant", breakdown_dominant(&breakdown));
	json_fields_double(fields, "overhead_percent", breakdown_overhead_tenths(&breakdown));
	json_fields_uint(fields, "calls", step_calls(step));
	json_fields_uint(fields, "errors", step_errors(step));
	json_fields_uint(fields, "step", step->number);
	json_fields_uint(fields, "kind_number", step->kind_number);
}

/* Only what is out of the ordinary, so that it stands out in a viewer. */
static void add_step_flaws(struct json_fields *fields, const struct step *step)
{
	if (!(step->record.header.flags & FBT_STEP_NO_GAP))
		json_fields_uint(fields, "gap_us", step->record.gap_ns / NS_PER_US);
	if (step->record.end != FBT_END_RETURN)
		json_fields_string(fields, "end",
				   step_end_name((enum fbt_step_end)step->record.end));
	if (!step->complete)
		json_fields_bool(fields, "complete", false);
	if (step->record.lost_calls)
		json_fields_uint(fields, "lost_calls", step->record.lost_calls);
	if (step->calls_truncated)
		json_fields_bool(fields, "calls_truncated", true);
}

static struct slice step_slice(const struct step *step, const char *name, const char *cat)
{
	const struct fbt_step *record = &step->record;

	return (struct slice){
		.name = name,
		.cat = cat,
		.start_ns = record->start_ns,
		.end_ns = record->end_ns,
		.pid = record->tgid,
		/* An interval is no thread's: beside the calls of one it would cut through them. */
		.tid = record->kind ? record->tid : 0,
	};
}

static void put_step(struct chrome_sink *chrome, const struct window *window,
		     const struct step *step)
{
	const struct fbt_step *record = &step->record;
	const char *source = window__step_source(window, record->kind);
	struct json_fields args = {.count = 0};
	char arg_keys[FBT_ARG_COUNT][ARG_KEY_SIZE];
	struct slice slice = step_slice(step, window__kind_name(window, record->kind), "step");

	add_step_figures(&args, step);
	add_step_flaws(&args, step);
	if (!strcmp(source, "interval"))
		json_fields_string(&args, "step_source", source);
	add_step_args(&args, arg_keys, window, record);
	put_slice(chrome, window, &slice, &args);
}

/* Of two slices of one time the one that was written first is the outer one. */
static void put_escalation(struct chrome_sink *chrome, const struct window *window,
			   const struct step *step, const struct escalation *escalation)
{
	struct escalation_fields args;
	char name[64];
	struct slice slice = step_slice(step, name, "escalation");

	snprintf(name, sizeof(name), "escalation: %s",
		 escalation_otlp_value(escalation->result.reason));
	escalation_fields_fill(&args, window, escalation);
	if (!step->complete)
		json_fields_bool(&args.fields, "complete", false);
	put_slice(chrome, window, &slice, &args.fields);
}

/* Of a write that failed since errno was cleared: stdio only remembers that one did. */
static int output_error(void)
{
	return errno ? -errno : -EIO;
}

static int flush_out(struct chrome_sink *chrome)
{
	return fflush(chrome->json.out) || ferror(chrome->json.out) ? output_error() : 0;
}

/* A tracer that is killed leaves all but the last second. */
static int check_out(struct chrome_sink *chrome)
{
	struct timespec now = {0};
	uint64_t now_ns;

	if (ferror(chrome->json.out))
		return output_error();
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	if (now_ns - chrome->flushed_ns < NS_PER_S)
		return 0;
	chrome->flushed_ns = now_ns;
	return flush_out(chrome);
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct chrome_sink *chrome = to_chrome(sink);

	errno = 0;
	put_step(chrome, window, step);
	return check_out(chrome);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct chrome_sink *chrome = to_chrome(sink);

	if (!escalation_is_shown(escalation))
		return 0;
	errno = 0;
	put_escalation(chrome, window, step, escalation);
	return check_out(chrome);
}

static int write_calls(struct sink *sink, const struct window *window, const struct step *step)
{
	struct chrome_sink *chrome = to_chrome(sink);

	errno = 0;
	for (size_t i = 0; i < step->calls.count; i++)
		put_call(chrome, window, &step->calls.items[i]);
	return check_out(chrome);
}

static int write_call(struct sink *sink, const struct window *window, const struct fbt_call *call)
{
	struct chrome_sink *chrome = to_chrome(sink);

	errno = 0;
	put_call(chrome, window, call);
	return check_out(chrome);
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct chrome_sink *chrome = to_chrome(sink);

	errno = 0;
	json_array_end(&chrome->json);
	return flush_out(chrome);
}

static void free_chrome(struct sink *sink)
{
	free(sink);
}

struct sink *sink_chrome__new(FILE *out)
{
	struct chrome_sink *chrome = calloc(1, sizeof(*chrome));

	if (!chrome)
		return NULL;
	chrome->sink = (struct sink){
		.name = "trace",
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_calls = write_calls,
		.write_call = write_call,
		.finish = finish,
		.free = free_chrome,
	};
	chrome->json.out = out;
	json_array_begin(&chrome->json, NULL);
	return &chrome->sink;
}
