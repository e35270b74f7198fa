/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Lists processes and threads, reads their arguments and environment, and watches for their end. */
#ifndef FBT_PROC_PROCESS_H
#define FBT_PROC_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/vec.h"
#include "proc/open.h"

typedef VEC(uint32_t) pid_vec;

struct process_entry {
	uint32_t tgid;
	uint32_t parent_tgid;
};

typedef VEC(struct process_entry) process_vec;

/* Reads the parent of process->tgid. false: it has ended, or is a kernel thread or the tool. */
bool process_entry_read(struct process_entry *process);

/* All processes except kernel threads and the tool, by tgid. 0 or -errno, logged. */
int processes_list(process_vec *processes);

/* The ids of all processes, in the order of /proc, which is theirs. 0 or -errno, logged. */
int processes_ids(pid_vec *ids);

/*
 * The id that was given last, to a process or a thread: as long as it stays, none has begun. 0: it
 * cannot be read.
 */
uint32_t processes_last(void);

/* The parent of a process, in a list by tgid; 0: it has none there. */
uint32_t processes_parent(const process_vec *processes, uint32_t tgid);

/* Whether tgid is one of roots or a descendant of one, by the parents in processes. */
bool processes_descends(const process_vec *processes, uint32_t tgid, const uint32_t *roots,
			size_t root_count);

/*
 * Appends the children of a process, whichever of its threads has started them. Without
 * CONFIG_PROC_CHILDREN there are none.
 */
void processes_children(uint32_t tgid, pid_vec *children);

/* Appends the threads of a process. 0, -ESRCH or another -errno, without a message. */
int threads_list(uint32_t tgid, pid_vec *threads);

/*
 * A thread through which the files of the process in /proc can be read: the first thread, or
 * another one if the first has ended. Returns tgid if no thread lives.
 */
uint32_t processes_live_thread(uint32_t tgid);

/* A reference to the process through that thread. */
struct proc_ref processes_ref(uint32_t tgid);

/* Number of threads of a process, or of the machine if tgid is 0; 0 if it cannot be read. */
uint32_t processes_count_threads(uint32_t tgid);

/* The names of a process. Those that cannot be read are empty; longer ones are cut off. */
struct process_text {
	char comm[32];
	char exe[4096];
	char cmdline[4096]; /* arguments joined by spaces, without secrets (user/base/redact.h) */
};

void process_text_read(struct process_text *text, uint32_t tgid);

/*
 * The arguments or the environment that a process was started with (proc(5)). Later changes by
 * setenv() cannot be seen from outside. The process can replace both by any bytes of any length
 * (prctl(2), PR_SET_MM), so there are bounds, above the default limit of execve (2 MiB).
 */
#define PROCESS_STRINGS_BYTES_MAX (8u << 20)
#define PROCESS_STRINGS_MAX	  (128u << 10)

struct process_strings {
	char **items; /* NULL-terminated */
	size_t count;
	char *text; /* items point into it */
};

/*
 * Reads /proc/TGID/FILE, which is "cmdline" or "environ". Strings that are not whole within the
 * bounds are left out. 0; or -errno, logged only with -v, and nothing to clear. A process that is
 * ending may have no strings any more.
 */
int process_strings_read(struct process_strings *strings, uint32_t tgid, const char *file);
void process_strings_clear(struct process_strings *strings);

/*
 * Splits size bytes of text at each NUL; the last string may lack its NUL. text, which must be from
 * malloc and have room for size + 1 bytes, is taken over, also on failure. 0 or -ENOMEM.
 */
int process_strings_split(struct process_strings *strings, char *text, size_t size);

/* A set of processes, from which those that end are removed. A reused PID is not mistaken. */
struct pid_set;

/* 0; -ESRCH, logged, if there is no such process; or another -errno. */
int pid_set__new(struct pid_set **set, const pid_vec *pids);
void pid_set__free(struct pid_set *set);

/* The living processes, in the original order. Borrowed until the next pid_set__look(). */
const pid_vec *pid_set__pids(const struct pid_set *set);

/*
 * Removes the processes that have ended, and logs each of them unless it was the last one. Returns
 * the number of those that live.
 */
size_t pid_set__look(struct pid_set *set);

#endif
