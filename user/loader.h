/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The only file that sees the skeleton: opens, sizes, loads, maps and attaches the BPF programs. */
#ifndef FBT_LOADER_H
#define FBT_LOADER_H

#include <stdbool.h>
#include "shared.h"

struct bpf_program;
struct loader;
struct uprobes;

struct loader_options {
	enum fbt_detail detail;
	bool trace_all;
	bool follow;
	uint32_t ring_records; /* places of each CPU's call ring; 0: the default */
	uint32_t thread_count; /* threads there are now; room is made for that and many more */
	bool bpf_stats;	       /* have the kernel keep run time statistics: 45 ns a run */
	bool perf_uprobes;     /* not uprobe_multi, even where the kernel has it */
};

/*
 * Opens and loads; nothing is attached yet. 0, or -errno with one line logged that says what is
 * missing (a capability, BTF, a newer kernel) and what to do.
 */
int loader__open(struct loader **loader, const struct loader_options *options);
void loader__free(struct loader *loader); /* detaches */

struct shared *loader__shared(struct loader *loader);

/* What the rings and tables take; mapped_bytes: as our resident memory counts them. */
uint64_t loader__ring_bytes(const struct loader *loader, uint64_t *mapped_bytes);

/* Thread begin, end and exec; before the threads of a target are looked for in /proc. */
int loader__attach_threads(struct loader *loader);
int loader__attach_syscalls(struct loader *loader);

/* Follows threads that tgid creates from now on. */
int loader__add_target(struct loader *loader, uint32_t tgid);
void loader__remove_target(struct loader *loader, uint32_t tgid);

/* For step probes: what they run, how, and where those of every process stay until loader__detach.
 */
struct uprobes *loader__uprobes(struct loader *loader);
bool loader__has_multi(const struct loader *loader); /* uprobe_multi links, else perf uprobes */
const struct bpf_program *loader__step_program(const struct loader *loader);
int loader__set_kind_args(struct loader *loader, uint32_t kind, const struct fbt_kind_args *args);

/*
 * tgid comes under trace when it calls execve, and stops there and at probes with FBT_PROBE_STOP
 * until loader__release_command (launch.h). Whether it has not called execve yet.
 */
void loader__set_command(struct loader *loader, uint32_t tgid);
void loader__release_command(struct loader *loader);
bool loader__awaits_command(const struct loader *loader);

/* Hands on what is in the event ring: struct fbt_step, and fbt_target without strings. */
void loader__drain_events(struct loader *loader,
			  void (*on_event)(void *ctx, const struct fbt_header *event), void *ctx);

/*
 * Ends the window: the tracepoints are detached, step probes do nothing from now on. They are
 * removed by loader__free, which takes longer. The maps stay readable.
 */
void loader__detach(struct loader *loader);

/* Kernel statistics of our programs, all 0 unless the kernel keeps them. */
void loader__run_stats(const struct loader *loader, __u64 *run_ns, __u64 *run_count);

#endif
