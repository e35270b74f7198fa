/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the traces to be merged have: their processes, collectives and steps. */
#ifndef FBT_MERGE_GATHER_H
#define FBT_MERGE_GATHER_H

#include "merge/align.h"
#include "merge/source.h"

/* Of one trace. More processes are refused; of more collectives and steps the last are left out. */
#define GATHER_PROCESSES_MAX 4096
#define GATHER_SPANS_MAX     1000000
/* Threads of a process that run its steps; if there are more, all count as such. */
#define GATHER_TIDS_MAX 64

/* A collective or a step. Times are of the file until gather_convert. */
typedef collective_vec span_vec;

struct gather_process {
	int64_t pid;
	int64_t new_pid; /* in the merged trace: no other file's process has it */
	char *name;	 /* "" if it has none */
	span_vec collectives;
	span_vec steps;
	bool is_host;		/* it has slices of what runs on a CPU; else it may be a device */
	VEC(int64_t) step_tids; /* sorted */
	bool has_unknown_tids;	/* of some steps the threads are not known, or they are too many */
};

struct gather_file {
	const char *path; /* borrowed */
	struct source_facts facts;
	VEC(struct gather_process) processes;
	size_t last;		/* index of the process of the last event */
	struct trace_span span; /* all of it */
	uint64_t spans;		/* kept */
	uint64_t left_out;	/* collectives and steps beyond the limit */
	struct alignment alignment;
};

/* Reads a file. 0, -EBADMSG with error, or -errno. Call gather_clear in any case. */
int gather_read(struct gather_file *file, const char *path, char error[SOURCE_ERROR]);
void gather_clear(struct gather_file *file);

/* NULL: there is none. */
struct gather_process *gather_find(struct gather_file *file, int64_t pid);

/* The process with the most collectives; NULL: there are none. */
struct gather_process *gather_most_collectives(struct gather_file *file);

/*
 * The only process with steps, or that runs anything on a CPU if none has steps; NULL: there is
 * none, or several.
 */
struct gather_process *gather_host(struct gather_file *file);

/* false: a system call of a thread that runs no step, so it tells nothing about the steps. */
bool gather_is_of_steps(const struct gather_process *process, const struct source_event *event);

/* Puts all times of a file on the common clock: those of its alignment. */
void gather_convert(struct gather_file *file);

/* Gives each process a pid that no other file has. */
void gather_number(struct gather_file *files, size_t count);

#endif
