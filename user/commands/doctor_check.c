/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_check.h"

#include <inttypes.h>
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "base/log.h"

#define COLUMNS	   80
#define NAME_WIDTH 16
/* Column of the text of findings: after " warn " and the name. */
#define TEXT_COLUMN (8 + NAME_WIDTH)
#define ARROW	    "-> "

static const struct {
	const char *name; /* in JSON */
	const char *mark; /* in text */
	const char *color;
} severities[] = {
	[FINDING_OK] = {"ok", "ok", "\033[32m"},
	[FINDING_NOTE] = {"note", "-", ""},
	[FINDING_WARN] = {"warn", "warn", "\033[33m"},
	[FINDING_FAIL] = {"no", "no", "\033[1;31m"},
};

/* Width in columns; every character counts as one. */
static size_t width_of(const char *text, size_t bytes)
{
	size_t width = 0;

	for (size_t i = 0; i < bytes; i++)
		width += (text[i] & 0xc0) != 0x80;
	return width;
}

/* The length of the word at text. Text in quotes is one word, so that it can be pasted. */
static size_t word_bytes(const char *text)
{
	size_t bytes = strcspn(text, " ");
	const char *end = text;

	if (*text != '\'')
		return bytes;
	end = strchr(text + 1, '\'');
	/* A quote within the quotes. */
	while (end && !strncmp(end, "'\\''", 4))
		end = strchr(end + 4, '\'');
	return end ? (size_t)(end - text) + strcspn(end, " ") : bytes;
}

/* Breaks text at spaces so that no line is too wide, unless a single word is. */
static void print_wrapped(const char *text, size_t indent, FILE *out)
{
	size_t column = indent, columns = terminal_columns(out, COLUMNS);

	while (*text) {
		size_t bytes = word_bytes(text);
		size_t width = width_of(text, bytes);

		if (column > indent && column + 1 + width > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, bytes, out);
		column += width;
		text += bytes;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_escaped(const char *text, size_t indent, FILE *out)
{
	char safe[4 * FINDING_TEXT_MAX];

	log_escape(safe, sizeof(safe), text);
	print_wrapped(safe, indent, out);
}

static void print_check(const struct finding *check, bool colors, FILE *out)
{
	const char *color = colors ? severities[check->severity].color : "";

	fprintf(out, "  %s%-4s%s  %-*s", color, severities[check->severity].mark,
		*color ? "\033[0m" : "", NAME_WIDTH, check->subject);
	print_escaped(check->text, TEXT_COLUMN, out);
	if (!*check->remedy)
		return;
	fprintf(out, "%*s" ARROW, TEXT_COLUMN, "");
	print_escaped(check->remedy, TEXT_COLUMN + strlen(ARROW), out);
}

static void print_pids(const uint32_t *pids, size_t pid_count, FILE *out)
{
	fputs("-p", out);
	for (size_t i = 0; i < pid_count; i++)
		fprintf(out, "%c%" PRIu32, i ? ',' : ' ', pids[i]);
	if (!pid_count)
		fputs(" PID", out);
}

static void print_end(const struct findings *checks, const uint32_t *pids, size_t pid_count,
		      FILE *out)
{
	const struct finding *obstacle = findings_first(checks, FINDING_FAIL);
	size_t obstacles = findings_count(checks, FINDING_FAIL);
	size_t warnings = findings_count(checks, FINDING_WARN);

	fputc('\n', out);
	print_pids(pids, pid_count, out);
	if (checks->incomplete) {
		fputs(": unknown, out of memory\n", out);
	} else if (obstacle) {
		fprintf(out, " would not work: %s", obstacle->subject);
		if (obstacles > 1)
			fprintf(out, ", and %zu more", obstacles - 1);
		fputs(" (no).\n", out);
	} else {
		fputs(" would work", out);
		if (warnings)
			fprintf(out, ", with %zu limit%s (warn)", warnings,
				warnings == 1 ? "" : "s");
		fputs(".\n", out);
	}
}

void doctor_print_text(const struct findings *checks, const uint32_t *pids, size_t pid_count,
		       bool colors, FILE *out)
{
	const struct finding *before = NULL;

	vec_for_each (check, &checks->items) {
		if (!check->tgid && !before)
			fputs("This machine\n", out);
		else if (check->tgid && (!before || before->tgid != check->tgid))
			fprintf(out, "%sProcess %" PRIu32 "\n", before ? "\n" : "", check->tgid);
		print_check(check, colors, out);
		before = check;
	}
	print_end(checks, pids, pid_count, out);
}

void doctor_print_json(const struct findings *checks, FILE *out)
{
	struct json json = {.out = out};

	json_object_begin(&json, NULL);
	json_bool(&json, "works", !findings_failed(checks));
	json_array_begin(&json, "checks");
	vec_for_each (check, &checks->items) {
		json_newline(&json);
		json_object_begin(&json, NULL);
		if (check->tgid)
			json_uint(&json, "pid", check->tgid);
		else
			json_null(&json, "pid");
		json_string(&json, "name", check->subject);
		json_string(&json, "status", severities[check->severity].name);
		json_string(&json, "finding", check->text);
		json_string(&json, "remedy", *check->remedy ? check->remedy : NULL);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	fputc('\n', out);
}

void doctor_ease(struct findings *checks, const char *subject)
{
	vec_for_each (check, &checks->items) {
		if (check->severity == FINDING_FAIL && !strcmp(check->subject, subject))
			check->severity = FINDING_WARN;
	}
}

static void keep_words(void *ctx, enum log_level level, const char *message)
{
	struct doctor_words *words = ctx;

	if (words->any && (int)level >= words->level)
		return;
	words->any = true;
	words->level = level;
	snprintf(words->text, sizeof(words->text), "%s", message);
}

void doctor_listen(struct doctor_words *words)
{
	*words = (struct doctor_words){.any = false};
	(void)log_divert((struct log_diversion){keep_words, words});
}

void doctor_listen_end(void)
{
	(void)log_divert((struct log_diversion){NULL});
}

const char *doctor_words_text(const struct doctor_words *words, const struct findings *checks,
			      const char *otherwise)
{
	char start[32];
	size_t length;

	if (!words->any)
		return otherwise;
	length = (size_t)snprintf(start, sizeof(start), "process %" PRIu32 ": ", checks->tgid);
	return strncmp(words->text, start, length) ? words->text : words->text + length;
}
