/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Opens, sizes, loads, maps and attaches the BPF programs. Only this module uses their skeleton. */
#ifndef FBT_KERNEL_LOADER_H
#define FBT_KERNEL_LOADER_H

#include <stdbool.h>
#include "kernel/shared.h"

struct bpf_program;
struct loader;
struct senders;
struct task_list;
struct uprobes;

struct loader_options {
	enum fbt_detail detail;
	bool trace_all;
	bool follow;
	uint32_t ring_records; /* places in the call ring of each CPU; 0: the default */
	uint32_t thread_count; /* threads to trace now; room is made for many more */
	bool perf_uprobes;     /* use no uprobe_multi links, even if the kernel has them */
	bool find_senders;     /* who stops processes by signals */
};

/*
 * Opens and loads the programs, but attaches none. 0, or -errno with one line logged that says what
 * is missing (a capability, BTF, a newer kernel) and what to do.
 */
int loader__open(struct loader **loader, const struct loader_options *options);
void loader__free(struct loader *loader); /* detaches */

struct shared *loader__shared(struct loader *loader);

/* Memory of the rings and tables. *mapped_bytes is their share of the tool's resident memory. */
uint64_t loader__ring_bytes(const struct loader *loader, uint64_t *mapped_bytes);

/* Attaches to fork, exit and exec. To be called before a target's threads are read from /proc. */
int loader__attach_threads(struct loader *loader);

/*
 * With FBT_DETAIL_PROBES the programs for system calls are not even loaded: attaching does nothing,
 * and system calls cost no process more. The time of signal handlers is measured where the kernel
 * allows their beginning to be traced.
 */
bool loader__traces_calls(const struct loader *loader);
int loader__attach_syscalls(struct loader *loader);

/*
 * How often a program for system calls was left out since it was loaded: from Linux 7 on it may be
 * preempted, and is not run for another thread on that CPU meanwhile. At most so many calls, of all
 * processes, are neither counted nor recorded.
 */
uint64_t loader__missed_calls(const struct loader *loader);

/* The same of new threads: so many, of all processes, have no slot until they are looked for. */
uint64_t loader__missed_forks(const struct loader *loader);

/* And of threads that ended: so many, of all processes, still have their slots. */
uint64_t loader__missed_exits(const struct loader *loader);

/* From now on, new threads of tgid are traced. */
int loader__add_target(struct loader *loader, uint32_t tgid);
void loader__remove_target(struct loader *loader, uint32_t tgid);

/*
 * Where the locks of a process's interpreter lie: from now on waits for them are told apart. An
 * empty range: there is none any more.
 */
int loader__set_runtime(struct loader *loader, uint32_t tgid, uint64_t start, uint64_t end);

/* For step probes: their program, and the owner of the probes that apply to every process. */
/* The descriptor of a map, which stays the loader's; -ENOENT: there is none of that name. */
int loader__map(const struct loader *loader, const char *name);

struct uprobes *loader__uprobes(struct loader *loader);
bool loader__has_multi(const struct loader *loader); /* uprobe_multi links, or else perf uprobes */
const struct bpf_program *loader__step_program(const struct loader *loader);

/* The programs for the begin and the end of a page fault; false: the kernel refused them. */
struct fault_programs {
	int begin; /* descriptors */
	int end;
};
bool loader__fault_programs(const struct loader *loader, struct fault_programs *programs);

/* Lists the threads of a process from outside; NULL: the kernel refused that. */
struct task_list *loader__task_list(const struct loader *loader);

/* NULL: it was not asked for, or the kernel refused it. */
const struct senders *loader__senders(const struct loader *loader);

int loader__set_kind_args(struct loader *loader, uint32_t kind, const struct fbt_kind_args *args);

/*
 * Sets the state of a call site that the kernel side has reported, or forgets the site, so that it
 * is reported again. An update that fails leaves FBT_SITE_TOLD: the site is not used.
 * loader__site_kinds: the kinds that were called from there.
 */
void loader__set_site(struct loader *loader, const struct fbt_site_key *key,
		      enum fbt_site_state state);
uint64_t loader__site_kinds(struct loader *loader, const struct fbt_site_key *key);
void loader__forget_site(struct loader *loader, const struct fbt_site_key *key);

/*
 * Starts tracing tgid when it calls execve. The process is stopped there, and at probes with
 * FBT_PROBE_STOP, until loader__release_command() (trace/command.h). loader__awaits_command()
 * returns whether there was no execve so far.
 */
void loader__set_command(struct loader *loader, uint32_t tgid);
void loader__release_command(struct loader *loader);
bool loader__awaits_command(const struct loader *loader);

/*
 * Calls on_event for each event: fbt_step, fbt_ring_file, and fbt_target without strings. most_ns:
 * the rest is left for the next time, because on a large machine more may come in than are read; 0:
 * all, for a ring into which nothing is written any more. Returns whether all that was there at the
 * begin has been read.
 */
bool loader__drain_events(struct loader *loader, uint64_t most_ns,
			  void (*on_event)(void *ctx, const struct fbt_header *event), void *ctx);

/*
 * How many steps there can be at most among the events that are not read: one that is still being
 * written keeps all behind it.
 */
uint64_t loader__unread_steps(const struct loader *loader);

/*
 * Ends the window: from now on no step begins; the tracepoints are detached; then the step probes
 * do nothing. A step that ended meanwhile is FBT_END_TRUNCATED, with its true end. Removing the
 * step probes takes longer and is left to loader__free(). The maps stay readable.
 */
void loader__detach(struct loader *loader);

/*
 * Sets cpu_count, id_chunks, slot_count and ring_shift of shared, which must be zero. The
 * parameters are those of loader_options. The default of ring_records is lower on a machine with
 * many CPUs.
 */
void sizing_choose(struct shared *shared, enum fbt_detail detail, uint32_t ring_records,
		   uint32_t thread_count);

#endif
