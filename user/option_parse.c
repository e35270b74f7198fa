/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_parse.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/redact.h"
#include "command_table.h"
#include "option_config.h"
#include "option_judging.h"
#include "option_names.h"
#include "option_table.h"
#include "option_value.h"

/* Keys of getopt_long(3): a letter; KEY_ROWS plus the index of a row; or KEY_WORD. */
#define KEY_ROWS  256
#define KEY_WORD  1 /* a word that is not an option */
#define WORDS_MAX 128

/* By row: what was on the command line. */
struct given {
	bool rows[WORDS_MAX];
};

struct words {
	struct option names[WORDS_MAX];
	char letters[2 * WORDS_MAX];
};

/*
 * "-": other words are returned in order. ":": errors are left to us, to be logged with control
 * characters escaped.
 */
static void collect_words(struct words *words)
{
	size_t count = 0, used = 2;

	*words = (struct words){.letters = "-:"};
	for (size_t i = 0; i < option_table_count && count < WORDS_MAX - 1; i++) {
		const struct option_row *row = &option_table[i];

		if (!row->name)
			continue;
		words->names[count++] = (struct option){
			.name = row->name,
			.has_arg = row->value ? required_argument : no_argument,
			.val = KEY_ROWS + (int)i,
		};
		if (row->letter)
			words->letters[used++] = (char)row->letter;
		if (row->letter && row->value)
			words->letters[used++] = ':';
	}
}

/* Finds the row of a key. NULL: there is no such letter. */
static const struct option_row *find_row(int key)
{
	if (key >= KEY_ROWS)
		return &option_table[key - KEY_ROWS];
	for (size_t i = 0; i < option_table_count; i++) {
		if (option_table[i].letter == key && option_table[i].name)
			return &option_table[i];
	}
	return NULL;
}

static const char *find_similar_command(const char *word)
{
	const char *best = NULL;

	for (size_t i = 0; i < command_table_count; i++)
		best = option_choose_nearer(word, best, command_table[i].name);
	return best;
}

/*
 * Refuses "--NAME" or "--NAME=VALUE", where NAME is neither an option nor the prefix of exactly
 * one.
 */
static int refuse_name(const char *word)
{
	size_t length = strcspn(word + 2, "=");
	char name[64], matches[256] = "";
	struct redactor redactor = {false};
	char shown[256];
	const char *similar;
	size_t used = 0;

	redact_argument(&redactor, word, strlen(word), false, shown, sizeof(shown));
	snprintf(name, sizeof(name), "%.*s", (int)length, word + 2);
	for (size_t i = 0; i < option_table_count && *name; i++) {
		const struct option_row *row = &option_table[i];

		if (row->name && !strncmp(row->name, name, strlen(name)) && used < sizeof(matches))
			used += (size_t)snprintf(matches + used, sizeof(matches) - used, "%s--%s",
						 used ? ", " : "", row->name);
	}
	similar = used ? NULL : option_similar(name);
	if (used)
		log_err("ambiguous option '%s': %s", shown, matches);
	else if (similar)
		log_err("unknown option '%s': did you mean --%s?", shown, similar);
	else
		log_err("unknown option '%s' (see --help-all)", shown);
	return -EINVAL;
}

static int refuse_option(struct options *options, int answer, char **argv)
{
	const struct option_row *row = find_row(optopt);

	if (optopt == '?')
		option_help_end("help");
	if (!optopt)
		return refuse_name(argv[optind - 1]);
	if (!row)
		log_err("unknown option '-%c' (see --help)", optopt);
	else if (answer != ':')
		log_err("--%s takes no value (see --help)", row->name);
	else if (row->letter == 'p')
		return row->take(row, "", options);
	else
		log_err("--%s: %s is missing (see --help)", row->name, row->value);
	return -EINVAL;
}

static int refuse_word(const char *word)
{
	const char *command = find_similar_command(word), *option = option_similar(word);

	if (!word[strspn(word, "0123456789,")] && *word)
		log_err("unknown command '%s': name processes with -p, separated by commas: "
			"-p 12,34",
			word);
	else if (command)
		log_err("unknown command '%s': did you mean %s?", word, command);
	else if (option && !strcmp(word, option))
		log_err("unknown command '%s': did you mean --%s?", word, option);
	else
		log_err("unknown command '%s': use -p PID to trace a process, or -- %s to start a "
			"program and trace it (see --help)",
			word, word);
	return -EINVAL;
}

static int take_doctor_word(struct options *options, const char *word)
{
	if (*word && !word[strspn(word, "0123456789,")])
		return option_pids("pid", word, &options->pids);
	log_err("doctor: '%s' is not a process ID: use doctor $(pidof PROGRAM)", word);
	return -EINVAL;
}

static bool takes_files(const struct options *options)
{
	return options->mode == MODE_VALIDATE || options->mode == MODE_ENV_HASH ||
	       options->mode == MODE_MERGE || options->mode == MODE_DIFF;
}

static int take_word(struct options *options, char **word, char *const *first)
{
	const struct command_row *command;

	/* Files are collected in the part of argv that has been read. */
	if (takes_files(options)) {
		if (!options->file_count)
			options->files = word;
		options->files[options->file_count++] = *word;
		return 0;
	}
	if (options->mode == MODE_DOCTOR)
		return take_doctor_word(options, *word);
	if (options->mode == MODE_ENGINE_ENV) {
		log_err("engine-env: unexpected '%s': engine-env takes no arguments", *word);
		return -EINVAL;
	}
	command = command_find(*word);
	if (!command)
		return refuse_word(*word);
	options->mode = command->mode;
	options->top |= command->is_live;
	if (options->mode != MODE_WATCH || word == first)
		return 0;
	log_err("watch must come first: ferrum-bpftrace watch [OPTIONS]");
	return -EINVAL;
}

/* "--config", or as much of it as getopt_long takes for it: "--con" may be --container. */
static bool is_config(const char *argument, size_t length)
{
	return length >= strlen("--conf") && length <= strlen("--config") &&
	       !strncmp(argument, "--config", length);
}

/* The options of the file come first: those of the command line take precedence. */
static int read_config(struct options *options, int argc, char **argv)
{
	const char *path = NULL;

	if (argc < 2 || strcmp(argv[1], "watch") != 0)
		return 0;
	for (int i = 2; i < argc; i++) {
		size_t length = strcspn(argv[i], "=");

		if (!is_config(argv[i], length))
			continue;
		if (argv[i][length])
			path = argv[i] + length + 1;
		else if (i + 1 < argc)
			path = argv[++i];
	}
	return option_config_read(options, path ? path : OPTION_CONFIG_DEFAULT, path);
}

static bool is_given(const struct given *given, const char *name)
{
	return given->rows[option_find(name) - option_table];
}

/* A tracer that watch has started is told how much it is to keep. */
static int check_owners(const struct options *options, const struct given *given)
{
	for (size_t i = 0; i < option_table_count; i++) {
		const struct option_row *row = &option_table[i];

		if (!given->rows[i] || !row->of || options->watch.flight_fd ||
		    options->mode == command_find(row->of)->mode)
			continue;
		log_err("--%s is an option of ferrum-bpftrace %s (see --help-all)", row->name,
			row->of);
		return -EINVAL;
	}
	return 0;
}

/* What belongs to the window that was recorded, or to the attaching. */
static const char *const of_tracing[] = {
	"duration",  "steps",	 "follow", "step",   "step-arg", "uretprobe",
	"wait-step", "interval", "hang",   "detail", "explain",	 "rate-guard",
	"max-steps", "gpu",	 "python", "inject", "dir",	 "ring-records"};

static void warn_of_replay(const struct given *given)
{
	char names[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(of_tracing) / sizeof(*of_tracing); i++) {
		const struct option_row *row = option_find(of_tracing[i]);
		char letter[] = {'-', (char)row->letter, '\0'};

		if (is_given(given, row->name))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s%s",
						 used ? ", " : "", row->letter ? letter : "--",
						 row->letter ? "" : row->name);
	}
	if (used)
		log_warn("--replay: no effect on what has been recorded: %s", names);
}

/* What would be left out without a word. */
static int check_formats(const struct options *options, const struct given *given)
{
	bool has_json = options->mode == MODE_TRACE || options->mode == MODE_REPLAY ||
			options->mode == MODE_DOCTOR || options->mode == MODE_DIFF ||
			options->mode == MODE_WATCH;
	const char *why = NULL;

	if (options->mode == MODE_REPLAY && is_given(given, "trace-format") && !options->trace)
		why = "--trace-format: a replay writes a trace only with --trace FILE or -o BASE";
	else if (options->mode == MODE_MERGE && is_given(given, "trace-format"))
		why = "--trace-format: merge writes JSON, which Perfetto reads as well";
	else if (options->report == REPORT_JSON && !has_json)
		why = "--report json: only a trace, --replay, diff and doctor have a report as "
		      "JSON";
	if (!why)
		return 0;
	log_err("%s (see --help-all)", why);
	return -EINVAL;
}

static int finish(struct options *options, const struct given *given)
{
	int err = check_owners(options, given);

	if (!err)
		err = options_complete(options);
	if (!err)
		err = check_formats(options, given);
	if (!err && options->mode == MODE_REPLAY)
		warn_of_replay(given);
	return err;
}

int options_parse(struct options *options, int argc, char **argv)
{
	struct given given = {{false}};
	struct words words;
	int key, err;

	options_init(options);
	collect_words(&words);
	err = read_config(options, argc, argv);
	optind = 0; /* glibc: start again */
	while (!err && (key = getopt_long(argc, argv, words.letters, words.names, NULL)) != -1) {
		const struct option_row *row = find_row(key);

		if (key == '?' || key == ':')
			err = refuse_option(options, key, argv);
		else if (key == KEY_WORD)
			err = take_word(options, &argv[optind - 1], argv + 1);
		else
			err = row->take(row, optarg, options);
		if (!err && row)
			given.rows[row - option_table] = true;
		if (!err && row)
			err = option_judging_note(options, row->name, optarg);
		if (!err && row && options->mode == MODE_WATCH)
			err = option_config_note(options, row->name, row->value ? optarg : NULL);
	}
	/* After "--" come files, or a COMMAND with options of its own. */
	if (!takes_files(options) && optind < argc)
		options->command = &argv[optind];
	else
		while (!err && optind < argc)
			err = take_word(options, &argv[optind++], argv + 1);
	return err ? err : finish(options, &given);
}
