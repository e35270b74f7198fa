/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Well-formed records of any kind, with any values, in any order. The input is text as described in
 * tests/golden/README.md. Invalid lines are left out.
 */
#include <setjmp.h>
#include "output/capture.h"
#include "fbt_event.h"
#include "records.h"
#include "replayed.h"

static struct events events;
static jmp_buf not_a_line;

/* What line.c calls instead of exit (fuzz.mk). */
void line_exit(int code);
void line_exit(int code)
{
	(void)code;
	longjmp(not_a_line, 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	replay_set_up();
	return 0;
}

static void write_line(const char *text, FILE *out)
{
	struct fbt_header *header = (struct fbt_header *)events.record;
	const char *type = line_read(&events.line, text);
	record_writer writer;

	if (!type)
		return;
	writer = record_writer_of(type);
	if (!writer)
		return;
	writer(&events);
	while (events.size % 8)
		events.record[events.size++] = '\0';
	header->size = (uint32_t)events.size;
	fuzz_check(!capture_write(out, events.record, events.size));
}

static void write_lines(char *text, FILE *out)
{
	/* A line may hold other things too. The records are taken in order. */
	char *volatile rest = text;

	memset(&events.line, 0, sizeof(events.line));
	events.line.path = "input";
	events.window_ns = 0;
	events.tgid = 0;
	while (rest) {
		char *line = rest, *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		rest = end ? end + 1 : NULL;
		if (!setjmp(not_a_line))
			write_line(line, out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *capture = NULL;
	size_t capture_size;
	FILE *out = open_memstream(&capture, &capture_size);

	fuzz_check(out && !capture_write_header(out));
	write_lines(text, out);
	fuzz_check(!fclose(out));
	replay_bytes(capture, capture_size, size & 1);
	free(capture);
	free(text);
	return 0;
}
