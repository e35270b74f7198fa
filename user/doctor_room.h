/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a trace finds around it: the clock, memory, folders to write to, other tracers. */
#ifndef FBT_DOCTOR_ROOM_H
#define FBT_DOCTOR_ROOM_H

#include "doctor_check.h"
#include "options.h"

/* Less memory or disk than this is worth a warning: an ordinary window needs a tenth of it. */
#define DOCTOR_MEMORY_MIN (256ull << 20)
#define DOCTOR_DISK_MIN	  (256ull << 20)

#define DOCTOR_FOLDERS_MAX 4

struct doctor_folder {
	char path[512];
	int err; /* of writing to it: 0 or -errno */
	uint64_t free_bytes;
	uint64_t keep_bytes; /* see disk_room.h */
};

struct doctor_room {
	char clock_source[32]; /* of the kernel; "": not known */
	uint64_t clock_ps;     /* one reading of CLOCK_MONOTONIC */
	uint32_t cpu_count;
	uint64_t memory_bytes; /* MemAvailable; UINT64_MAX: not known */
	int tracers;	       /* others on the raw syscall tracepoints; -1: may not be asked */
	struct doctor_folder folders[DOCTOR_FOLDERS_MAX]; /* of what options have written */
	size_t folder_count;
	char curl[DOCTOR_TEXT_MAX]; /* "", or why --otlp cannot send */
};

/* Writes nothing. Before our own programs are attached. */
void doctor_room_read(struct doctor_room *room, const struct options *options);

/* Pure. */
void doctor_room_judge(const struct doctor_room *room, struct doctor_checks *checks);

#endif
