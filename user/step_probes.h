/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Step functions to probes. */
#ifndef FBT_STEP_PROBES_H
#define FBT_STEP_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "target.h"
#include "uprobes.h"

struct step_probe {
	const struct step_function *function;
	uint32_t kind;
};

/*
 * Probes functions: a link for each, so that one can be let go without the others. In process tgid,
 * or in every process if tgid is 0. 0, or -errno, logged: then none of them is probed.
 */
int step_probes_attach(struct uprobes *uprobes, const struct bpf_program *program,
		       const struct step_probe *probes, size_t count, uint32_t tgid);

/* Takes the probes of a kind away. */
void step_probes_detach(struct uprobes *uprobes, uint32_t kind);

/*
 * Whether one of the two may leave by a jump to the other, in which its step then goes on: so they
 * are probed together or not at all.
 */
bool step_probes_are_joined(const struct step_function *a, const struct step_function *b);

#endif
