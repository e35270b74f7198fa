/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/rate_sites.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "fbt_shared.h"
#include "kernel/step_probes.h"
#include "steps/site.h"

struct known_site {
	uint64_t address;
	uint32_t kind; /* the one for which it is probed */
	bool on;
};

struct rate_sites {
	int map;
	const struct bpf_program *program;
	uint32_t tgid;
	uint32_t link_tgid;
	struct uprobes *uprobes;
	VEC(struct known_site) known;
};

struct rate_sites *rate_sites__new(int map, const struct bpf_program *program, uint32_t tgid,
				   uint32_t link_tgid, bool multi)
{
	struct rate_sites *sites = calloc(1, sizeof(*sites));

	if (!sites)
		return NULL;
	sites->map = map;
	sites->program = program;
	sites->tgid = tgid;
	sites->link_tgid = link_tgid;
	sites->uprobes = uprobes__new(multi);
	if (!sites->uprobes) {
		free(sites);
		return NULL;
	}
	uprobes__set_quiet(sites->uprobes, log_level() < LOG_DEBUG);
	return sites;
}

void rate_sites__free(struct rate_sites *sites)
{
	if (!sites)
		return;
	uprobes__free(sites->uprobes);
	vec_free(&sites->known);
	free(sites);
}

static void set_state(const struct rate_sites *sites, uint64_t address, enum fbt_site_state state)
{
	struct fbt_site site;

	if (bpf_map_lookup_elem(sites->map, &address, &site))
		return;
	site.state = state;
	/* A kind that is added meanwhile is added again by its next call. */
	(void)bpf_map_update_elem(sites->map, &address, &site, BPF_EXIST);
}

static int probe(const struct rate_sites *sites, const struct known_site *known)
{
	struct step_site place;
	int err = step_site_find(&place, sites->tgid, known->address, false);

	if (err)
		return err;
	err = step_probes_attach_site(sites->uprobes, sites->program, &place, known->kind,
				      sites->link_tgid);
	step_site_clear(&place);
	return err;
}

static void add(struct rate_sites *sites, uint64_t address, const struct fbt_site *site)
{
	struct known_site known = {
		.address = address,
		.kind = (uint32_t)__builtin_ctzll(site->kinds),
	};
	int err = vec_push(&sites->known, known);

	if (!err)
		err = probe(sites, &known);
	if (err)
		log_debug("call site 0x%llx: not probed: %s", (unsigned long long)address,
			  strerror(-err));
	else
		sites->known.items[sites->known.count - 1].on = true;
	set_state(sites, address, err ? FBT_SITE_REFUSED : FBT_SITE_PROBED);
}

void rate_sites__turn(struct rate_sites *sites)
{
	uint64_t address, *last = NULL;
	struct fbt_site site;

	/* Only the kernel side adds entries, and none is removed: no key is met twice. */
	while (!bpf_map_get_next_key(sites->map, last, &address)) {
		last = &address;
		if (!bpf_map_lookup_elem(sites->map, &address, &site) &&
		    site.state == FBT_SITE_TOLD && site.kinds)
			add(sites, address, &site);
	}
}

void rate_sites__drop(struct rate_sites *sites, uint32_t kind)
{
	vec_for_each (known, &sites->known) {
		if (known->kind != kind || !known->on)
			continue;
		known->on = false;
		set_state(sites, known->address, FBT_SITE_REFUSED);
	}
	step_probes_detach_sites(sites->uprobes, kind);
}

unsigned int rate_sites__count(const struct rate_sites *sites, uint32_t kind)
{
	unsigned int count = 0;
	struct fbt_site site;

	vec_for_each (known, &sites->known) {
		if (known->on && !bpf_map_lookup_elem(sites->map, &known->address, &site))
			count += site.kinds >> kind & 1;
	}
	return count;
}
