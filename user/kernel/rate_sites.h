/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where the calls of candidates end that have no exits to probe: at their call sites. The kernel
 * side puts each new one into a map; it is probed here.
 */
#ifndef FBT_KERNEL_RATE_SITES_H
#define FBT_KERNEL_RATE_SITES_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_program;
struct rate_sites;

/*
 * The call sites in process tgid. map is the map rate_sites, program handles their probes, which
 * are attached for link_tgid (uprobes__attach); both are borrowed. NULL: -ENOMEM.
 */
struct rate_sites *rate_sites__new(int map, const struct bpf_program *program, uint32_t tgid,
				   uint32_t link_tgid, bool multi);
void rate_sites__free(struct rate_sites *sites); /* detaches all */

/* Probes the sites that are new. */
void rate_sites__turn(struct rate_sites *sites);

/*
 * Gives up the sites that were first seen with a kind: they cost too much. Calls of other kinds
 * from there have no end from then on.
 */
void rate_sites__drop(struct rate_sites *sites, uint32_t kind);

/* How many sites of a kind are probed. */
unsigned int rate_sites__count(const struct rate_sites *sites, uint32_t kind);

#endif
