/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * events FILE.events OUT.capture: text, one record a line, to a capture file. README.md beside this
 * file describes the text.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "output/capture.h"
#include "fbt_event.h"
#include "records.h"

static void begin_block(struct events *events)
{
	if (events->block_text)
		line_stop(&events->line, "repeat within repeat");
	events->times = line_take_number(&events->line, "times", 1);
	events->every_ns = line_take_time(&events->line, "every", 0);
	line_check_used(&events->line);
	events->block = open_memstream(&events->block_text, &events->block_size);
	if (!events->block)
		line_stop(&events->line, "out of memory");
}

static void convert_line(struct events *events, const char *text, FILE *out)
{
	const char *type = line_read(&events->line, text);
	struct fbt_header *header = (struct fbt_header *)events->record;
	record_writer write;
	uint64_t cut;

	if (!type)
		return;
	if (!strcmp(type, "repeat")) {
		begin_block(events);
		return;
	}
	write = record_writer_of(type);
	if (!write)
		line_stop(&events->line, "unknown record: %s", type);
	write(events);
	while (events->size % 8)
		events->record[events->size++] = '\0';
	header->size = (uint32_t)events->size;
	/* The number of bytes to write of the record, for a capture that was cut off. */
	cut = line_take_number(&events->line, "cut", events->size);
	line_check_used(&events->line);
	capture_write(out, events->record, cut);
}

/* Writes the lines of the block again and again, each time later. */
static void end_block(struct events *events, FILE *out)
{
	uint64_t window_ns = events->window_ns;

	fclose(events->block);
	events->block = NULL;
	for (uint64_t i = 0; i < events->times; i++) {
		for (const char *text = events->block_text; *text; text += strlen(text) + 1)
			convert_line(events, text, out);
		events->window_ns += events->every_ns;
	}
	events->window_ns = window_ns;
	free(events->block_text);
	events->block_text = NULL;
}

static void take_line(struct events *events, const char *text, FILE *out)
{
	if (events->block && !strcmp(text, "done\n"))
		end_block(events, out);
	else if (events->block)
		fwrite(text, 1, strlen(text) + 1, events->block);
	else
		convert_line(events, text, out);
}

static int open_failed(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	return 2;
}

int main(int argc, char **argv)
{
	static struct events events;
	char *text = NULL;
	size_t capacity = 0;
	FILE *in, *out;
	bool failed;

	if (argc != 3) {
		fprintf(stderr, "usage: events FILE.events OUT.capture\n");
		return 2;
	}
	in = fopen(argv[1], "re");
	if (!in)
		return open_failed(argv[1]);
	out = fopen(argv[2], "we");
	if (!out)
		return open_failed(argv[2]);

	events.line.path = argv[1];
	capture_write_header(out);
	while (getline(&text, &capacity, in) > 0)
		take_line(&events, text, out);
	free(text);
	if (events.block)
		line_stop(&events.line, "\"done\" is missing");
	failed = ferror(in) || ferror(out);
	fclose(in);
	return fclose(out) || failed ? 2 : 0;
}
