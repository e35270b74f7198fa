/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "curl_library.h"
#include "log.h"
#include "option_judging.h"
#include "option_messages.h"
#include "option_metadata.h"
#include "option_table.h"
#include "option_value.h"
#include "options.h"

#define NS_PER_S  1000000000.0
#define NS_PER_MS 1000000.0

const char *argp_program_version = "ferrum-bpftrace " FBT_VERSION;

static int add_step(struct options *options, const char *text)
{
	struct step_spec spec = {0};
	int err = step_spec_parse(&spec, text);

	if (!err)
		err = vec_push(&options->specs, spec);
	return -err;
}

static int add_step_arg(struct options *options, const char *text)
{
	struct step_arg arg = {0};
	int err;

	if (options->args.count == FBT_ARG_COUNT) {
		log_err("--step-arg %s: at most %d can be recorded", text, FBT_ARG_COUNT);
		return EINVAL;
	}
	err = step_arg_parse(&arg, text);
	if (!err)
		err = vec_push(&options->args, arg);
	return -err;
}

static int parse_output(struct options *options, int key, const char *arg)
{
	static const char *const formats[] = {"none", "text", "json", NULL};
	static const char *const trace_formats[] = {"ferrum", "kineto", NULL};
	static const char *const details[] = {"steps", "escalated", "all", NULL};
	int value = 0, err = 0;

	switch (key) {
	case KEY_DETAIL:
		err = option_parse_word("--detail", arg, details, "steps, escalated or all",
					&value);
		options->detail = (enum fbt_detail)value;
		break;
	case KEY_REPORT:
		err = option_parse_word("--report", arg, formats, "text, json or none", &value);
		options->report = (enum report_format)value;
		break;
	case KEY_TRACE_FORMAT:
		err = option_parse_word("--trace-format", arg, trace_formats, "ferrum or kineto",
					&value);
		options->trace_format = (enum trace_format)value;
		break;
	case KEY_TRACE:
		options->trace = arg;
		break;
	case KEY_PROFILE:
		options->profile = arg;
		break;
	case KEY_RECORD:
		options->record = arg;
		break;
	case KEY_REPLAY:
		options->replay = arg;
		break;
	default:
		err = ARGP_ERR_UNKNOWN;
	}
	return err;
}

static int parse_other(struct options *options, int key, const char *arg)
{
	switch (key) {
	case KEY_COMPUTE_ENV_HASH:
		options->compute_env_hash = true;
		return 0;
	case KEY_OTLP:
		options->otlp = arg;
		return 0;
	case KEY_ESCALATE_NOW:
		options->escalate_now = true;
		return 0;
	case KEY_BPF_STATS:
		options->bpf_stats = true;
		return 0;
	case KEY_REQUIRE_EVENTS:
		options->require_events = arg;
		return 0;
	case 'q':
		log_set_level(log_level() > LOG_ERR ? log_level() - 1 : LOG_ERR);
		return 0;
	case 'v':
		log_set_level(log_level() < LOG_DEBUG ? LOG_DEBUG : LOG_LIBBPF);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int parse_step_option(struct options *options, int key, const char *arg)
{
	switch (key) {
	case KEY_STEP:
		return add_step(options, arg);
	case KEY_STEP_ARG:
		return add_step_arg(options, arg);
	case KEY_SYMBOLS:
		return -vec_push(&options->symbol_files, arg);
	case KEY_URETPROBE:
		options->uretprobe = true;
		return 0;
	case KEY_WAIT_STEP:
		options->wait_step = true;
		return 0;
	case KEY_INTERVAL:
		return option_parse_duration("--interval", arg, NS_PER_MS, &options->interval_ns);
	case KEY_RING_RECORDS:
		return option_parse_ring_records(&options->ring_records, arg);
	case KEY_LIST_STEPS:
		options->mode = MODE_LIST_STEPS;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int parse_selection(struct options *options, int key, const char *arg)
{
	switch (key) {
	case 'p':
		return option_parse_pids(&options->pids, arg);
	case 'a':
		options->all = true;
		return 0;
	case 'f':
		options->follow = true;
		return 0;
	case 'd':
		return option_parse_duration("--duration", arg, NS_PER_S, &options->duration_ns);
	case 'n':
		return option_parse_range("--steps", arg, 1, UINT64_MAX, &options->steps);
	}
	return ARGP_ERR_UNKNOWN;
}

/* COMMAND and validate end our own options: what follows is theirs. */
static int parse_argument(struct options *options, char *arg, struct argp_state *state)
{
	bool after_dashes = state->next >= 2 && !strcmp(state->argv[state->next - 2], "--");

	/* The files are gathered in the places of argv that have been read. */
	if (options->mode == MODE_VALIDATE || options->mode == MODE_ENV_HASH) {
		if (!options->file_count)
			options->files = &state->argv[state->next - 1];
		options->files[options->file_count++] = arg;
		return 0;
	}
	if (options->mode == MODE_DOCTOR && !after_dashes)
		return option_parse_pids(&options->pids, arg);
	if (!after_dashes && option_argument_is_command(arg, &options->mode))
		return 0;
	if (!after_dashes) {
		log_err("%s: what is that? To trace a process: -p PID. To start a program and "
			"trace it: -- %s",
			arg, arg);
		return EINVAL;
	}
	options->command = &state->argv[state->next - 1];
	state->next = state->argc;
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;
	int err = parse_selection(options, key, arg);

	if (err == ARGP_ERR_UNKNOWN)
		err = parse_step_option(options, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = option_parse_judging(&options->judging, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = option_parse_windows(&options->windows, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = option_parse_gpu(&options->gpu, &options->judging.merge, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = option_parse_metadata(&options->metadata, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = parse_output(options, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = parse_other(options, key, arg);
	if (err == ARGP_ERR_UNKNOWN && key == ARGP_KEY_ARG)
		err = parse_argument(options, arg, state);
	return err;
}

static int usage_error(const char *message)
{
	log_err("%s (see --help)", message);
	return -EINVAL;
}

static int check_class_by(const struct options *options)
{
	const char *name = options->judging.classify.class_by;

	/* Without --step-arg it may be one of those that known engines have. */
	if (!name || !options->args.count)
		return 0;
	vec_for_each (arg, &options->args) {
		if (!strcmp(arg->name, name))
			return 0;
	}
	log_err("--class-by %s: no such step argument: name one of --step-arg", name);
	return -EINVAL;
}

static int check_selection(const struct options *options)
{
	int selected = (options->pids.count > 0) + options->all + (options->command != NULL);

	if (options->mode == MODE_VALIDATE)
		return options->file_count ? 0 : usage_error("validate: name the files to check");
	if (options->mode == MODE_ENV_HASH)
		return options->file_count <= 1 ? 0 : usage_error("env-hash: one file at a time");
	if (options->mode == MODE_GPU_ENV)
		return 0;
	if (options->mode == MODE_DOCTOR)
		return options->all || options->command || options->replay
			       ? usage_error("doctor: looks at processes that run: doctor PID")
			       : 0;
	if (options->mode == MODE_LIST_STEPS && (selected != 1 || options->pids.count != 1))
		return usage_error("--list-steps: needs one process: -p PID");
	if (options->replay)
		return selected || options->record || options->windows.flag
			       ? usage_error("--replay: reads a file, so -p, -a, COMMAND, --record "
					     "and --flag do not go with it")
			       : 0;
	if (!selected)
		return usage_error("nothing to trace: -p PID, -a or -- COMMAND");
	if (selected > 1)
		return usage_error("-p, -a and COMMAND exclude each other");
	if (options->uretprobe)
		log_warn("--uretprobe: a panic or exception that passes through the step function "
			 "will "
			 "abort the target");
	if (options->wait_step && !options->specs.count)
		return usage_error("--wait-step: needs a --step to wait for");
	return check_class_by(options);
}

static bool by_pid(const struct options *options)
{
	return options->pids.count && !options->all && !options->command;
}

static bool is_same_file(const char *a, const char *b)
{
	return a && b && !strcmp(a, b) && strcmp(a, "none") && strncmp(a, "/dev/", 5) != 0;
}

/* One would be renamed over the other. */
static int check_outputs(const struct options *options)
{
	if (is_same_file(options->trace, options->profile) ||
	    is_same_file(options->trace, options->record) ||
	    is_same_file(options->profile, options->record))
		return usage_error(
			"--trace, --profile and --record: two of them name the same file");
	if (options->trace_format == TRACE_KINETO && !option_is_json_path(options->trace))
		return usage_error("--trace-format kineto: torch's tools open only files that are "
				   "named *.json: name the trace so");
	return 0;
}

/* Also loads libcurl: now, while nothing waits for it, and what cannot be sent is said at once. */
static int check_otlp(struct options *options)
{
	const char *headers = getenv("OTEL_EXPORTER_OTLP_HEADERS");
	struct curl_library curl;
	int err;

	if (!options->otlp)
		return 0;
	err = otlp_endpoint_parse(&options->collector, options->otlp);
	if (!err && headers)
		err = otlp_endpoint_add_headers(&options->collector, headers);
	if (err)
		return err;
	err = curl_library_load(&curl);
	return err && err != -ENOMEM ? -EINVAL : err;
}

static int refuse_with_flag(const struct options *options, const char *message)
{
	log_err("%s (%s)", message,
		options->windows.flag_by_environment ? "FERRUM_BPFTRACE_FLAG gives --flag"
						     : "see --help");
	return -EINVAL;
}

/* What cannot be where windows come and go. */
static int check_windows(const struct options *options)
{
	const struct option_windows *windows = &options->windows;

	if (options->mode == MODE_TRACE && windows->max_steps_given && !windows->flag)
		return usage_error("--max-steps: goes with --flag; -n ends a single window");
	if (options->mode != MODE_TRACE || !windows->flag)
		return 0;
	if (options->command)
		return refuse_with_flag(options, "COMMAND: --flag waits for windows of what runs: "
						 "start the engine first, then name it by -p");
	if (options->steps)
		return refuse_with_flag(options, "-n: ends a single window; with --flag, "
						 "--max-steps ends each");
	if (options->record)
		return refuse_with_flag(options, "--record: holds one window, not those of --flag");
	if (options->trace && strcmp(options->trace, "none"))
		return refuse_with_flag(options, "--trace: --flag names its files by tag: use "
						 "--dir, or --trace none");
	return 0;
}

static void apply_environment(struct options *options)
{
	const char *trace = getenv("FERRUM_TRACE_OUT");
	const char *profile = getenv("FERRUM_PROFILE_JSONL");
	const char *uprobes = getenv("FBT_UPROBES");

	if (options->windows.flag && !options->trace && trace && *trace)
		log_warn("FERRUM_TRACE_OUT: has no effect where --flag names the files");
	else if (!options->trace && trace && *trace)
		options->trace = trace;
	/* The seed takes a blank path of the profile for none, and trims it for that test only. */
	if (!options->profile && profile && profile[strspn(profile, " \t\r\n\v\f")])
		options->profile = profile;
	options->perf_uprobes = uprobes && !strcmp(uprobes, "perf");
}

int options_parse(struct options *options, int argc, char **argv)
{
	static const struct argp argp = {
		option_table, parse_option, option_args_doc, option_doc, NULL, NULL, NULL};
	int err;

	memset(options, 0, sizeof(*options));
	options->detail = FBT_DETAIL_ESCALATED;
	options->report = REPORT_TEXT;
	options->judging.classify = classify_default_options();
	options->judging.context = 1;
	options->judging.merge.timeout_ns = MERGE_TIMEOUT_NS;
	options->interval_ns = 100 * 1000000ull;
	argp_err_exit_status = 2;
	/* In order: else argp moves what stands before "--" behind it, as if it were COMMAND. */
	err = option_messages_parse(&argp, argc, argv, ARGP_IN_ORDER, options);
	if (err)
		return err == ENOMEM ? -ENOMEM : -EINVAL;
	if (options->replay && options->mode == MODE_TRACE)
		options->mode = MODE_REPLAY;
	if (options->gpu.dry_run && options->mode == MODE_TRACE)
		options->mode = MODE_DRY_RUN;
	option_complete_windows(&options->windows, options->mode == MODE_TRACE);
	apply_environment(options);
	err = option_complete_gpu(&options->gpu, &options->judging.merge,
				  options->mode == MODE_DRY_RUN && by_pid(options),
				  options->trace_format == TRACE_KINETO);
	if (!err)
		err = check_outputs(options);
	if (!err)
		err = check_selection(options);
	if (!err)
		err = check_windows(options);
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
	otlp_endpoint_clear(&options->collector);
}
