/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_table.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/version.h"
#include "command_table.h"
#include "judge/evidence.h"
#include "recorder/segments.h"
#include "option_value.h"

#define RANK_MAX	   1000000
#define RING_RECORDS_MIN   512
#define RING_RECORDS_MAX   (1u << 22)
#define INJECT_TIMEOUT_MAX (60 * NS_PER_S)
#define BUDGET_MAX	   (3600 * NS_PER_S)

static void *field_of(const struct option_row *row, struct options *options)
{
	return (char *)options + row->field;
}

static int set_number(const struct option_row *row, struct options *options, uint64_t value)
{
	uint32_t small = (uint32_t)value;

	if (row->size == sizeof(small))
		memcpy(field_of(row, options), &small, sizeof(small));
	else
		memcpy(field_of(row, options), &value, sizeof(value));
	return 0;
}

static int take_switch(const struct option_row *row, const char *text, struct options *options)
{
	*(bool *)field_of(row, options) = true;
	return 0;
}

static int take_text(const struct option_row *row, const char *text, struct options *options)
{
	*(const char **)field_of(row, options) = text;
	return 0;
}

/* "" undoes one that was given before, or that a recording has. */
static int take_name(const struct option_row *row, const char *text, struct options *options)
{
	return take_text(row, *text ? text : NULL, options);
}

static int take_count(const struct option_row *row, const char *text, struct options *options)
{
	uint64_t value;
	int err = option_count(row->name, text, row->min, row->max, &value);

	return err ? err : set_number(row, options, value);
}

static int take_percent(const struct option_row *row, const char *text, struct options *options)
{
	return option_percent(row->name, text, (double)row->max, field_of(row, options));
}

static int take_time(const struct option_row *row, const char *text, struct options *options)
{
	uint64_t ns;
	int err = option_time(row->name, text, row->unit_ns, row->min, row->max, &ns);

	/* 0 has a meaning of its own. */
	if (!err && ns && ns < row->field_ns)
		return option_refuse(row->name, text, "0, or not less than a microsecond");
	return err ? err : set_number(row, options, ns / row->field_ns);
}

static int take_word(const struct option_row *row, const char *text, struct options *options)
{
	uint32_t value;
	int err = option_word(row->name, text, row->words, &value);

	return err ? err : set_number(row, options, value);
}

static int take_pids(const struct option_row *row, const char *text, struct options *options)
{
	return option_pids(row->name, text, &options->pids);
}

static int take_step(const struct option_row *row, const char *text, struct options *options)
{
	struct step_spec spec = {0};
	int err = step_spec_parse(&spec, text);

	return err ? err : vec_push(&options->specs, spec);
}

static int take_step_arg(const struct option_row *row, const char *text, struct options *options)
{
	struct step_arg arg = {0};
	int err;

	if (options->args.count == FBT_ARG_COUNT) {
		log_err("--%s %s: at most %d can be recorded", row->name, text, FBT_ARG_COUNT);
		return -EINVAL;
	}
	err = step_arg_parse(&arg, text);
	return err ? err : vec_push(&options->args, arg);
}

static int take_symbols(const struct option_row *row, const char *text, struct options *options)
{
	return vec_push(&options->symbol_files, text);
}

/* May be repeated; field is a vector of texts. */
static int take_names(const struct option_row *row, const char *text, struct options *options)
{
	VEC(const char *) *names = field_of(row, options);

	if (!*text)
		return option_refuse(row->name, text, row->value);
	return vec_push(names, text);
}

static int take_memory(const struct option_row *row, const char *text, struct options *options)
{
	int err = option_bytes(row->name, text, &options->watch.memory);

	if (!err && options->watch.memory < SEGMENTS_BYTES_MIN)
		return option_refuse(row->name, text, "32M or more");
	return err;
}

static int take_flight_fd(const struct option_row *row, const char *text, struct options *options)
{
	uint64_t fd = 0;
	int err = option_count(row->name, text, STDERR_FILENO + 1, INT_MAX, &fd);

	if (err)
		return err;
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC))
		return option_refuse(row->name, text, "an open descriptor");
	options->watch.flight_fd = (int)fd;
	options->judging.is_endless = true;
	return 0;
}

static int take_list_steps(const struct option_row *row, const char *text, struct options *options)
{
	options->mode = MODE_LIST_STEPS;
	return 0;
}

static int take_dir(const struct option_row *row, const char *text, struct options *options)
{
	if (!*text)
		return option_refuse(row->name, text, "the name of a directory");
	options->windows.dir = text;
	return 0;
}

static int take_size(const struct option_row *row, const char *text, struct options *options)
{
	return option_bytes(row->name, text, field_of(row, options));
}

/*
 * The descriptor must not be a standard one, since those are ours. No program that we start
 * inherits it.
 */
static int take_ready_fd(const struct option_row *row, const char *text, struct options *options)
{
	uint64_t fd = 0;
	int err = option_count(row->name, text, STDERR_FILENO + 1, INT_MAX, &fd), mode;

	if (err)
		return err;
	mode = fcntl((int)fd, F_GETFL);
	if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY || (mode & O_PATH))
		return option_refuse(row->name, text, "a descriptor that is open for writing");
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	options->ready_fd = (int)fd;
	return 0;
}

static int take_quiet(const struct option_row *row, const char *text, struct options *options)
{
	log_set_level(log_level() > LOG_ERR ? log_level() - 1 : LOG_ERR);
	return 0;
}

static int take_verbose(const struct option_row *row, const char *text, struct options *options)
{
	log_set_level(log_level() < LOG_DEBUG ? LOG_DEBUG : LOG_LIBBPF);
	return 0;
}

static int take_help(const struct option_row *row, const char *text, struct options *options)
{
	option_help_end(row->name);
}

static const char *const details[] = {"steps", "escalated", "all", "probes", NULL};
static const char *const gpu_modes[] = {"auto", "off", "require", "inject", NULL};
static const char *const explain_modes[] = {"auto", "always", "off", NULL};
static const char *const python_modes[] = {"auto", "off", "require", "inject", "share", NULL};
static const char *const reports[] = {"none", "text", "json", NULL};
static const char *const trace_formats[] = {"ferrum", "kineto", "perfetto", NULL};

#define FIELD(member)                                                                              \
	.field = offsetof(struct options, member), .size = sizeof(((struct options *)0)->member)
#define TITLE(shown_in, title)                                                                     \
	{                                                                                          \
		.shown = OPTION_##shown_in, .text = (title)                                        \
	}
#define SWITCH(member)		 .take = take_switch, FIELD(member)
#define TEXT(member)		 .take = take_text, FIELD(member)
#define COUNT(member, low, high) .take = take_count, FIELD(member), .min = (low), .max = (high)
#define PERCENT(member, high)	 .take = take_percent, FIELD(member), .max = (high)
#define TIME(member, unit, low, high)                                                              \
	.take = take_time, FIELD(member), .unit_ns = (unit), .field_ns = 1, .min = (low),          \
	.max = (high)
#define WORD(member, list) .take = take_word, FIELD(member), .words = (list)

const struct option_row option_table[] = {
	TITLE(COMMON, "What to trace:"),
	{"pid", 'p', OPTION_COMMON, "PID[,PID...]", "Attach to these processes", .take = take_pids},
	{"all", 'a', OPTION_COMMON, NULL, "Attach to every process", SWITCH(all)},
	{"follow", 'f', OPTION_COMMON, NULL, "Also trace existing and future child processes",
	 SWITCH(follow)},
	{"duration", 'd', OPTION_COMMON, "TIME", "Stop after this time: 10 (seconds), 10s, 5m",
	 TIME(duration_ns, NS_PER_S, NS_PER_MS, OPTION_TIME_MAX)},
	{"steps", 'n', OPTION_COMMON, "STEPS", "Stop after this many steps",
	 COUNT(steps, 1, UINT64_MAX)},

	TITLE(COMMON, "Where a step begins and ends:"),
	{"step", 0, OPTION_COMMON, "SPEC",
	 "Step function: SYMBOL, a glob, /REGEX/, PATH:SYMBOL, PATH+0xADDR, "
	 "string:TEXT, usdt:PROVIDER:BEGIN,END or py:MODULE:QUALNAME, e.g. llama_decode or "
	 "'Engine::*step*'; may be repeated (default: detected in known engines)",
	 .take = take_step},
	{"list-steps", 0, OPTION_COMMON, NULL,
	 "Print the functions of -p PID that may be a step, with rates and durations, and exit",
	 .take = take_list_steps},
	{"symbols", 0, OPTION_MORE, "PATH",
	 "Read the symbols of stripped files from a file with the same build-id, e.g. "
	 "/usr/lib/debug/libllama.so.debug, or from a folder that has them by build-id, as "
	 "/usr/lib/debug; may be repeated; with --replay too",
	 .take = take_symbols},
	{"step-arg", 0, OPTION_MORE, "NAME=EXPR",
	 "Record a number with each step: argN, or s32|u32|s64|u64(argN+OFF), (sp+OFF), or of "
	 "(u64(...)+OFF), where arg0 is the first argument; e.g. batch=arg1, or "
	 "n_tokens=s32(arg1+8) "
	 "for a field of what it points to",
	 .take = take_step_arg},
	{"uretprobe", 0, OPTION_MORE, NULL,
	 "End steps with a uretprobe. Dangerous: a panic or exception that passes through the "
	 "function aborts the engine",
	 SWITCH(uretprobe)},
	{"wait-step", 0, OPTION_MORE, NULL,
	 "Do not fail if --step cannot be found yet: wait for a library that is loaded later",
	 SWITCH(wait_step)},
	{"interval", 0, OPTION_MORE, "TIME",
	 "Length of a step where no step function is known, e.g. 50ms; a bare number is in "
	 "milliseconds (default: 100)",
	 TIME(interval_ns, NS_PER_MS, NS_PER_MS, OPTION_TIME_MAX)},
	{"hang", 0, OPTION_MORE, "TIME",
	 "Report at once a step that has been open for longer; a bare number is in seconds; 0: "
	 "never (default: 10)",
	 TIME(hang_ns, NS_PER_S, 0, OPTION_TIME_MAX)},
	{"rate-guard", 0, OPTION_MORE, "PERCENT",
	 "Maximum share of a thread's time that probes may take; busier step functions are "
	 "sampled; 0: no limit (default: 5)",
	 PERCENT(windows.rate_guard_percent, 100)},

	TITLE(MORE, "Which steps are wrong:"),
	{"cv-threshold", 0, OPTION_MORE, "PERCENT",
	 "Coefficient of variation above which a class of steps is unsteady (default: 15)",
	 PERCENT(judging.classify.thresholds.cv_percent, 10000)},
	{"efficiency-threshold", 0, OPTION_MORE, "PERCENT",
	 "Ratio of budget to actual time below which a step is too slow (default: 25)",
	 PERCENT(judging.classify.thresholds.efficiency_percent, 100)},
	{"memory-cliff-threshold", 0, OPTION_MORE, "PERCENT",
	 "Excess of a step, in percent of its duration, above which it may be a memory cliff: "
	 "more than half of the excess must be growth of memory calls and page faults "
	 "(default: 30)",
	 PERCENT(judging.classify.thresholds.memory_cliff_percent, 100)},
	{"gpu-transfer-threshold", 0, OPTION_MORE, "PERCENT",
	 "Share of a step spent on GPU copies above which it is reported; requires GPU "
	 "records (default: 50)",
	 PERCENT(judging.classify.thresholds.gpu_transfer_percent, 100)},
	{"rate-limit", 0, OPTION_MORE, "N",
	 "Maximum number of escalations shown per --rate-interval (default: 100)",
	 COUNT(judging.classify.thresholds.rate_limit, 0, UINT32_MAX)},
	{"rate-interval", 0, OPTION_MORE, "TIME",
	 "Interval of --rate-limit; a bare number is in seconds (default: 60)",
	 TIME(judging.classify.thresholds.rate_interval_ns, NS_PER_S, NS_PER_MS, OPTION_TIME_MAX)},
	{"cv-window", 0, OPTION_MORE, "STEPS",
	 "Number of recent steps of a class to compare with (default: 64)",
	 COUNT(judging.classify.window_steps, CLASS_KNOWN_STEPS, CLASSIFY_WINDOW_MAX)},
	{"budget-us", 0, OPTION_MORE, "TIME",
	 "Budget of a step, e.g. 20ms; a bare number is in microseconds; 0: the step's own work "
	 "plus the usual waiting time of its class (default: 0)",
	 .take = take_time, FIELD(judging.classify.budget_us), .unit_ns = NS_PER_US,
	 .field_ns = NS_PER_US, .min = 0, .max = BUDGET_MAX},
	{"class-by", 0, OPTION_MORE, "NAME",
	 "Compare steps with a similar --step-arg NAME, e.g. n_tokens (default: n_waited or "
	 "n_tokens of Python functions, else a similar amount of work; of diff: these, else the "
	 "first by name)",
	 .take = take_name, FIELD(judging.classify.class_by)},
	{"context", 0, OPTION_MORE, "N",
	 "Number of steps before and after an escalated step whose calls are in the trace too "
	 "(default: 1)",
	 COUNT(judging.context, 0, EVIDENCE_CONTEXT_MAX)},
	{"explain", 0, OPTION_MORE, "MODE",
	 "Find out who takes the CPU of slow steps or ends their waits, and where they compute or "
	 "have page faults: auto (after the first such step, for at most 0.2 % of the machine's "
	 "CPU time), always (from the beginning, whatever it costs), or off, which does not see "
	 "who stops a process either (default: auto)",
	 WORD(explain, explain_modes)},
	{"escalate-now", 0, OPTION_MORE, NULL, "Escalate the first step, as SIGUSR1 does later",
	 SWITCH(escalate_now)},

	TITLE(COMMON, "Windows:"),
	{"flag", 0, OPTION_COMMON, "PATH",
	 "Trace only while this file exists; write one set of files per window and process",
	 TEXT(windows.flag)},
	{"max-steps", 0, OPTION_MORE, "N",
	 "With --flag: end a window after this many steps; the next one opens when the file has "
	 "been removed and created again",
	 COUNT(windows.max_steps, 0, OPTION_MAX_STEPS_OPEN - 1)},

	TITLE(MORE, "Flight recorder (watch):"),
	{"comm", 0, OPTION_MORE, "NAME",
	 "Watch processes of that name, also those that start later; may be repeated, like "
	 "--cgroup, --container and --unit",
	 .take = take_names, FIELD(watch.comms), .of = "watch"},
	{"cgroup", 0, OPTION_MORE, "PATH",
	 "Watch the processes of a cgroup and those below it, e.g. /system.slice/llm.service",
	 .take = take_names, FIELD(watch.cgroups), .of = "watch"},
	{"container", 0, OPTION_MORE, "ID",
	 "Watch the processes of a container, by its id or at least "
	 "the first 12 digits of it",
	 .take = take_names, FIELD(watch.containers), .of = "watch"},
	{"unit", 0, OPTION_MORE, "NAME", "Watch the processes of a systemd unit, e.g. llm.service",
	 .take = take_names, FIELD(watch.units), .of = "watch"},
	{"config", 0, OPTION_MORE, "FILE",
	 "Read options from FILE, one a line, before those of the command line (default: "
	 "/etc/ferrum-bpftrace.conf, if it exists)",
	 TEXT(watch.config), .of = "watch"},
	{"last", 0, OPTION_MORE, "TIME",
	 "Length of the time that is kept in memory, and that a dump has; a bare number is in "
	 "seconds (default: 5m)",
	 TIME(watch.last_ns, NS_PER_S, NS_PER_S, OPTION_TIME_MAX), .of = "watch"},
	{"memory", 0, OPTION_MORE, "SIZE",
	 "Maximum memory for the records of an engine; the oldest are dropped (default: 64M)",
	 .take = take_memory, .of = "watch"},
	{"after", 0, OPTION_MORE, "TIME",
	 "Time from an escalation to its dump, e.g. 10s; a bare number is in seconds (default: 5)",
	 TIME(watch.after_ns, NS_PER_S, 0, 600 * NS_PER_S), .of = "watch"},
	{"calls", 0, OPTION_MORE, "TIME",
	 "How long system calls are traced after the cause of a dump; 0: never; a bare number is "
	 "in "
	 "seconds (default: 10)",
	 TIME(watch.calls_ns, NS_PER_S, 0, 600 * NS_PER_S), .of = "watch"},
	{"sample", 0, OPTION_MORE, "TIME",
	 "How long system calls are traced in each --sample-every, to have something to compare "
	 "with; 0: never; a bare number is in seconds (default: 2)",
	 TIME(watch.sample_ns, NS_PER_S, 0, 600 * NS_PER_S), .of = "watch"},
	{"sample-every", 0, OPTION_MORE, "TIME",
	 "Interval of --sample; a bare number is in seconds (default: 10m)",
	 TIME(watch.sample_every_ns, NS_PER_S, 10 * NS_PER_S, OPTION_TIME_MAX), .of = "watch"},
	{"cooldown", 0, OPTION_MORE, "TIME",
	 "Minimum time between two dumps of an engine; SIGUSR1 does not wait, a hang only for a "
	 "hang; a bare number is in seconds (default: 10m)",
	 TIME(watch.cooldown_ns, NS_PER_S, 0, OPTION_TIME_MAX), .of = "watch"},
	{"max-dumps", 0, OPTION_MORE, "N",
	 "Maximum number of dumps that are kept in --dir; the oldest of escalations are deleted "
	 "first, then those of hangs and of SIGUSR1 (default: 20)",
	 COUNT(watch.max_dumps, 1, 100000), .of = "watch"},
	{"max-disk", 0, OPTION_MORE, "SIZE",
	 "Maximum space that the dumps take; 0: no limit (default: 2G)", .take = take_size,
	 FIELD(watch.max_disk), .of = "watch"},
	{"flight-fd", 0, OPTION_MORE, "FD", "Socket of a tracer that watch has started",
	 .take = take_flight_fd},

	TITLE(COMMON, "GPU:"),
	{"gpu", 0, OPTION_COMMON, "MODE",
	 "GPU records: auto (of processes that have the shim, see engine-env), off, require, or "
	 "inject: load the shim into processes that run without it (default: auto)",
	 WORD(gpu.mode, gpu_modes)},
	{"python", 0, OPTION_COMMON, "MODE",
	 "Python step functions: auto (of processes that have libferrum_python.so), off (not even "
	 "waits for the GIL and garbage collections are measured), require, inject: load it into "
	 "processes that run without it, or share: those that another tracer has, as one that "
	 "watch "
	 "runs (default: auto)",
	 WORD(python, python_modes)},
	{"inject", 0, OPTION_COMMON, NULL,
	 "Short for --gpu=inject --python=inject: a process gets the shim if it uses CUDA, and "
	 "libferrum_python.so if it runs Python",
	 SWITCH(inject)},
	{"torch-trace", 0, OPTION_MORE, NULL,
	 "With --flag and --python=inject: in each window PyTorch's own profiler runs in the "
	 "engine, and its traces are written too (pytorch_et_*.json, kineto_*.json); steps then "
	 "take several times as long",
	 SWITCH(torch.is_on)},
	{"inject-timeout", 0, OPTION_MORE, "TIME",
	 "With --gpu=inject or --python=inject: give up if no suitable thread is found within this "
	 "time; a bare "
	 "number is in seconds (default: 5)",
	 TIME(gpu.inject_timeout_ns, NS_PER_S, NS_PER_S, INJECT_TIMEOUT_MAX)},
	{"dry-run", 0, OPTION_MORE, NULL,
	 "With --gpu=inject or --python=inject: print whether the library can be loaded into -p "
	 "PID, and exit",
	 SWITCH(gpu.dry_run)},
	{"gpu-strict", 0, OPTION_MORE, NULL,
	 "Attribute to a step only GPU work that its own thread launched, not work that other "
	 "threads launched during the step",
	 SWITCH(judging.merge.strict)},

	TITLE(COMMON, "Output:"),
	{"output", 'o', OPTION_COMMON, "BASE",
	 "Name all files: BASE.trace.json, BASE.jsonl, BASE.html, BASE.folded, and BASE.fbt for "
	 "--replay; with --flag, all but the last as BASE_TAG",
	 TEXT(output)},
	{"trace", 0, OPTION_COMMON, "FILE",
	 "Chrome trace, or none (default: ./ferrum_trace_TAG.json)", TEXT(trace)},
	{"profile", 0, OPTION_COMMON, "FILE",
	 "JSON Lines, or none (default: ./ferrum_profile_TAG.jsonl)", TEXT(profile)},
	{"report", 0, OPTION_COMMON, "FORMAT",
	 "Report on standard output: text, json or none (default: text)", WORD(report, reports)},
	{"record", 0, OPTION_COMMON, "FILE", "Keep the raw records for --replay", TEXT(record)},
	{"html", 0, OPTION_MORE, "FILE", "Write a page with charts of all steps", TEXT(html)},
	{"folded", 0, OPTION_MORE, "FILE",
	 "Stacks of the steps' slow calls in folded form, in microseconds, for flame graphs; or "
	 "none (default: none)",
	 TEXT(folded)},
	{"replay", 0, OPTION_COMMON, "FILE",
	 "Read records from FILE instead of tracing; requires no privileges", TEXT(replay)},
	{"otlp", 0, OPTION_COMMON, "URL",
	 "Send escalations to an OpenTelemetry collector, e.g. http://HOST:4318", TEXT(otlp)},
	{"otlp-metrics", 0, OPTION_MORE, NULL, "Send metrics to that collector too",
	 SWITCH(otlp_metrics)},
	{"metrics", 0, OPTION_MORE, "FILE.prom",
	 "Keep metrics for Prometheus in this file, in the folder of node_exporter's textfile "
	 "collector",
	 TEXT(metrics)},
	{"metrics-interval", 0, OPTION_MORE, "TIME",
	 "Time between two writes of metrics, e.g. 1m; a bare number is in seconds (default: 15)",
	 TIME(metrics_interval_ns, NS_PER_S, NS_PER_S, OPTION_TIME_MAX)},
	{"detail", 0, OPTION_COMMON, "LEVEL",
	 "System calls to record: steps (none, only counted), escalated (those of steps) or all; "
	 "or probes: times steps and traces no system call at all (default: escalated)",
	 WORD(detail, details)},
	{"dir", 0, OPTION_MORE, "DIR",
	 "Directory of the files that are named by a tag (default: .)", .take = take_dir},
	{"keep-free", 0, OPTION_MORE, "SIZE",
	 "Stop writing files when less than SIZE is free, e.g. 500M or 2G; 0: no limit (default: 5 "
	 "% of the file system, at most 1G)",
	 .take = take_size, FIELD(windows.keep_free)},
	{"trace-format", 0, OPTION_MORE, "FORMAT",
	 "ferrum, kineto: as torch.profiler writes it, or perfetto: Perfetto's protobuf (default: "
	 "perfetto if FILE of --trace ends with .pftrace, else ferrum)",
	 WORD(trace_format, trace_formats)},
	{"rank", 0, OPTION_MORE, "N",
	 "Rank in a kineto trace (default: RANK or LOCAL_RANK of the target, or 0)",
	 COUNT(gpu.rank, 0, RANK_MAX)},

	TITLE(MORE, "Metadata of the profile (an option overrides FERRUM_PROFILE_* of the "
		    "environment, which overrides the target's own --profile-* and "
		    "FERRUM_PROFILE_*):"),
	{"profile-commit-sha", 0, OPTION_MORE, "SHA",
	 "Commit of the engine, e.g. $(git rev-parse HEAD)", TEXT(metadata.commit_sha)},
	{"profile-env-hash", 0, OPTION_MORE, "HASH", "Environment hash, sha256:...",
	 TEXT(metadata.env_hash)},
	{"profile-model", 0, OPTION_MORE, "NAME", "Model", TEXT(metadata.model)},
	{"profile-concurrency", 0, OPTION_MORE, "N", "Concurrent requests",
	 TEXT(metadata.concurrency)},
	{"profile-runtime-flags-json", 0, OPTION_MORE, "OBJECT",
	 "Runtime flags, e.g. '{\"batch\": 8}'", TEXT(metadata.runtime_flags)},
	{"compute-env-hash", 0, OPTION_MORE, NULL,
	 "Compute the environment hash from this host and the target if none is given",
	 SWITCH(compute_env_hash)},

	TITLE(MORE, "For diff A B:"),
	{"margin", 0, OPTION_MORE, "PERCENT",
	 "Quantiles are the same if they certainly differ by no more than this (default: 5)",
	 PERCENT(diff.margin_percent, 100), .of = "diff"},
	{"threshold", 0, OPTION_MORE, "PERCENT",
	 "Exit with status 3 if a class of steps is worse by this much or more (default: 5)",
	 PERCENT(diff.threshold_percent, 10000), .of = "diff"},

	TITLE(COMMON, "Other:"),
	{"quiet", 'q', OPTION_COMMON, NULL, "Only warnings and errors; -qq only errors",
	 .take = take_quiet},
	{"verbose", 'v', OPTION_COMMON, NULL,
	 "Be verbose, with threads in the report; -vv adds libbpf messages", .take = take_verbose},
	{"ring-records", 0, OPTION_MORE, "N",
	 "Number of calls that each CPU's ring buffer holds (default: 131072, less with over "
	 "16 CPUs)",
	 COUNT(ring_records, RING_RECORDS_MIN, RING_RECORDS_MAX)},
	{"ready-fd", 0, OPTION_MORE, "FD",
	 "Write a newline to this descriptor, 3 or more, and close it once all probes of the "
	 "first window are attached, e.g. 3 with 3>ready",
	 .take = take_ready_fd},
	{"require-events", 0, OPTION_MORE, "A,B",
	 "With validate: events that every profile must contain, e.g. step_prof,window_prof",
	 TEXT(require_events), .of = "validate"},
	{"help", 'h', OPTION_COMMON, NULL, "Print the most important options", .take = take_help},
	{"help-all", 0, OPTION_COMMON, NULL, "Print all options", .take = take_help},
	{"usage", 0, OPTION_MORE, NULL, "Print a short usage message", .take = take_help},
	{"version", 'V', OPTION_COMMON, NULL, "Print the version", .take = take_help},
};

const size_t option_table_count = sizeof(option_table) / sizeof(option_table[0]);

/* What the usage message says besides the sub-commands. */
static const char uses[] = "-p PID\n-a\n-- COMMAND [ARGS...]\n--replay FILE";

static const char summary[] =
	"Show where each step of a running LLM inference server spends its time.\v";
static const char remarks[] =
	"\nTracing requires root, or CAP_BPF and CAP_PERFMON, and CAP_SYS_PTRACE for processes "
	"of other users. A TIME is a number, alone or with us, ms, s, m or h.\n"
	"\nExit status: 0 done, 1 failed, 2 usage error, 3 diff found a regression; with "
	"-- COMMAND that of COMMAND.";

/* The text before and after the options: see argp(3). */
static void print_doc(char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "%sCommands:\n", summary);

	for (size_t i = 0; i < command_table_count && used < size; i++) {
		const struct command_row *row = &command_table[i];

		if (row->text)
			used += (size_t)snprintf(out + used, size - used, "  %-12s %s\n", row->name,
						 row->text);
	}
	if (used < size)
		snprintf(out + used, size - used, "%s", remarks);
}

static void print_usage(char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "%s", uses);

	for (size_t i = 0; i < command_table_count && used < size; i++) {
		const struct command_row *row = &command_table[i];

		if (row->text)
			used += (size_t)snprintf(out + used, size - used, "\n%s%s%s", row->name,
						 *row->words ? " " : "", row->words);
	}
}

/* argp(3) is only used to lay out the text. */
static void print(enum option_help shown, unsigned int flags)
{
	struct argp_option *options = calloc(option_table_count + 1, sizeof(*options));
	char usage[1024], doc[2048];
	const struct argp argp = {options, NULL, usage, doc, NULL, NULL, NULL};
	int group = 0;
	size_t count = 0;

	print_usage(usage, sizeof(usage));
	print_doc(doc, sizeof(doc));
	for (size_t i = 0; options && i < option_table_count; i++) {
		const struct option_row *row = &option_table[i];

		if (row->shown < shown)
			continue;
		group += !row->name;
		options[count++] = (struct argp_option){
			.name = row->name,
			.key = !row->name    ? 0
			       : row->letter ? row->letter
					     : 256 + (int)i,
			.arg = row->value,
			.doc = row->text,
			.group = group,
		};
	}
	if (options)
		argp_help(&argp, stdout, flags, (char *)"ferrum-bpftrace");
	if (flags & ARGP_HELP_DOC) {
		terminal_line(stdout, "%s", "");
		terminal_line(stdout, "ferrum-bpftrace %s", tool_version());
	}
	free(options);
}

void option_help_end(const char *what)
{
	if (!strcmp(what, "version"))
		terminal_line(stdout, "ferrum-bpftrace %s", tool_version());
	else if (!strcmp(what, "usage"))
		print(OPTION_MORE, ARGP_HELP_USAGE);
	else
		print(strcmp(what, "help") ? OPTION_MORE : OPTION_COMMON,
		      ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
	exit(fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
}
