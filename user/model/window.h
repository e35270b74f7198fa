/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One window without its steps: step kinds, processes, threads, files and losses. Built by
 * model/assemble from the records; sinks borrow it.
 */
#ifndef FBT_MODEL_WINDOW_H
#define FBT_MODEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "base/ways.h"
#include "fbt_look.h"
#include "model/gpu.h"
#include "model/step.h"

/* Most files that are kept. For one more, about half of them are dropped. */
#define FILE_TABLE_MAX 65536
/* Of these, most that are kept until the end. */
#define FILES_PINNED_MAX (FILE_TABLE_MAX / 4)

struct file {
	struct fbt_file record;
	char *path;	/* "" if it has no name */
	uint64_t added; /* how many files had been added when it was last used */
};

/* The files that calls used; the id of a file is fbt_call.file. */
struct file_table {
	VEC(struct file) files; /* by id */
	uint64_t added;
	size_t pinned;
};

/*
 * A later record with the same id replaces the earlier one. If the table is full, files that were
 * not used since half as many were added are dropped: names and pointers of files are borrowed
 * only until the next one is added. 0 or -ENOMEM.
 */
int file_table_add(struct file_table *table, const struct fbt_file *record, const char *path);

/* A call names the file. It is announced once, however long it is in use, so this keeps it. */
void file_table_use(struct file_table *table, uint32_t id);

/* Keeps the file until the end; if too many are kept, this is a use. */
void file_table_pin(struct file_table *table, uint32_t id);

/* NULL if the id is not known. */
const struct file *file_table_find(const struct file_table *table, uint32_t id);
void file_table_clear(struct file_table *table);

/* Most places of code that are kept. */
#define CODE_TABLE_MAX 65536
#define CODE_STRINGS   3

/* A place in the code of a process, see fbt_code. */
struct code {
	struct fbt_code record;
	char *function; /* demangled; "" if it has no name */
	char *path;	/* "" if it is of no file */
	char *build_id; /* or "" */
};

/*
 * The exact sums of one process by syscall number. Only rows that were received take memory: all
 * 512 rows would take 28 KiB, and most processes use few of them.
 */
struct row_table {
	VEC(struct fbt_table) rows; /* by nr */
};

/* A later row with the same number replaces the earlier one. 0 or -ENOMEM. */
int row_table_set(struct row_table *table, const struct fbt_table *row);

void row_table_clear(struct row_table *table);

/* Most threads of a process that are kept, of 64 bytes each. */
#define THREAD_TABLE_MAX 64

/* What the threads of one process used. */
struct thread_table {
	VEC(struct fbt_thread_use) threads; /* those that were busiest, in no order */
	uint64_t overflow_count;	    /* number of further threads, whose sums are in rest */
	struct fbt_thread_use rest;
	/* Of rest, what threads that run steps had. */
	uint64_t rest_steps_cpu_ns;
	uint64_t rest_steps_delay_ns;
};

/*
 * Compares two threads for qsort(3). The busier one comes first: by the time that it was ready to
 * run, then by its calls.
 */
int thread_use_compare(const void *left, const void *right);

/* 0 or -ENOMEM. */
int thread_table_add(struct thread_table *table, const struct fbt_thread_use *use);

/* Adds a thread to those that are left out. */
void thread_table_leave_out(struct thread_table *table, const struct fbt_thread_use *use);

void thread_table_clear(struct thread_table *table);

/* Most processes that are kept, at some KiB each. */
#define WINDOW_PROCESSES_MAX 1024

struct overflow;

struct kind {
	struct fbt_kind record;
	char *name; /* demangled function name, "interval" for kind 0 */
	char *path; /* NULL for kind 0 */
	char *arg_names[FBT_ARG_COUNT];
	struct fbt_tails tails; /* its kind is 0 if the function makes no tail call */
	char *tail_names[WAYS_NAMES];
};

struct process {
	struct fbt_target record;
	char *comm;
	char *exe;
	char *cmdline;
	uint64_t exit_ns; /* 0: still running when the window ended */
	bool has_steps;	  /* or hangs; others are forgotten for want of room */
	struct row_table table;
	struct thread_table threads;
	struct fbt_cpus cpus;	  /* its cpus are 0 if it is not known */
	struct fbt_python python; /* its tgid is 0 if it runs no CPython that is known */
	char *interpreter;	  /* the path of its file, or NULL */
};

struct thread {
	uint32_t tgid;
	uint32_t tid;
	char comm[16];
};

/* Hangs that are kept: the first ones. */
#define WINDOW_HANGS_MAX 32

/* A look at all threads of a process in which a step hangs. */
struct hang_look {
	struct fbt_look record;
	look_vec threads; /* the chain by depth, then the groups */
};

struct window {
	struct fbt_window record;
	struct fbt_clock clock; /* header.type 0: as record says */
	uint64_t end_ns;	/* 0 while the window is open; if cut off, the latest time seen */
	bool cut_off;		/* the stream ended without FBT_EVENT_WINDOW_END */
	char *tag;		/* this and the next three are "" until the window record arrives */
	char *tool_version;
	char *kernel_release;
	char *host;
	struct kind kinds[FBT_KIND_COUNT];
	bool kind_known[FBT_KIND_COUNT];
	struct fbt_sampling sampling[FBT_KIND_COUNT]; /* its kind is 0 if it is not sampled */
	struct fbt_ends ends[FBT_KIND_COUNT];	      /* its kind is 0 if nothing is known */
	struct fbt_probes probes[FBT_KIND_COUNT];     /* the same */
	uint64_t late_polls[FBT_KIND_COUNT];	      /* of futures whose begin is in no step */
	uint64_t cut_futures[FBT_KIND_COUNT];	      /* awaited while their probes were off */
	VEC(struct process *) processes;	      /* by tgid; equal tgids by age */
	VEC(struct thread) threads;		      /* by tid */
	uint64_t nameless_threads;		      /* threads whose names found no room */
	struct file_table files;
	struct fbt_explained explained[FBT_EXPLAIN_COUNT]; /* header.type 0: not needed */
	struct fbt_hang hangs[WINDOW_HANGS_MAX + 1];	   /* beyond the first ones: the latest */
	uint64_t hang_count;				   /* of all */
	/* Of each that was stopped by a signal: who sent it. header.type 0: not known. */
	struct fbt_stop_sender hang_senders[WINDOW_HANGS_MAX + 1];
	VEC(struct hang_look) hang_looks;
	struct fbt_looks looks;
	VEC(struct code) codes; /* by id */
	struct fbt_stacks stacks;
	struct gpu_table gpus;
	struct overflow *overflow;
	uint64_t overflow_processes; /* not kept: more than WINDOW_PROCESSES_MAX */
	/* Nothing names processes at the end: those that have exited make room, with steps or not.
	 */
	bool is_endless;
	struct fbt_lost lost;
	struct fbt_explain_lost explain_lost;
	uint64_t unseen_calls; /* of all processes: struct fbt_unseen */
	struct fbt_cost cost;
	uint64_t steps;
	uint64_t incomplete_steps;
	/* Of these, whole steps of which no record was lost: */
	uint64_t crowded_steps;	  /* more calls than are kept: step.calls_truncated */
	uint64_t part_steps;	  /* maybe the rest of one: FBT_STEP_MAYBE_PART */
	uint64_t skipped_records; /* of unknown types, or malformed */
	/*
	 * Without room: names of threads, and of code in each stack, and GPU records. No step and
	 * no call.
	 */
	uint64_t unkept_records;
};

struct window *window__new(void); /* NULL: -ENOMEM */
void window__free(struct window *window);

/*
 * For model/assemble. Strings are copied. 0; -ENOMEM, and what was known before is kept; or -ENOSPC
 * if there are more threads than are kept. A process that is not kept is counted, which is no
 * error; if there is no room, those that have exited without a step are not kept any longer.
 */
#define WINDOW_STRINGS 4 /* tag, tool version, kernel release, host name */
int window__open(struct window *window, const struct fbt_window *record,
		 const char *const strings[WINDOW_STRINGS]);
int window__add_kind(struct window *window, const struct fbt_kind *record, const char *name,
		     const char *path, const char *const *arg_names);
int window__set_tails(struct window *window, const struct fbt_tails *record,
		      const char *const names[WAYS_NAMES]);
int window__add_process(struct window *window, const struct fbt_target *record, const char *comm,
			const char *exe, const char *cmdline);
int window__add_thread(struct window *window, const struct fbt_thread_name *record);
int window__add_file(struct window *window, const struct fbt_file *record, const char *path);

/* A call, or a page fault, names the file with that id. */
void window__use_file(struct window *window, uint32_t id);

/* The report names the file at the end. */
void window__pin_file(struct window *window, uint32_t id);
void window__add_hang(struct window *window, const struct fbt_hang *hang,
		      const struct fbt_stop_sender *sender);

/* Whose signal had stopped the thread of a hang; NULL: it is not known. */
const struct fbt_stop_sender *window__hang_sender(const struct window *window,
						  const struct fbt_hang *hang);
/* Takes the threads of the look. If there are many, the last one is replaced. 0 or -ENOMEM. */
int window__add_hang_look(struct window *window, struct hang_look *look);
int window__add_code(struct window *window, const struct fbt_code *record,
		     const char *const strings[CODE_STRINGS]);

/* Counts places of code of a stack, fbt_stack.codes, for which the tool had no room. */
void window__note_codes(struct window *window, const uint32_t *codes, uint32_t count);

/* The process, added without a name if it is not known. NULL if it is not kept but only counted. */
struct process *window__touch_process(struct window *window, uint32_t tgid);

/* A step of the process has ended. */
void window__note_step(struct window *window, uint32_t tgid);

/* The interpreter of a process; path is copied. 0 or -ENOMEM. */
int window__set_python(struct window *window, const struct fbt_python *record, const char *path);

/* These two also work for processes that are not kept. */
void window__end_process(struct window *window, uint32_t tgid, uint64_t end_ns);
bool window__has_ended(const struct window *window, uint32_t tgid);

/* NULL if not known; the youngest one if the PID was reused. */
const struct process *window__process(const struct window *window, uint32_t tgid);
const char *window__thread_name(const struct window *window, uint32_t tid);

#define PROCESS_TITLE_MAX 64

/*
 * How a process calls itself: its title where it has set one (setproctitle: "VLLM::Worker_TP1"),
 * else the name of its first thread; "?" if neither is known. Writes and returns title.
 */
const char *window__process_title(const struct window *window, uint32_t tgid,
				  char title[PROCESS_TITLE_MAX]);

/* The file with the id fbt_call.file; NULL if it is not known. */
const struct file *window__file(const struct window *window, uint32_t id);

/* The look at a hang; NULL: there was none. */
const struct hang_look *window__hang_look(const struct window *window, const struct fbt_hang *hang);

/* The place of code with that id; NULL if it is not known. */
const struct code *window__code(const struct window *window, uint32_t id);

/* Name of a step kind; "step" if it is not known. */
const char *window__kind_name(const struct window *window, uint32_t kind);

/* How the function of a kind returns, or jumps to other functions. Names are borrowed. */
struct ways_out window__ways_out(const struct window *window, uint32_t kind);

/* Source of the steps of a kind: "function", "usdt" or "interval". */
const char *window__step_source(const struct window *window, uint32_t kind);

/* Share of time in which the probes of a sampled step function were on; 0 if it is not sampled. */
double window__sampled_percent(const struct window *window, uint32_t kind);

/* Steps that were cut off as the probes of their function were switched off. */
uint64_t window__cut_steps(const struct window *window, uint32_t kind);

/* Calls per second of that function while its probes were on. */
uint64_t window__sampled_calls_per_s(const struct window *window, uint32_t kind);

/*
 * The time of day at a time of CLOCK_MONOTONIC, in ns since the epoch, by the latest pair of the
 * two that is known; a time before the epoch is 0. 0: the window has no such pair.
 */
uint64_t window__unix_ns(const struct window *window, uint64_t time_ns);

/* True: steps have only GPU work that their own thread launched (FBT_WINDOW_GPU_STRICT). */
bool window__is_gpu_strict(const struct window *window);

/* False: its system calls were not traced (FBT_DETAIL_PROBES). */
bool window__traces_calls(const struct window *window);

/* False: such records cannot be lost, because they are not made. */
bool window__may_lose(const struct window *window, enum fbt_lost_cause cause);
uint64_t window__lost_total(const struct window *window);

/* "calls", "steps", "threads", "begins", "processes", "files". */
const char *lost_cause_name(enum fbt_lost_cause cause);

#endif
