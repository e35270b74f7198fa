/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "model/syscalls.h"

#define PATH_COLUMNS 72

/* Removes a UTF-8 character that was cut in the middle. */
static void end_line(struct line *line)
{
	size_t start = line->length, bytes = 1;
	unsigned char lead;

	while (start && ((unsigned char)line->text[start - 1] & 0xc0) == 0x80)
		start--;
	if (!start)
		return;
	lead = (unsigned char)line->text[start - 1];
	if (lead >= 0xf0)
		bytes = 4;
	else if (lead >= 0xe0)
		bytes = 3;
	else if (lead >= 0xc0)
		bytes = 2;
	if (start - 1 + bytes > line->length)
		line->text[start - 1] = '\0';
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void add_time(struct line *line, uint64_t ns)
{
	line_add(line, "%s", FORMAT_TIME(ns));
}

static void add_usual(struct line *line, const struct cause *cause)
{
	if (!cause->usual_known)
		return;
	line_add(line, " (usually %s)", cause->usual_ns ? FORMAT_TIME(cause->usual_ns) : "none");
}

/* "read 120 ms (usually 1.00 ms)" */
static void add_measured(struct line *line, const char *words, const struct cause *cause)
{
	line_add(line, "%s ", words);
	add_time(line, cause->time_ns);
	add_usual(line, cause);
}

/* The one of several that took most of the time. */
static void add_most(struct line *line, const char *name, uint64_t ns, uint64_t calls)
{
	line_add(line, ", most in %s (%s in %" PRIu64 ")", name, FORMAT_TIME(ns), calls);
}

static void add_calls(struct line *line, const struct cause *cause)
{
	if (!cause->calls_known)
		return;
	if (cause->kind == CAUSE_LOCK_CONTENTION && cause->blocked_known)
		line_add(line, ", %s of %s call%s blocked", FORMAT_COUNT(cause->blocked),
			 FORMAT_COUNT(cause->calls), plural(cause->calls));
	else
		line_add(line, ", %s call%s", FORMAT_COUNT(cause->calls), plural(cause->calls));
}

static void add_bytes(struct line *line, const struct cause *cause)
{
	if (cause->bytes)
		line_add(line, ", %s", FORMAT_BYTES(cause->bytes));
}

/* The time of the calls among which the file was found. */
static uint64_t time_of_calls(const struct cause *cause)
{
	if (cause->command_calls)
		return cause->command_ns;
	return cause->kind == CAUSE_TINY_WRITES ? cause->writes_ns : cause->time_ns;
}

/*
 * " of PATH", ", most of PATH", or ", 12.0 ms of PATH" for the first of many. The path comes from
 * the target, so it may contain anything.
 */
static void add_file(struct line *line, const struct cause *cause, const struct window *window,
		     const char *word)
{
	uint64_t calls = cause->command_calls ? cause->command_calls : cause->calls;
	const struct file *file = cause->file ? window__file(window, cause->file) : NULL;
	char path[4 * PATH_COLUMNS + 1];

	if (!file || !*file->path)
		return;
	if (cause->file_calls < calls && cause->file_ns < time_of_calls(cause) / 2) {
		line_add(line, ", ");
		add_time(line, cause->file_ns);
	} else if (cause->file_calls < calls) {
		line_add(line, ", most");
	}
	line_add(line, " %s %s", word, shorten_text(path, sizeof(path), file->path, PATH_COLUMNS));
}

static const char *label(const struct cause *cause, const struct window *window, char buffer[24])
{
	return syscall_label((enum fbt_arch)window->record.arch, cause->nr, buffer);
}

/* Where calls are not known, a whole category stands for them. */
static const char *category_words(enum cause_kind kind)
{
	switch (kind) {
	case CAUSE_LOCK_CONTENTION:
		return "futex";
	case CAUSE_ALLOCATION_CHURN:
		return "mmap, munmap, mprotect, brk";
	case CAUSE_FILE_IO:
		return "reads and writes (files and sockets)";
	default:
		return NULL;
	}
}

/* "read 120 ms (usually 1.00 ms), 118 calls" */
static void add_head(struct line *line, const struct cause *cause, const struct window *window)
{
	static const char *const group_words[CAUSE_COUNT] = {
		[CAUSE_LOCK_CONTENTION] = "locks",  [CAUSE_ALLOCATION_CHURN] = "memory calls",
		[CAUSE_DRIVER_CALLS] = "ioctl",	    [CAUSE_FILE_IO] = "file calls",
		[CAUSE_SOCKET_IO] = "socket calls", [CAUSE_SIGNAL_STORM] = "signal calls",
		[CAUSE_SLEEP] = "waiting calls",    [CAUSE_OTHER_CALLS] = "other calls",
	};
	const char *words = cause->calls_known ? NULL : category_words(cause->kind);
	bool one = cause->nr_calls && cause->nr_calls == cause->calls;
	char buffer[24];

	if (!words)
		words = one ? label(cause, window, buffer) : group_words[cause->kind];
	add_measured(line, words, cause);
	add_calls(line, cause);
	if (!one && cause->nr_calls)
		add_most(line, label(cause, window, buffer), cause->nr_ns, cause->nr_calls);
}

static void add_driver(struct line *line, const struct cause *cause, const struct window *window)
{
	char command[24];

	snprintf(command, sizeof(command), "ioctl 0x%x", cause->command);
	if (cause->command_calls && cause->command_calls == cause->calls) {
		add_measured(line, command, cause);
		add_calls(line, cause);
	} else {
		add_head(line, cause, window);
		if (cause->command_calls)
			add_most(line, command + strlen("ioctl "), cause->command_ns,
				 cause->command_calls);
	}
	add_file(line, cause, window, "on");
}

/* "write 12.0 ms of 22.0 ms of I/O (usually 10.0 ms), 4,096 calls of 17 bytes on average" */
static void add_tiny_writes(struct line *line, const struct cause *cause,
			    const struct window *window)
{
	char buffer[24];

	line_add(line, "%s ", label(cause, window, buffer));
	if (cause->writes_ns < cause->time_ns) {
		add_time(line, cause->writes_ns);
		line_add(line, " of ");
	}
	add_time(line, cause->time_ns);
	if (cause->writes_ns < cause->time_ns)
		line_add(line, " of I/O");
	add_usual(line, cause);
	line_add(line, ", %s calls of %" PRIu64 " bytes on average", FORMAT_COUNT(cause->calls),
		 cause->calls ? cause->bytes / cause->calls : 0);
	add_file(line, cause, window, "to");
}

static void add_threads(struct line *line, const struct cause *cause)
{
	add_measured(line, "threads", cause);
	if (cause->threads_made)
		line_add(line, ", %s created, with their stacks and joins",
			 FORMAT_COUNT(cause->threads_made));
	else
		add_calls(line, cause);
}

static void add_signals(struct line *line, const struct cause *cause, const struct window *window)
{
	if (!cause->signals) {
		add_head(line, cause, window);
		return;
	}
	line_add(line, "%s signal%s handled, %s", FORMAT_COUNT(cause->signals),
		 plural(cause->signals), cause->estimated ? "about " : "");
	add_time(line, cause->time_ns);
	add_usual(line, cause);
}

/* A page fault that waits for a disk is in no syscall: its time is in work. */
static void add_major_faults(struct line *line, const struct cause *cause)
{
	if (cause->major_faults)
		line_add(line, ", %s page fault%s waited for a disk",
			 FORMAT_COUNT(cause->major_faults), plural(cause->major_faults));
}

static void add_work(struct line *line, const struct cause *cause)
{
	if (!cause->covered_ns) {
		line_add(line, ": outside of syscalls, not waiting for a CPU");
		return;
	}
	line_add(line, ", ");
	add_time(line, cause->covered_ns);
	line_add(line, " of it waiting for the busy GPU");
}

static void add_hidden(struct line *line, const struct cause *cause)
{
	if (cause->kind == CAUSE_RUN_QUEUE) {
		line_add(line, "waited ");
		add_time(line, cause->time_ns);
		line_add(line, " for a CPU");
		add_usual(line, cause);
		return;
	}
	add_measured(line, cause->kind == CAUSE_PAGE_FAULTS ? "about" : "work", cause);
	if (cause->kind == CAUSE_PAGE_FAULTS)
		line_add(line, " in %s page fault%s (estimated)", FORMAT_COUNT(cause->minor_faults),
			 plural(cause->minor_faults));
	else
		add_work(line, cause);
	add_major_faults(line, cause);
}

static void add_direction(struct line *line, const char *separator, const char *name,
			  uint64_t bytes)
{
	if (bytes)
		line_add(line, "%s%s %s", separator, name, FORMAT_BYTES(bytes));
}

/* "copies 6.10 ms of 9.80 ms: H2D 1.20 GiB, D2H 4.00 KiB, 2 of 12 use pageable memory" */
static void add_transfer(struct line *line, const struct cause *cause)
{
	const char *separator = ": ";

	line_add(line, "copies ");
	add_time(line, cause->time_ns);
	line_add(line, " of ");
	add_time(line, cause->total_ns);
	add_direction(line, separator, "H2D", cause->h2d_bytes);
	separator = cause->h2d_bytes ? ", " : separator;
	add_direction(line, separator, "D2H", cause->d2h_bytes);
	separator = cause->d2h_bytes ? ", " : separator;
	add_direction(line, separator, "P2P", cause->p2p_bytes);
	if (cause->pageable)
		line_add(line, ", %s of %s use pageable memory", FORMAT_COUNT(cause->pageable),
			 FORMAT_COUNT(cause->copies));
}

static void add_called(struct line *line, const struct cause *cause, const struct window *window)
{
	add_head(line, cause, window);
	add_bytes(line, cause);
	if (cause->kind == CAUSE_FILE_IO || cause->kind == CAUSE_SOCKET_IO)
		add_file(line, cause, window, "of");
	if (cause->kind == CAUSE_LOCK_CONTENTION && cause->lock)
		line_add(line, ", lock at 0x%" PRIx64, cause->lock);
}

void cause_describe(const struct cause *cause, const struct window *window, char *text, size_t size)
{
	struct line line = {.text = text, .size = size};

	*text = '\0';
	switch (cause->kind) {
	case CAUSE_LOCK_CONTENTION:
	case CAUSE_ALLOCATION_CHURN:
	case CAUSE_FILE_IO:
	case CAUSE_SOCKET_IO:
	case CAUSE_SLEEP:
	case CAUSE_OTHER_CALLS:
		add_called(&line, cause, window);
		break;
	case CAUSE_DRIVER_CALLS:
		add_driver(&line, cause, window);
		break;
	case CAUSE_TINY_WRITES:
		add_tiny_writes(&line, cause, window);
		break;
	case CAUSE_THREAD_CHURN:
		add_threads(&line, cause);
		break;
	case CAUSE_SIGNAL_STORM:
		add_signals(&line, cause, window);
		break;
	case CAUSE_RUN_QUEUE:
	case CAUSE_PAGE_FAULTS:
	case CAUSE_COMPUTE:
		add_hidden(&line, cause);
		break;
	case CAUSE_GPU_TRANSFER:
		add_transfer(&line, cause);
		break;
	case CAUSE_COUNT:
		break;
	}
	if (cause->calls_partial && cause->kind < CAUSE_RUN_QUEUE)
		line_add(&line, "; some calls were lost");
	else if (!cause->calls_known && cause->kind < CAUSE_RUN_QUEUE)
		line_add(&line, "; the calls were not recorded");
	end_line(&line);
}

const char *escalation_reason_text(enum escalation_reason reason)
{
	return reason == ESCALATION_BOTH ? "cv_exceeded and efficiency_low"
					 : escalation_otlp_value(reason);
}

const char *escalation_fired_text(uint32_t fired, char text[FIRED_SIZE])
{
	struct line line = {text, FIRED_SIZE, 0};

	text[0] = '\0';
	for (uint32_t i = ESCALATION_NONE + 1; i < ESCALATION_REASON_COUNT; i++) {
		if (fired & 1u << i)
			line_add(&line, "%s%s", line.length ? "," : "",
				 escalation_otlp_value((enum escalation_reason)i));
	}
	return text;
}

void escalation_worst(const struct escalation *escalation, const struct window *window,
		      const struct step *step, struct worst *worst)
{
	const struct fbt_call *call = &escalation->worst;
	bool is_known = call->duration_ns && step->complete;

	*worst = (struct worst){.ns = call->duration_ns};
	if (call->duration_ns)
		worst->name =
			syscall_label((enum fbt_arch)window->record.arch, call->nr, worst->label);
	for (int i = 0; i < FBT_CATEGORY_COUNT && !is_known; i++) {
		const struct fbt_sum *sum = &step->record.sums[i];
		/* The longest call of an interval may have begun before it. */
		uint64_t ns = sum->max_ns < sum->ns ? sum->max_ns : sum->ns;

		if (ns <= worst->ns)
			continue;
		worst->ns = ns;
		worst->name = category_name((enum fbt_category)i);
		worst->is_category = true;
	}
}

const char *cause_words(enum cause_kind kind, char text[CAUSE_WORDS_SIZE])
{
	snprintf(text, CAUSE_WORDS_SIZE, "%s", cause_name(kind));
	for (char *at = text; *at; at++)
		if (*at == '_')
			*at = ' ';
	return text;
}
