/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Probes on places of a file. uprobe_multi links (Linux 6.6), made by the raw bpf syscall because
 * libbpf before 1.3 has no call for them: one link holds all places and is detached at once. On
 * older kernels one perf uprobe a place, whose detach takes 0.1 s each.
 */
#ifndef FBT_UPROBES_H
#define FBT_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_program;

/* What bpf_program__set_expected_attach_type needs before loading; 0 for perf uprobes. */
#define UPROBES_MULTI_ATTACH_TYPE 48

struct uprobe_place {
	uint64_t offset;  /* in the file */
	uint64_t ref_ctr; /* file offset of a USDT semaphore, or 0 */
	uint64_t cookie;
};

struct uprobes;

struct uprobes *uprobes__new(bool multi); /* NULL: -ENOMEM */

/* Detaches all. */
void uprobes__free(struct uprobes *uprobes);

/*
 * Probes count places of the file behind fd in process tgid, or in all processes if tgid is 0.
 * at_return makes them return probes. name is for messages. 0 or -errno, logged; on failure none
 * of these places stays probed.
 */
int uprobes__attach(struct uprobes *uprobes, const struct bpf_program *program, int fd,
		    const char *name, const struct uprobe_place *places, size_t count,
		    uint32_t tgid, bool at_return);

/*
 * Detaches what was attached by calls whose first place had a cookie that is value where mask is
 * set. Takes some 10 ms for a link, 0.1 s for a perf uprobe.
 */
void uprobes__detach(struct uprobes *uprobes, uint64_t mask, uint64_t value);

/* Whether this kernel has uprobe_multi links. */
bool uprobes_have_multi(void);

/* Whether a multi link may be limited to a process: before 6.10 that meant its first thread only.
 */
bool uprobes_multi_can_filter(void);

#endif
