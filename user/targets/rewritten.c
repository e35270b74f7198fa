/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/rewritten.h"

#include "base/clock.h"
#include "base/log.h"
#include "kernel/loader.h"
#include "kernel/traced.h"
#include "kernel/uprobes.h"
#include "steps/find.h"
#include "targets/step_sites.h"
#include "targets/steps_found.h"

/* Without a change for so long, the next one is another writing. */
#define SETTLED_NS NS_PER_S

/*
 * Those of Python are markers in the library that is injected; they stay. Of the others each may
 * have probes in the file: call sites, and functions that a step function jumps to.
 */
static uint64_t find_kinds(const struct steps_found *found)
{
	uint64_t kinds = 0;

	for (uint32_t kind = 1; kind <= steps_found__count(found); kind++) {
		if (!steps_found__function(found, kind)->is_python)
			kinds |= kind_bit(kind);
	}
	return kinds;
}

uint64_t rewritten_turn(struct rewritten *rewritten, const struct live *live, uint64_t now_ns)
{
	const char *name = uprobes__rewritten(loader__uprobes(live->loader));
	struct traced *traced;
	uint64_t kinds;

	if (!name)
		return 0;
	/* The name goes with the last probe. */
	if (now_ns >= rewritten->changed_ns + SETTLED_NS)
		log_warn("%s was written anew in place: all probes are removed, and step "
			 "functions are searched again",
			 name);
	kinds = find_kinds(live->found);
	step_sites__switch_off(live->sites, kinds);
	steps_found__give_up(live->found, kinds);
	for (size_t i = 0; (traced = traced_set__at(live->traced, i)); i++) {
		target_seen__forget(traced->seen);
		traced->rescan = true;
	}
	rewritten->changed_ns = now_ns;
	return kinds;
}
