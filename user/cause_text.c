/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cause.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "report_format.h"
#include "syscalls.h"

#define PATH_COLUMNS 72

/* A line that grows until it is full. */
struct line {
	char *text;
	size_t size;
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	size_t room = line->size - line->length;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->text + line->length, room, format, args);
	va_end(args);
	if (length < 0)
		line->text[line->length] = '\0';
	else
		line->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* Takes off a character that was cut in the middle. */
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
	char time[FORMAT_MAX];

	add(line, "%s", format_time(time, (double)ns));
}

static void add_usual(struct line *line, const struct cause *cause)
{
	char time[FORMAT_MAX];

	if (!cause->usual_known)
		return;
	add(line, " (usually %s)",
	    cause->usual_ns ? format_time(time, (double)cause->usual_ns) : "none");
}

static void add_calls(struct line *line, const struct cause *cause)
{
	char blocked[FORMAT_MAX], calls[FORMAT_MAX];

	format_count(calls, cause->calls);
	if (!cause->calls_known)
		return;
	if (cause->kind == CAUSE_LOCK_CONTENTION && cause->blocked_known)
		add(line, ", %s of %s call%s blocked", format_count(blocked, cause->blocked), calls,
		    plural(cause->calls));
	else
		add(line, ", %s call%s", calls, plural(cause->calls));
}

static void add_bytes(struct line *line, const struct cause *cause)
{
	char bytes[FORMAT_MAX];

	if (cause->bytes)
		add(line, ", %s", format_bytes(bytes, cause->bytes));
}

/* What add_file compares with: the time of the calls that the file was found among. */
static uint64_t time_of_calls(const struct cause *cause)
{
	if (cause->command_calls)
		return cause->command_ns;
	return cause->kind == CAUSE_TINY_WRITES ? cause->writes_ns : cause->time_ns;
}

/*
 * " of PATH", ", most of PATH", or ", 12.0 ms of PATH" of the first of many: the path is the
 * target's, so it may hold anything.
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
		add(line, ", ");
		add_time(line, cause->file_ns);
	} else if (cause->file_calls < calls) {
		add(line, ", most");
	}
	add(line, " %s %s", word, shorten_text(path, sizeof(path), file->path, PATH_COLUMNS));
}

static const char *label(const struct cause *cause, const struct window *window, char buffer[24])
{
	return syscall_label((enum fbt_arch)window->record.arch, cause->nr, buffer);
}

/* Where calls are not known, what stands for them is all of a category. */
static const char *category_words(enum cause_kind kind)
{
	switch (kind) {
	case CAUSE_LOCK_CONTENTION:
		return "futex";
	case CAUSE_ALLOCATION_CHURN:
		return "mmap, munmap, mprotect, brk";
	case CAUSE_FILE_IO:
		return "reads and writes, of files or not,";
	default:
		return NULL;
	}
}

/* "read 120 ms (usually 1.00 ms), 118 calls" */
static void add_head(struct line *line, const struct cause *cause, const struct window *window)
{
	static const char *const groups[CAUSE_COUNT] = {
		[CAUSE_LOCK_CONTENTION] = "locks",  [CAUSE_ALLOCATION_CHURN] = "memory calls",
		[CAUSE_DRIVER_CALLS] = "ioctl",	    [CAUSE_FILE_IO] = "file calls",
		[CAUSE_SOCKET_IO] = "socket calls", [CAUSE_SIGNAL_STORM] = "signal calls",
		[CAUSE_SLEEP] = "waiting calls",    [CAUSE_OTHER_CALLS] = "other calls",
	};
	const char *words = cause->calls_known ? NULL : category_words(cause->kind);
	bool one = cause->nr_calls && cause->nr_calls == cause->calls;
	char buffer[24];

	if (!words)
		words = one ? label(cause, window, buffer) : groups[cause->kind];
	add(line, "%s ", words);
	add_time(line, cause->time_ns);
	add_usual(line, cause);
	add_calls(line, cause);
	if (one || !cause->nr_calls)
		return;
	add(line, ", most in %s (", label(cause, window, buffer));
	add_time(line, cause->nr_ns);
	add(line, " in %" PRIu64 ")", cause->nr_calls);
}

static void add_driver(struct line *line, const struct cause *cause, const struct window *window)
{
	if (cause->command_calls && cause->command_calls == cause->calls) {
		add(line, "ioctl 0x%x ", cause->command);
		add_time(line, cause->time_ns);
		add_usual(line, cause);
		add_calls(line, cause);
	} else {
		add_head(line, cause, window);
		if (cause->command_calls) {
			add(line, ", most in 0x%x (", cause->command);
			add_time(line, cause->command_ns);
			add(line, " in %" PRIu64 ")", cause->command_calls);
		}
	}
	add_file(line, cause, window, "on");
}

/* "write 12.0 ms of 22.0 ms of I/O (usually 10.0 ms), 4,096 calls of 17 bytes on average" */
static void add_tiny_writes(struct line *line, const struct cause *cause,
			    const struct window *window)
{
	char buffer[24], calls[FORMAT_MAX];

	add(line, "%s ", label(cause, window, buffer));
	if (cause->writes_ns < cause->time_ns) {
		add_time(line, cause->writes_ns);
		add(line, " of ");
	}
	add_time(line, cause->time_ns);
	if (cause->writes_ns < cause->time_ns)
		add(line, " of I/O");
	add_usual(line, cause);
	add(line, ", %s calls of %" PRIu64 " bytes on average", format_count(calls, cause->calls),
	    cause->calls ? cause->bytes / cause->calls : 0);
	add_file(line, cause, window, "to");
}

static void add_threads(struct line *line, const struct cause *cause)
{
	char count[FORMAT_MAX];

	add(line, "threads ");
	add_time(line, cause->time_ns);
	add_usual(line, cause);
	if (cause->threads_made)
		add(line, ", %s made: with their stacks and the waits for their end",
		    format_count(count, cause->threads_made));
	else
		add_calls(line, cause);
}

static void add_signals(struct line *line, const struct cause *cause, const struct window *window)
{
	char count[FORMAT_MAX];

	if (!cause->signals) {
		add_head(line, cause, window);
		return;
	}
	add(line, "%s signal%s handled, %s", format_count(count, cause->signals),
	    plural(cause->signals), cause->estimated ? "about " : "");
	add_time(line, cause->time_ns);
	add_usual(line, cause);
}

/* Waiting for a disk in a page fault is in no syscall: it reads as work. */
static void add_major_faults(struct line *line, const struct cause *cause)
{
	char count[FORMAT_MAX];

	if (cause->major_faults)
		add(line, ", %s page fault%s waited for a disk",
		    format_count(count, cause->major_faults), plural(cause->major_faults));
}

static void add_work(struct line *line, const struct cause *cause)
{
	if (!cause->covered_ns) {
		add(line, ": not in syscalls, not for want of a CPU");
		return;
	}
	add(line, ", ");
	add_time(line, cause->covered_ns);
	add(line, " of it waiting for the GPU, which worked");
}

static void add_hidden(struct line *line, const struct cause *cause)
{
	char count[FORMAT_MAX];

	if (cause->kind == CAUSE_RUN_QUEUE) {
		add(line, "no free CPU for ");
		add_time(line, cause->time_ns);
		add_usual(line, cause);
		return;
	}
	add(line, cause->kind == CAUSE_PAGE_FAULTS ? "about " : "work ");
	add_time(line, cause->time_ns);
	add_usual(line, cause);
	if (cause->kind == CAUSE_PAGE_FAULTS)
		add(line, " in %s page fault%s (estimated)",
		    format_count(count, cause->minor_faults), plural(cause->minor_faults));
	else
		add_work(line, cause);
	add_major_faults(line, cause);
}

static void add_direction(struct line *line, const char *separator, const char *name,
			  uint64_t bytes)
{
	char text[FORMAT_MAX];

	if (bytes)
		add(line, "%s%s %s", separator, name, format_bytes(text, bytes));
}

/* "copies 6.10 ms of 9.80 ms: H2D 1.20 GiB, D2H 4.00 KiB, 2 of 12 of pageable memory" */
static void add_transfer(struct line *line, const struct cause *cause)
{
	char count[FORMAT_MAX], copies[FORMAT_MAX];
	const char *separator = ": ";

	add(line, "copies ");
	add_time(line, cause->time_ns);
	add(line, " of ");
	add_time(line, cause->total_ns);
	add_direction(line, separator, "H2D", cause->h2d_bytes);
	separator = cause->h2d_bytes ? ", " : separator;
	add_direction(line, separator, "D2H", cause->d2h_bytes);
	separator = cause->d2h_bytes ? ", " : separator;
	add_direction(line, separator, "P2P", cause->p2p_bytes);
	if (cause->pageable)
		add(line, ", %s of %s of pageable memory", format_count(count, cause->pageable),
		    format_count(copies, cause->copies));
}

static void add_called(struct line *line, const struct cause *cause, const struct window *window)
{
	add_head(line, cause, window);
	add_bytes(line, cause);
	if (cause->kind == CAUSE_FILE_IO || cause->kind == CAUSE_SOCKET_IO)
		add_file(line, cause, window, "of");
	if (cause->kind == CAUSE_LOCK_CONTENTION && cause->lock)
		add(line, ", lock at 0x%" PRIx64, cause->lock);
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
		add(&line, "; some calls were lost");
	else if (!cause->calls_known && cause->kind < CAUSE_RUN_QUEUE)
		add(&line, "; its calls are not known");
	end_line(&line);
}
