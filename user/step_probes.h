/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Step functions to probes. */
#ifndef FBT_STEP_PROBES_H
#define FBT_STEP_PROBES_H

#include <stddef.h>
#include <stdint.h>
#include "target.h"
#include "uprobes.h"

struct step_probe {
	const struct step_function *function;
	uint32_t kind;
};

/*
 * Probes functions: one link for each file. In process tgid, or in every process if tgid is 0.
 * 0 or -errno, logged.
 */
int step_probes_attach(struct uprobes *uprobes, const struct bpf_program *program,
		       const struct step_probe *probes, size_t count, uint32_t tgid);

#endif
