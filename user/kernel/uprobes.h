/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Attaches uprobes to places in a file. On Linux 6.6 and newer, one uprobe_multi link holds all
 * places; on older kernels each place has a perf uprobe. The links are created by the raw bpf
 * syscall, because libbpf before 1.3 has no function for it.
 *
 * Removing a link or a perf uprobe waits for an RCU grace period, 30 to 100 ms. Links that are
 * removed by one call share the grace period. Perf uprobes do not, because the kernel removes them
 * one by one.
 */
#ifndef FBT_KERNEL_UPROBES_H
#define FBT_KERNEL_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_program;

/*
 * Attach type of the program, to be set before loading by bpf_program__set_expected_attach_type().
 * Not for perf uprobes.
 */
#define UPROBES_MULTI_ATTACH_TYPE 48

struct uprobe_place {
	uint64_t offset;  /* in the file */
	uint64_t ref_ctr; /* file offset of a USDT semaphore, or 0 */
	uint64_t cookie;
};

struct uprobes;

struct uprobes *uprobes__new(bool multi); /* NULL: -ENOMEM */

/* If quiet, uprobes__attach() does not log why it failed. */
void uprobes__set_quiet(struct uprobes *uprobes, bool quiet);

/* Bits that are set in the cookie of each probe that is attached from now on. */
void uprobes__set_mark(struct uprobes *uprobes, uint64_t mark);

/* Detaches all probes. */
void uprobes__free(struct uprobes *uprobes);

/* Moves all probes of from to uprobes, so that they are detached together, and frees from. */
void uprobes__merge(struct uprobes *uprobes, struct uprobes *from);

/*
 * Probes count places of the file fd in process tgid, or in all processes if tgid is 0. at_return
 * makes them return probes. name is used in messages. 0, or -errno, logged unless quiet; after a
 * failure none of these places is probed.
 */
int uprobes__attach(struct uprobes *uprobes, const struct bpf_program *program, int fd,
		    const char *name, const struct uprobe_place *places, size_t count,
		    uint32_t tgid, bool at_return);

/*
 * Detaches the probes of each uprobes__attach() whose first place had a cookie with
 * (cookie & mask) == value.
 */
void uprobes__detach(struct uprobes *uprobes, uint64_t mask, uint64_t value);

/*
 * The same, but a thread does it while the caller goes on: for tens of milliseconds the probes are
 * still hit, and longer where threads that may not be preempted keep the CPUs. uprobes__free waits
 * for it.
 */
void uprobes__detach_later(struct uprobes *uprobes, uint64_t mask, uint64_t value);

/*
 * The name of a file with probes in all processes that was written anew in place since it was first
 * probed, or since this was last asked; NULL: there is none. The kernel keeps probes by inode and
 * offset, so it puts them into other code of the processes that map the new file: the caller is to
 * detach them. The name is valid until then.
 */
const char *uprobes__rewritten(struct uprobes *uprobes);

/* Whether this kernel has uprobe_multi links. */
bool uprobes_have_multi(void);

/*
 * Whether a multi link can be limited to a process. Before Linux 6.10 it was limited to the first
 * thread of the process.
 */
bool uprobes_multi_can_filter(void);

#endif
