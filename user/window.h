/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The model: what is known of one window besides its steps. Built by assemble from the records,
 * borrowed by sinks.
 */
#ifndef FBT_WINDOW_H
#define FBT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_event.h"
#include "file_table.h"
#include "gpu_table.h"
#include "row_table.h"
#include "vec.h"

/* Processes that are kept; some KiB each. */
#define WINDOW_PROCESSES_MAX 1024

struct left_out;

struct kind {
	struct fbt_kind record;
	char *name; /* demangled function name, "interval" for kind 0 */
	char *path; /* NULL for kind 0 */
	char *arg_names[FBT_ARG_COUNT];
};

struct process {
	struct fbt_target record;
	char *comm;
	char *exe;
	char *cmdline;
	uint64_t exit_ns; /* 0: still running when the window ended */
	struct row_table table;
};

struct thread {
	uint32_t tgid;
	uint32_t tid;
	char comm[16];
};

struct window {
	struct fbt_window record;
	uint64_t end_ns; /* 0 while it is open; latest time seen if the stream was cut off */
	bool cut_off;	 /* the stream ended without FBT_EVENT_WINDOW_END */
	char *tag;	 /* "" until the window record has come, as the next three */
	char *tool_version;
	char *kernel_release;
	char *host;
	struct kind kinds[FBT_KIND_COUNT];
	bool kind_known[FBT_KIND_COUNT];
	struct fbt_sampling sampling[FBT_KIND_COUNT]; /* kind 0: all of its steps are there */
	VEC(struct process *) processes;	      /* by tgid; a reused tgid by age */
	VEC(struct thread) threads;		      /* by tid */
	uint64_t nameless_threads;		      /* that found no room */
	struct file_table files;
	struct gpu_table gpus;
	struct left_out *left_out; /* which were not kept */
	uint64_t processes_left_out;
	struct fbt_lost lost;
	struct fbt_cost cost;
	uint64_t steps;
	uint64_t incomplete_steps;
	uint64_t skipped_records; /* unknown kinds, bad sizes */
};

struct window *window__new(void); /* NULL: -ENOMEM */
void window__free(struct window *window);

/*
 * What assemble fills in. Strings are copied. 0, -ENOMEM (then what was known before stays), or
 * -ENOSPC: more threads or files than are kept. A process that is not kept is counted, and no
 * error.
 */
#define WINDOW_STRINGS 4 /* tag, tool version, kernel release, host name */
int window__open(struct window *window, const struct fbt_window *record,
		 const char *const strings[WINDOW_STRINGS]);
int window__add_kind(struct window *window, const struct fbt_kind *record, const char *name,
		     const char *path, const char *const *arg_names);
int window__add_process(struct window *window, const struct fbt_target *record, const char *comm,
			const char *exe, const char *cmdline);
int window__add_thread(struct window *window, const struct fbt_thread_name *record);
int window__add_file(struct window *window, const struct fbt_file *record, const char *path);

/* The process, added without a name if it is not known; NULL: not kept, counted. */
struct process *window__touch_process(struct window *window, uint32_t tgid);

/* Also of processes that are not kept. */
void window__end_process(struct window *window, uint32_t tgid, uint64_t end_ns);
bool window__has_ended(const struct window *window, uint32_t tgid);

/* NULL if not known; the latest one if the number was used twice. */
const struct process *window__process(const struct window *window, uint32_t tgid);
const char *window__thread_name(const struct window *window, uint32_t tid);

/* The file of fbt_call.file, NULL if it is not known. */
const struct file *window__file(const struct window *window, uint32_t id);

/* Name of a step kind, "step" if it is not known. */
const char *window__kind_name(const struct window *window, uint32_t kind);

/* "function", "usdt", "interval": of the steps of a kind. */
const char *window__step_source(const struct window *window, uint32_t kind);

uint64_t window__lost_total(const struct window *window);

/* "calls", "steps", "threads", "begins", "processes", "files". */
const char *lost_cause_name(enum fbt_lost_cause cause);

#endif
