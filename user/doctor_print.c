/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_print.h"

#include <inttypes.h>
#include <string.h>

#include "json.h"
#include "log.h"
#include "terminal.h"

#define COLUMNS	   100
#define NAME_WIDTH 16
/* "  warn  ", and the name. */
#define TEXT_COLUMN (8 + NAME_WIDTH)
#define ARROW	    "-> "

/* Columns: every character counts as one. */
static size_t width_of(const char *text, size_t bytes)
{
	size_t width = 0;

	for (size_t i = 0; i < bytes; i++)
		width += (text[i] & 0xc0) != 0x80;
	return width;
}

/* Breaks text at spaces so that no line is too wide, unless a single word is. */
static void print_wrapped(const char *text, size_t indent, FILE *out)
{
	size_t column = indent, columns = terminal_columns(out, COLUMNS);

	while (*text) {
		size_t bytes = strcspn(text, " ");
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
	char safe[4 * DOCTOR_TEXT_MAX];

	log_escape(safe, sizeof(safe), text);
	print_wrapped(safe, indent, out);
}

static void print_check(const struct doctor_check *check, bool colors, FILE *out)
{
	static const char *const color_of[DOCTOR_STATUS_COUNT] = {
		[DOCTOR_OK] = "\033[32m",
		[DOCTOR_NOTE] = "",
		[DOCTOR_WARN] = "\033[33m",
		[DOCTOR_NO] = "\033[1;31m",
	};
	bool colored = colors && *color_of[check->status];
	const char *mark = check->status == DOCTOR_NOTE ? "-" : doctor_status_name(check->status);

	fprintf(out, "  %s%-4s%s  %-*s", colored ? color_of[check->status] : "", mark,
		colored ? "\033[0m" : "", NAME_WIDTH, check->name);
	print_escaped(check->finding, TEXT_COLUMN, out);
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

static void print_end(const struct doctor_checks *checks, const uint32_t *pids, size_t pid_count,
		      FILE *out)
{
	const struct doctor_check *obstacle = doctor_obstacle(checks);
	size_t obstacles = doctor_count(checks, DOCTOR_NO);
	size_t warnings = doctor_count(checks, DOCTOR_WARN);

	fputc('\n', out);
	print_pids(pids, pid_count, out);
	if (checks->failed) {
		fputs(": not known: out of memory\n", out);
		return;
	}
	if (!obstacle) {
		fputs(" would work", out);
		if (warnings)
			fprintf(out, ", with %zu limit%s (warn)", warnings,
				warnings == 1 ? "" : "s");
		fputs(".\n", out);
		return;
	}
	fprintf(out, " would not work: %s", obstacle->name);
	if (obstacles > 1)
		fprintf(out, ", and %zu more", obstacles - 1);
	fputs(" (no).\n", out);
}

void doctor_print_text(const struct doctor_checks *checks, const uint32_t *pids, size_t pid_count,
		       bool colors, FILE *out)
{
	const struct doctor_check *before = NULL;

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

void doctor_print_json(const struct doctor_checks *checks, FILE *out)
{
	struct json json = {.out = out};

	json_object_begin(&json, NULL);
	json_bool(&json, "works", !checks->failed && !doctor_obstacle(checks));
	json_array_begin(&json, "checks");
	vec_for_each (check, &checks->items) {
		json_newline(&json);
		json_object_begin(&json, NULL);
		if (check->tgid)
			json_uint(&json, "pid", check->tgid);
		else
			json_null(&json, "pid");
		json_string(&json, "name", check->name);
		json_string(&json, "status", doctor_status_name(check->status));
		json_string(&json, "finding", check->finding);
		json_string(&json, "remedy", *check->remedy ? check->remedy : NULL);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	fputc('\n', out);
}
