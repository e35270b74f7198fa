/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

const char *doctor_status_name(enum doctor_status status)
{
	static const char *const names[DOCTOR_STATUS_COUNT] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_NOTE] = "note",
		[DOCTOR_WARN] = "warn",
		[DOCTOR_NO] = "no",
	};

	return names[status];
}

void doctor_say(struct doctor_checks *checks, enum doctor_status status, const char *name,
		const char *format, ...)
{
	struct doctor_check check = {.status = status, .tgid = checks->tgid, .name = name};
	va_list args;

	va_start(args, format);
	vsnprintf(check.finding, sizeof(check.finding), format, args);
	va_end(args);
	if (vec_push(&checks->items, check))
		checks->failed = true;
}

void doctor_advise(struct doctor_checks *checks, const char *format, ...)
{
	struct doctor_check *last;
	va_list args;

	if (!checks->items.count)
		return;
	last = &checks->items.items[checks->items.count - 1];
	va_start(args, format);
	vsnprintf(last->remedy, sizeof(last->remedy), format, args);
	va_end(args);
}

const struct doctor_check *doctor_obstacle(const struct doctor_checks *checks)
{
	vec_for_each (check, &checks->items) {
		if (check->status == DOCTOR_NO)
			return check;
	}
	return NULL;
}

size_t doctor_count(const struct doctor_checks *checks, enum doctor_status status)
{
	size_t count = 0;

	vec_for_each (check, &checks->items)
		count += check->status == status;
	return count;
}

void doctor_checks_clear(struct doctor_checks *checks)
{
	vec_free(&checks->items);
	*checks = (struct doctor_checks){.tgid = 0};
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
	log_divert(keep_words, words);
}

void doctor_listen_end(void)
{
	log_divert(NULL, NULL);
}

const char *doctor_words_text(const struct doctor_words *words, uint32_t tgid, int err)
{
	char start[32];
	size_t length;

	if (!words->any)
		return strerror(-err);
	length = (size_t)snprintf(start, sizeof(start), "process %" PRIu32 ": ", tgid);
	return strncmp(words->text, start, length) ? words->text : words->text + length;
}
