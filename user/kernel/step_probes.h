/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Attaches probes to step functions. */
#ifndef FBT_KERNEL_STEP_PROBES_H
#define FBT_KERNEL_STEP_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "steps/find.h"
#include "steps/follow.h"
#include "kernel/uprobes.h"
#include "steps/site.h"

struct step_probe {
	const struct step_function *function;
	uint32_t kind;
	bool without_exits; /* its steps end at call sites */
};

/*
 * Probes functions in process tgid, or in every process if tgid is 0. Each function has links
 * of its own, so that it can be detached alone. 0, or -errno, logged; then none of them is probed.
 */
int step_probes_attach(struct uprobes *uprobes, const struct bpf_program *program,
		       const struct step_probe *probes, size_t count, uint32_t tgid);

/* Detaches the probes of a kind, those of its call sites too. */
void step_probes_detach(struct uprobes *uprobes, uint32_t kind);

/*
 * The same for parts of a function with has_sites: its exits, and a place where it has returned.
 */
int step_probes_attach_exits(struct uprobes *uprobes, const struct bpf_program *program,
			     const struct step_probe *probe, uint32_t tgid);
void step_probes_detach_exits(struct uprobes *uprobes, uint32_t kind);
int step_probes_attach_site(struct uprobes *uprobes, const struct bpf_program *program,
			    const struct step_site *site, uint32_t kind, uint32_t tgid);
/* The same for several places of one file, in one link. */
int step_probes_attach_sites(struct uprobes *uprobes, const struct bpf_program *program,
			     const struct step_site *const *sites, size_t count, uint32_t kind,
			     uint32_t tgid);
/*
 * The places of one file where calls of a function end that leaves by jumps to others. They are
 * detached as exits.
 */
int step_probes_attach_followed(struct uprobes *uprobes, const struct bpf_program *program,
				const struct follow *follow, uint32_t file,
				const struct step_probe *probe, uint32_t tgid);
void step_probes_detach_sites(struct uprobes *uprobes, uint32_t kind);

#endif
