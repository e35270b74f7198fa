/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "options.h"

#include <errno.h>
#include <fnmatch.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/text.h"
#include "fbt_python.h"
#include "option_value.h"
#include "output/file.h"
#include "otlp/otlp_tls.h"

/* Longer values in the environment are neither a switch nor a number. */
#define VALUE_SIZE 32
#define RANK_OPEN  UINT32_MAX

/* Engines call their step function at most 5,000 times a second, as far as we have seen. */
#define RATE_GUARD_PERCENT 5

/* What explains slow steps may take 0.2 % of the machine, until none was slow for a minute. */
#define EXPLAIN_LIMIT_PPM 2000
#define EXPLAIN_IDLE_NS	  (60 * NS_PER_S)

static int usage_error(const char *message)
{
	log_err("%s (see --help)", message);
	return -EINVAL;
}

/*
 * Reads a variable, without surrounding white space. false: it is not set, or too long to be valid.
 */
static bool read_value(char value[VALUE_SIZE], const char *name)
{
	const char *text = getenv(name);
	size_t size = text ? strlen(text) : 0;

	if (!text)
		return false;
	whitespace_trim(&text, &size);
	return snprintf(value, VALUE_SIZE, "%.*s", (int)(size < VALUE_SIZE ? size : VALUE_SIZE),
			text) < VALUE_SIZE;
}

static bool is_on(const char *name, bool otherwise)
{
	static const char *const words[] = {"1", "true", "yes", "y", "on"};
	char value[VALUE_SIZE];

	if (!getenv(name))
		return otherwise;
	if (!read_value(value, name))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcasecmp(value, words[i]))
			return true;
	}
	return false;
}

static const char *read_path(const char *name)
{
	const char *path = getenv(name);

	return path && !whitespace_only(path, strlen(path)) ? path : NULL;
}

static uint64_t read_steps(const char *name)
{
	char value[VALUE_SIZE];
	uint64_t steps = 0;

	/* ferrum accepts a sign, and for it a negative number means no limit. */
	if (!read_value(value, name) || option_number(value + (*value == '+'), UINT64_MAX, &steps))
		return 0;
	return steps;
}

static void take_switches(struct option_torch *torch)
{
	static const char *const names[] = {
		"FERRUM_BPFTRACE_WITH_STACK",
		"FERRUM_BPFTRACE_RECORD_SHAPES",
		"FERRUM_BPFTRACE_SYNC_CUDA",
	};

	torch->stack = is_on(names[0], false);
	torch->shapes = is_on(names[1], true);
	torch->sync = is_on(names[2], false);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !torch->is_on; i++) {
		if (is_on(names[i], false))
			log_warn("%s: has no effect without --torch-trace", names[i]);
	}
	if (is_on("FERRUM_BPFTRACE_AUTO_CONVERT", false))
		log_warn("FERRUM_BPFTRACE_AUTO_CONVERT: has no effect: traces are not converted");
}

/* Settings that have no option, because only tests change them. */
static void read_test_number(const char *name, uint64_t unit, uint64_t *number)
{
	char value[VALUE_SIZE];
	uint64_t count;

	if (read_value(value, name) && !option_number(value, UINT32_MAX, &count))
		*number = count * unit;
}

static void apply_environment(struct options *options)
{
	struct option_windows *windows = &options->windows;
	const char *trace = getenv("FERRUM_TRACE_OUT");
	const char *profile = getenv("FERRUM_PROFILE_JSONL");
	const char *uprobes = getenv("FBT_UPROBES");
	bool traces = options->mode == MODE_TRACE;

	if (traces && !windows->flag) {
		windows->flag = read_path("FERRUM_BPFTRACE_FLAG");
		windows->flag_by_environment = windows->flag;
	}
	windows->disabled = windows->flag && !is_on("FERRUM_BPFTRACE", true);
	if (!windows->dir && !options->output)
		windows->dir = read_path("FERRUM_BPFTRACE_DIR");
	if (windows->max_steps == OPTION_MAX_STEPS_OPEN && windows->flag)
		windows->max_steps = read_steps("FERRUM_BPFTRACE_MAX_STEPS");
	/* -q and -v take precedence. */
	if (is_on("FERRUM_BPFTRACE_DEBUG", false) && log_level() == LOG_INFO)
		log_set_level(LOG_DEBUG);
	if (traces)
		take_switches(&options->torch);
	read_test_number("FBT_EXPLAIN_LIMIT_PPM", 1, &options->explain_limit_ppm);
	read_test_number("FBT_EXPLAIN_IDLE_MS", NS_PER_MS, &options->explain_idle_ns);
	options->perf_uprobes = uprobes && !strcmp(uprobes, "perf");
	/* Others write no such files, or only those that an option names. */
	if (options->output || options->top ||
	    (options->mode != MODE_TRACE && options->mode != MODE_REPLAY))
		return;
	if (windows->flag && !options->trace && trace && *trace)
		log_warn("FERRUM_TRACE_OUT: has no effect with --flag, which names the files");
	else if (!options->trace && trace && *trace)
		options->trace = trace;
	/* As in ferrum, a blank path means no profile; other paths are not trimmed. */
	if (!options->profile && profile && profile[strspn(profile, " \t\r\n\v\f")])
		options->profile = profile;
}

bool options_have_stacks(const struct options *options)
{
	return options->mode == MODE_REPLAY || options->detail == FBT_DETAIL_ESCALATED ||
	       options->detail == FBT_DETAIL_ALL;
}

/* Names the files of a single window by -o. A replay writes no capture. */
static int name_files(struct options *options)
{
	const struct {
		const char **path;
		const char *suffix;
	} files[] = {
		{&options->trace,
		 options->trace_format == TRACE_PERFETTO ? "pftrace" : "trace.json"},
		{&options->profile, "jsonl"},
		{&options->record, "fbt"},
		{&options->html, "html"},
		{&options->folded, "folded"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (*files[i].path || (files[i].path == &options->record && options->replay) ||
		    (files[i].path == &options->folded && !options_have_stacks(options)))
			continue;
		if (asprintf(&options->named[i], "%s.%s", options->output, files[i].suffix) < 0) {
			options->named[i] = NULL;
			return -ENOMEM;
		}
		*files[i].path = options->named[i];
	}
	return 0;
}

/* Names that end with .pftrace and Perfetto's format belong together. */
static int complete_trace_format(struct options *options)
{
	const char *trace =
		options->trace && strcmp(options->trace, "none") != 0 ? options->trace : NULL;
	bool is_named =
		trace && (!fnmatch("*.pftrace", trace, 0) || !fnmatch("*.pftrace.gz", trace, 0));

	if (options->trace_format == TRACE_OPEN)
		options->trace_format = is_named ? TRACE_PERFETTO : TRACE_FERRUM;
	if (is_named && options->trace_format != TRACE_PERFETTO)
		return usage_error("--trace FILE.pftrace: such files are in Perfetto's format: "
				   "choose another name, or --trace-format perfetto");
	if (options->trace_format == TRACE_PERFETTO && trace &&
	    (!fnmatch("*.json", trace, 0) || !fnmatch("*.json.gz", trace, 0)))
		return usage_error("--trace-format perfetto: its files are no JSON: name the trace "
				   "*.pftrace");
	return 0;
}

static int complete_output(struct options *options)
{
	struct option_windows *windows = &options->windows;
	const char *name;

	if (options->output) {
		name = strrchr(options->output, '/');
		name = name ? name + 1 : options->output;
		if (!*name)
			return option_refuse("output", options->output,
					     "a path that ends with the beginning of a file name");
		if (windows->dir)
			return usage_error("-o and --dir exclude each other: BASE can begin with "
					   "a directory");
		if (!windows->flag)
			return name_files(options);
		options->named[0] = strdup(options->output);
		if (!options->named[0])
			return -ENOMEM;
		windows->dir = dirname(options->named[0]);
	}
	if (!windows->dir)
		windows->dir = ".";
	return 0;
}

/* Devices and "none" may be named twice. */
static bool is_file(const char *path)
{
	return path && strcmp(path, "none") != 0 && strncmp(path, "/dev/", 5) != 0;
}

/* The directory with no links, and the name in it. False: there is no such directory yet. */
static bool resolve_path(const char *path, char resolved[PATH_MAX])
{
	char copy[PATH_MAX];
	const char *name = strrchr(path, '/');
	size_t used;

	name = name ? name + 1 : path;
	if (snprintf(copy, sizeof(copy), "%.*s", (int)(name - path), path) >= (int)sizeof(copy) ||
	    !realpath(*copy ? copy : ".", resolved))
		return false;
	used = strlen(resolved);
	return snprintf(resolved + used, PATH_MAX - used, "/%s", name) < (int)(PATH_MAX - used);
}

/*
 * By name, as a link that somebody else has put there does not make this a wrong command line:
 * files are opened so that it cannot do harm.
 */
static bool is_same_output(const char *a, const char *b)
{
	char a_path[PATH_MAX], b_path[PATH_MAX];

	if (!is_file(a) || !is_file(b))
		return false;
	if (!strcmp(a, b))
		return true;
	return resolve_path(a, a_path) && resolve_path(b, b_path) && !strcmp(a_path, b_path);
}

/* A link to the file that is read, too. */
static bool is_input(const char *input, const char *output)
{
	struct stat a, b;

	if (is_file(input) && is_file(output) && !stat(input, &a) && !stat(output, &b))
		return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
	return is_same_output(input, output);
}

static int check_outputs(const struct options *options)
{
	const char *const files[] = {options->trace, options->profile, options->record,
				     options->html,  options->folded,  options->metrics};
	const char *trace = options->trace;
	const size_t count = sizeof(files) / sizeof(*files);

	/* One file would be renamed over the other. */
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			if (is_same_output(files[i], files[k]))
				return usage_error("--trace, --profile, --record, --html, "
						   "--folded and --metrics: two of them name the "
						   "same file");
	if (options->metrics && fnmatch("*.prom", options->metrics, 0))
		return usage_error("--metrics: node_exporter reads only files named *.prom: choose "
				   "such a name");
	/* A recording cannot be made again. */
	for (size_t i = 0; i < count; i++)
		if (is_input(options->replay, files[i]))
			return usage_error("--replay: an output names the file that is read");
	if (options->trace_format == TRACE_KINETO && trace && strcmp(trace, "none") != 0 &&
	    fnmatch("*.json", trace, 0) && fnmatch("*.json.gz", trace, 0))
		return usage_error("--trace-format kineto: PyTorch's tools open only files named "
				   "*.json: choose such a name for --trace");
	return 0;
}

static bool is_by_pid(const struct options *options)
{
	return options->pids.count && !options->all && !options->command;
}

static unsigned int count_python_steps(const struct options *options)
{
	unsigned int count = 0;

	vec_for_each (spec, &options->specs)
		count += spec->form == STEP_SPEC_PYTHON;
	return count;
}

/* The markers of libferrum_python.so, and what is known of interpreters, are those of x86-64. */
static bool wants_python(const struct options *options)
{
	return options->python == PYTHON_REQUIRE || options->python == PYTHON_INJECT ||
	       count_python_steps(options);
}

static bool is_x86_64(void)
{
#ifdef __x86_64__
	return true;
#else
	return false;
#endif
}

/* The library is put into processes that -p names, of their engine, or that -f finds. */
static int complete_python(struct options *options)
{
	if (options->inject && options->gpu.mode == GPU_AUTO)
		options->gpu.mode = GPU_INJECT;
	if (options->inject && options->python == PYTHON_AUTO)
		options->python = PYTHON_INJECT;
	if (!is_x86_64() && options->inject)
		return usage_error("--inject: libraries are loaded into running processes, and "
				   "Python functions can be steps, on x86-64 only");
	if (!is_x86_64() && wants_python(options))
		return usage_error("Python functions can be steps on x86-64 only");
	if (count_python_steps(options) > FBT_PYTHON_SLOTS)
		return usage_error("--step: at most 16 Python functions can be steps at once");
	if (options->python == PYTHON_REQUIRE && options->command)
		return usage_error("--python require is about processes that run: start COMMAND "
				   "first, and name it with -p");
	if (options->python == PYTHON_SHARE && options->mode == MODE_LIST_STEPS)
		return usage_error("--list-steps has Python functions armed, and --python share "
				   "has no orders given: leave out one of them");
	if (options->python == PYTHON_INJECT && (options->command || options->all))
		log_warn("--python inject: has no effect without -p");
	return 0;
}

static int complete_gpu(struct options *options)
{
	struct option_gpu *gpu = &options->gpu;

	gpu->rank_given = gpu->rank != RANK_OPEN;
	if (!gpu->rank_given)
		gpu->rank = 0;
	if (gpu->rank_given && options->trace_format != TRACE_KINETO)
		return usage_error("--rank requires --trace-format kineto");
	if (options->judging.merge.strict && gpu->mode == GPU_OFF)
		return usage_error("--gpu-strict requires GPU records, and --gpu off takes none");
	if (gpu->inject_timeout_ns && gpu->mode != GPU_INJECT && options->python != PYTHON_INJECT)
		return usage_error("--inject-timeout requires --gpu inject or --python inject");
	if (gpu->dry_run && gpu->mode != GPU_INJECT && options->python != PYTHON_INJECT)
		return usage_error("--dry-run requires --gpu inject or --python inject");
	if (gpu->dry_run && (options->mode != MODE_DRY_RUN || !is_by_pid(options)))
		return usage_error("--dry-run requires -p PID, and does nothing else");
	if (!gpu->inject_timeout_ns)
		gpu->inject_timeout_ns = 5 * NS_PER_S;
	return 0;
}

/* Asked for twice: it runs code of PyTorch on the threads of the engine. */
static int check_torch(const struct options *options)
{
	if (!options->torch.is_on)
		return 0;
	if (options->mode != MODE_TRACE && options->mode != MODE_DRY_RUN)
		return usage_error("--torch-trace requires a trace");
	if (options->python != PYTHON_INJECT || !is_by_pid(options))
		return usage_error("--torch-trace requires -p PID and --python inject");
	if (!options->windows.flag)
		return usage_error("--torch-trace requires --flag: PyTorch's profiler runs while "
				   "that file exists");
	return 0;
}

static int check_class_by(const struct options *options)
{
	const char *name = options->judging.classify.class_by;

	/* Without --step-arg the name may be an argument of a known engine. */
	if (!name || !options->args.count)
		return 0;
	vec_for_each (arg, &options->args) {
		if (!strcmp(arg->name, name))
			return 0;
	}
	log_err("--class-by %s: no --step-arg has this name", name);
	return -EINVAL;
}

static int check_tracing(const struct options *options)
{
	int selected = (options->pids.count > 0) + options->all + (options->command != NULL);

	if (!selected)
		return usage_error("nothing to trace: use -p PID, -a or -- COMMAND");
	if (selected > 1)
		return usage_error("-p, -a and COMMAND exclude each other");
	if (options->uretprobe)
		log_warn("--uretprobe: a panic or exception that passes through the step function "
			 "will abort the target");
	/* watch says so in its own words. */
	if (options->wait_step && !options->specs.count && !options->watch.flight_fd)
		return usage_error("--wait-step requires a --step to wait for");
	if (options->detail == FBT_DETAIL_PROBES && options->interval_given)
		return usage_error("--interval and --detail probes exclude each other: intervals "
				   "are made of system calls, which are not traced");
	if (is_file(options->folded) && !options_have_stacks(options))
		log_warn(
			"--folded: stays empty: stacks are of calls, and --detail steps and probes "
			"record none");
	return check_class_by(options);
}

static int check_replay(const struct options *options)
{
	if (options->pids.count || options->all || options->command || options->record ||
	    options->windows.flag)
		return usage_error("--replay reads a file: it excludes -p, -a, COMMAND, --record "
				   "and --flag");
	return 0;
}

#define MERGE_TRACES_MAX 256

static int check_merge(const struct options *options)
{
	const char *end;

	if (options->file_count < 2)
		return usage_error("merge: name two traces at least");
	if (options->file_count > MERGE_TRACES_MAX)
		return usage_error("merge: at most 256 traces can be merged at once");
	if (!options->output)
		return usage_error("merge: name the file to write with -o OUT.json");
	end = strstr(options->output, ".pftrace");
	if (end && (!end[8] || !strcmp(end, ".pftrace.gz")))
		return usage_error("merge writes JSON, which Perfetto reads as well: choose a name "
				   "as OUT.json or OUT.json.gz");
	return 0;
}

/* What it does not take, it decides itself. */
static int check_watch(const struct options *options)
{
	const struct option_watch *watch = &options->watch;
	const struct {
		bool given;
		const char *name;
	} refused[] = {
		{options->all, "-a"},
		{options->command, "COMMAND"},
		{options->duration_ns, "-d"},
		{options->steps, "-n"},
		{options->windows.flag, "--flag"},
		{options->windows.max_steps != OPTION_MAX_STEPS_OPEN, "--max-steps"},
		{options->interval_given, "--interval"},
		{options->output, "-o"},
		{options->trace, "--trace"},
		{options->profile, "--profile"},
		{options->record, "--record"},
		{options->html, "--html"},
		{options->folded, "--folded"},
		{options->report != REPORT_TEXT, "--report"},
		{options->torch.is_on, "--torch-trace"},
		{options->replay, "--replay"},
		{options->escalate_now, "--escalate-now"},
		{options->detail != FBT_DETAIL_ESCALATED, "--detail"},
		{watch->flight_fd, "--flight-fd"},
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (!refused[i].given)
			continue;
		log_err("watch takes no %s: it chooses its processes with -p, --comm, --cgroup, "
			"--container and --unit, and names its files itself (see --help-all)",
			refused[i].name);
		return -EINVAL;
	}
	if (!options->pids.count && !watch->comms.count && !watch->cgroups.count &&
	    !watch->containers.count && !watch->units.count)
		return usage_error("watch: nothing to watch: use -p, --comm, --cgroup, --container "
				   "or --unit, or a configuration file with one of them");
	if (watch->after_ns >= watch->last_ns)
		return usage_error("watch: make --last longer than --after: else a dump lacks the "
				   "step that it is about");
	return check_class_by(options);
}

static int check_diff(const struct options *options)
{
	if (options->file_count != 2)
		return usage_error("diff: name two files: diff BEFORE AFTER");
	if (options->pids.count || options->all || options->command || options->replay ||
	    options->windows.flag || options->record || is_file(options->trace) ||
	    is_file(options->profile) || is_file(options->folded) || options->output)
		return usage_error(
			"diff reads two files, and writes a report and --html FILE only");
	if (options->diff.margin_percent <= 0)
		return usage_error("diff: --margin must be above 0: no two runs are exactly alike");
	for (size_t i = 0; i < options->file_count; i++)
		if (options->html && is_input(options->files[i], options->html))
			return usage_error("diff: --html names a file that is read");
	return 0;
}

static int check_mode(const struct options *options)
{
	if (options->ready_fd && options->mode != MODE_TRACE)
		return usage_error("--ready-fd requires a trace: nothing is attached here");
	switch (options->mode) {
	case MODE_VALIDATE:
		return options->file_count ? 0 : usage_error("validate: name the files to check");
	case MODE_MERGE:
		return check_merge(options);
	case MODE_ENV_HASH:
		return options->file_count <= 1 ? 0 : usage_error("env-hash: name one file only");
	case MODE_ENGINE_ENV:
		return 0;
	case MODE_DIFF:
		return check_diff(options);
	case MODE_DOCTOR:
		return options->all || options->command || options->replay
			       ? usage_error("doctor checks running processes: doctor PID")
			       : 0;
	case MODE_WATCH:
		return check_watch(options);
	case MODE_LIST_STEPS:
		if (options->pids.count != 1 || !is_by_pid(options) || options->replay)
			return usage_error("--list-steps requires one process: -p PID");
		break;
	case MODE_REPLAY:
		return check_replay(options);
	default:
		break;
	}
	return check_tracing(options);
}

static int refuse_with_flag(const struct options *options, const char *message)
{
	log_err("%s (%s)", message,
		options->windows.flag_by_environment ? "--flag is set by FERRUM_BPFTRACE_FLAG"
						     : "see --help");
	return -EINVAL;
}

/* Completes the options of windows, and refuses what --flag excludes. */
static int complete_windows(struct options *options)
{
	struct option_windows *windows = &options->windows;
	bool limited = windows->max_steps != OPTION_MAX_STEPS_OPEN;

	if (!limited)
		windows->max_steps = 0;
	if (options->mode != MODE_TRACE)
		return 0;
	if (limited && !windows->flag)
		return usage_error("--max-steps requires --flag; -n ends a single window");
	if (!windows->flag)
		return 0;
	if (options->command)
		return refuse_with_flag(options, "--flag excludes COMMAND: start the engine "
						 "first, then name it with -p");
	if (options->steps)
		return refuse_with_flag(options, "--flag excludes -n: use --max-steps to end each "
						 "window");
	if (options->record)
		return refuse_with_flag(options, "--flag excludes --record, which holds a single "
						 "window");
	if (options->html)
		return refuse_with_flag(options, "--flag excludes --html FILE: -o BASE writes a "
						 "page of each window");
	if (options->trace && strcmp(options->trace, "none") != 0)
		return refuse_with_flag(options, "--flag excludes --trace FILE: use --dir, -o or "
						 "--trace none");
	/* Each process writes on its own: lines to a plain file, but no members of one that is
	 * open. */
	if (options->profile && gzip_is_name(options->profile) && !options->all)
		return refuse_with_flag(options, "--flag excludes --profile FILE.gz: leave out .gz "
						 "or use --dir");
	if (options->folded && strcmp(options->folded, "none") != 0)
		return refuse_with_flag(options, "--flag excludes --folded FILE: use -o, or "
						 "--folded none");
	return 0;
}

static int complete_otlp_metrics(struct options *options)
{
	struct otlp_endpoint *endpoint = &options->metrics_collector;
	int err = otlp_endpoint_for_metrics(endpoint, &options->collector,
					    getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"));

	/* What is wrong with them was said of those of traces. */
	for (size_t i = 0; i < options->collector.headers.count && !err; i++) {
		char *copy = strdup(options->collector.headers.items[i]);

		err = copy ? vec_push(&endpoint->headers, copy) : -ENOMEM;
		if (err)
			free(copy);
	}
	endpoint->timeout_ms = options->collector.timeout_ms;
	return err;
}

/*
 * Also initializes OpenSSL: nothing has to wait for that yet, and it may still load libraries.
 */
static int check_otlp(struct options *options)
{
	const char *headers = getenv("OTEL_EXPORTER_OTLP_HEADERS");
	const char *timeout = getenv("OTEL_EXPORTER_OTLP_TIMEOUT");
	int err;

	if (!options->otlp)
		return options->otlp_metrics ? usage_error("--otlp-metrics needs --otlp URL") : 0;
	err = otlp_endpoint_parse(&options->collector, options->otlp);
	if (!err && headers)
		err = otlp_endpoint_add_headers(&options->collector, headers);
	if (err)
		return err;
	if (timeout)
		otlp_endpoint_set_timeout(&options->collector, timeout);
	err = options->otlp_metrics ? complete_otlp_metrics(options) : 0;
	if (err)
		return err;
	otlp_tls_prepare();
	return 0;
}

#define INTERVAL_DEFAULT_NS (100 * NS_PER_MS)
#define HANG_DEFAULT_NS	    (10 * NS_PER_S)
#define METRICS_INTERVAL_NS (15 * NS_PER_S)

void options_init(struct options *options)
{
	*options = (struct options){
		.detail = FBT_DETAIL_ESCALATED,
		.report = REPORT_OPEN,
		.trace_format = TRACE_OPEN,
		.judging = {.classify = classify_default_options(),
			    .context = 1,
			    .merge.timeout_ns = MERGE_TIMEOUT_NS},
		.windows = {.max_steps = OPTION_MAX_STEPS_OPEN,
			    .keep_free = DISK_ROOM_DEFAULT,
			    .rate_guard_percent = RATE_GUARD_PERCENT},
		.explain_limit_ppm = EXPLAIN_LIMIT_PPM,
		.explain_idle_ns = EXPLAIN_IDLE_NS,
		.hang_ns = HANG_DEFAULT_NS,
		.metrics_interval_ns = METRICS_INTERVAL_NS,
		.gpu.rank = RANK_OPEN,
		.watch = {.last_ns = 300 * NS_PER_S,
			  .memory = UINT64_C(64) << 20,
			  .after_ns = 5 * NS_PER_S,
			  .calls_ns = 10 * NS_PER_S,
			  .sample_ns = 2 * NS_PER_S,
			  .sample_every_ns = 600 * NS_PER_S,
			  .cooldown_ns = 600 * NS_PER_S,
			  .max_dumps = 20,
			  .max_disk = UINT64_C(2) << 30},
		.diff = {.margin_percent = 5, .threshold_percent = 5},
	};
}

/* The terminal is the view's: what else is written was asked for. */
static int complete_top(struct options *options)
{
	if (options->report == REPORT_OPEN)
		options->report = options->top ? REPORT_NONE : REPORT_TEXT;
	if (!options->top)
		return 0;
	if (options->mode != MODE_TRACE)
		return usage_error("top shows processes that run: use it with -p PID or -a only");
	if (options->command)
		return usage_error(
			"top cannot share the terminal with COMMAND: start COMMAND first, "
			"and name it with -p");
	if (options->windows.flag)
		return usage_error("top and --flag exclude each other: top shows one window");
	if (!options->trace && !options->output)
		options->trace = "none";
	if (!options->profile && !options->output)
		options->profile = "none";
	return 0;
}

int options_complete(struct options *options)
{
	int err;

	options->interval_given = options->interval_ns;
	if (!options->interval_given)
		options->interval_ns = INTERVAL_DEFAULT_NS;
	if (options->replay && options->mode == MODE_TRACE)
		options->mode = MODE_REPLAY;
	if (options->gpu.dry_run && options->mode == MODE_TRACE)
		options->mode = MODE_DRY_RUN;
	apply_environment(options);
	err = complete_top(options);
	err = err ? err : complete_trace_format(options);
	err = err ? err : complete_python(options);
	err = err ? err : complete_gpu(options);
	err = err ? err : check_mode(options);
	err = err ? err : complete_windows(options);
	err = err ? err : check_torch(options);
	err = err ? err : complete_output(options);
	err = err ? err : check_outputs(options);
	return err ? err : check_otlp(options);
}

void options_clear(struct options *options)
{
	vec_for_each (spec, &options->specs)
		step_spec_clear(spec);
	vec_free(&options->specs);
	vec_free(&options->args);
	vec_free(&options->symbol_files);
	vec_free(&options->pids);
	for (size_t i = 0; i < sizeof(options->named) / sizeof(*options->named); i++)
		free(options->named[i]);
	otlp_endpoint_clear(&options->collector);
	vec_free(&options->watch.comms);
	vec_free(&options->watch.cgroups);
	vec_free(&options->watch.containers);
	vec_free(&options->watch.units);
	vec_free(&options->watch.given);
	free(options->watch.text);
	vec_for_each (text, &options->judging_given)
		free(*text);
	vec_free(&options->judging_given);
	otlp_endpoint_clear(&options->metrics_collector);
}

bool options_name_process(const struct options *options, uint32_t tgid)
{
	vec_for_each (pid, &options->pids) {
		if (*pid == tgid)
			return true;
	}
	return false;
}

struct symbol_files options_symbols(const struct options *options)
{
	return (struct symbol_files){options->symbol_files.items, options->symbol_files.count};
}

struct target_options target_options_of(const struct options *options)
{
	return (struct target_options){
		.specs = options->specs.items,
		.spec_count = options->specs.count,
		.args = options->args.items,
		.arg_count = options->args.count,
		.symbol_files = options->symbol_files.items,
		.symbol_file_count = options->symbol_files.count,
		.uretprobe = options->uretprobe,
	};
}
