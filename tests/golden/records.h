/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Converts the fields of a line to a record. */
#ifndef FBT_TEST_RECORDS_H
#define FBT_TEST_RECORDS_H

#include <stdint.h>
#include <stdio.h>
#include "line.h"

#define RECORD_MAX (1 << 17)

struct events {
	struct line line;
	uint64_t window_ns; /* the window's begin, from which times count */
	uint32_t tgid;	    /* of the line before this one */
	_Alignas(8) char record[RECORD_MAX];
	size_t size;
	FILE *block; /* the lines after "repeat"; NULL outside of a block */
	char *block_text;
	size_t block_size;
	uint64_t times;
	uint64_t every_ns;
};

/* Takes the fields of events->line and leaves a record; its size and padding are the caller's. */
typedef void (*record_writer)(struct events *events);

/* The writer for the line's first word, or NULL. */
record_writer record_writer_of(const char *type);

/* For record_writer_of: those of one subject. */
record_writer stack_record_writer(const char *type);   /* code, looks and stacks */
record_writer explain_record_writer(const char *type); /* of fbt_explain.h */
record_writer gpu_record_writer(const char *type);     /* of fbt_gpu.h */

/* For writers. */
void *record_begin(struct events *events, uint16_t type, size_t bytes);
void record_add_string(struct events *events, const char *text, size_t length);
uint32_t record_take_syscall(struct events *events); /* name= or nr= */
uint32_t record_take_tgid(struct events *events);    /* that of the line before by default */

#endif
