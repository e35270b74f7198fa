/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_parse.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/redact.h"
#include "option_table.h"
#include "option_value.h"

/* Keys of getopt_long(3): a letter; KEY_ROWS plus the index of a row; or KEY_WORD. */
#define KEY_ROWS  256
#define KEY_WORD  1 /* a word that is not an option */
#define WORDS_MAX 96

/* Longer words are not typos of an option. */
#define WORD_MAX 32

static const struct command {
	const char *name;
	enum options_mode mode;
} commands[] = {
	{"validate", MODE_VALIDATE},  {"env-hash", MODE_ENV_HASH}, {"engine-env", MODE_ENGINE_ENV},
	{"gpu-env", MODE_ENGINE_ENV},			   /* its name before it was about Python */
	{"doctor", MODE_DOCTOR},      {"top", MODE_TRACE}, /* and options->top */
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

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * The number of insertions, deletions, replacements and swaps of neighbours that turn one word into
 * the other.
 */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], a_length = strlen(a), b_length = strlen(b);

	if (a_length > WORD_MAX || b_length > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = min(min(row[j - 1], above[j]) + 1,
				     above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min(row[j], before[j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

/*
 * Returns name if word is closer to it than to best (NULL: none), and at most a third of the
 * letters differ. Otherwise best.
 */
static const char *choose_nearer(const char *word, const char *best, const char *name)
{
	size_t found = distance(word, name);
	bool is_near = found <= strlen(name) / 3 && (!best || found < distance(word, best));

	return is_near ? name : best;
}

/* The option, without its dashes, of which word may be a typo. NULL: none. */
static const char *find_similar_option(const char *word)
{
	const char *best = NULL;

	for (size_t i = 0; i < option_table_count; i++) {
		if (option_table[i].name)
			best = choose_nearer(word, best, option_table[i].name);
	}
	return best;
}

static const char *find_similar_command(const char *word)
{
	const char *best = NULL;

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		best = choose_nearer(word, best, commands[i].name);
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
	similar = used ? NULL : find_similar_option(name);
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
	const char *command = find_similar_command(word), *option = find_similar_option(word);

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

static int take_word(struct options *options, char **word)
{
	/* Files are collected in the part of argv that has been read. */
	if (options->mode == MODE_VALIDATE || options->mode == MODE_ENV_HASH) {
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
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(*word, commands[i].name) != 0)
			continue;
		options->mode = commands[i].mode;
		options->top |= !strcmp(*word, "top");
		return 0;
	}
	return refuse_word(*word);
}

int options_parse(struct options *options, int argc, char **argv)
{
	struct words words;
	int key, err = 0;

	options_init(options);
	collect_words(&words);
	optind = 0; /* glibc: start again */
	while (!err && (key = getopt_long(argc, argv, words.letters, words.names, NULL)) != -1) {
		const struct option_row *row = find_row(key);

		if (key == '?' || key == ':')
			err = refuse_option(options, key, argv);
		else if (key == KEY_WORD)
			err = take_word(options, &argv[optind - 1]);
		else
			err = row->take(row, optarg, options);
	}
	/* After "--" come files, or a COMMAND with options of its own. */
	if (options->mode != MODE_VALIDATE && options->mode != MODE_ENV_HASH && optind < argc)
		options->command = &argv[optind];
	else
		while (!err && optind < argc)
			err = take_word(options, &argv[optind++]);
	return err ? err : options_complete(options);
}
