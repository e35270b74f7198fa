/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What a trace needs of this machine: the clock, memory and directories to write to; and a trial,
 * which loads and attaches the programs. The _judge functions are pure.
 */
#ifndef FBT_COMMANDS_DOCTOR_ROOM_H
#define FBT_COMMANDS_DOCTOR_ROOM_H

#include "commands/doctor_check.h"
#include "kernel/loader.h"
#include "options.h"
#include "output/file.h"
#include "steps/resolve.h"

/* Less than this is worth a warning: an ordinary window needs a tenth of it. */
#define DOCTOR_MEMORY_MIN (256ull << 20)
#define DOCTOR_DISK_MIN	  (256ull << 20)

#define DOCTOR_DIRS_MAX 7

struct doctor_dir {
	char path[512];
	int err; /* of writing to it: 0 or -errno */
	struct disk_room disk;
};

struct doctor_room {
	char clock_source[32]; /* of the kernel; "": unknown */
	uint64_t clock_ps;     /* one reading of CLOCK_MONOTONIC */
	uint32_t cpu_count;
	uint64_t memory_bytes; /* MemAvailable; UINT64_MAX: unknown */
	int tracers; /* others on the raw syscall tracepoints; -1: not permitted to list */
	struct doctor_dir dirs[DOCTOR_DIRS_MAX]; /* that the options write to */
	size_t dir_count;
	const char *authorities; /* of https; NULL: --otlp cannot send to it */
};

/* Writes nothing. Call before our own programs are attached: they would count as tracers. */
void doctor_room_read(struct doctor_room *room, const struct options *options);
void doctor_room_judge(const struct doctor_room *room, struct findings *checks);

/*
 * What the kernel does, not what it says it can do: our programs are loaded, attached as for a
 * window without targets, run on this process, and detached. For about 20 ms each system call of
 * the machine takes 25 to 150 ns longer; nothing else is affected.
 */
struct doctor_trial {
	bool skipped;	 /* a failed check makes it pointless */
	bool no_calls;	 /* --detail probes: the programs for system calls are left out */
	bool no_looks;	 /* the kernel does not list threads with their registers */
	bool no_senders; /* the kernel does not let signals be seen */
	int err;	 /* 0, or -errno, explained by words */
	struct doctor_words words;
	uint64_t took_ns;
	uint64_t ring_bytes;
	struct fbt_cost cost;
	/* Of --explain: what looking at a context switch costs, and how many there are. */
	int explain_err;
	uint64_t switch_ps;    /* 0: not measured */
	uint64_t switches;     /* of the machine, in took_ns */
	struct loader *loader; /* loaded, nothing attached; NULL with err */
};

void doctor_trial_run(struct doctor_trial *trial, const struct options *options);
void doctor_trial_judge(const struct doctor_trial *trial, struct findings *checks);
void doctor_trial_clear(struct doctor_trial *trial);

/*
 * Whether the kernel accepts probes on these functions. They are tried on private mappings of the
 * same code in this process, where it never runs, so that the target is not touched. 0, also if the
 * files cannot be mapped here; or -errno, explained by words.
 */
int doctor_trial_probe(struct doctor_trial *trial, const function_vec *functions,
		       struct doctor_words *words);

#endif
