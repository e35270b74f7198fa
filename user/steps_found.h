/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The step functions that are probed: found per process, one kind for a function wherever it is
 * found, attached once or per process, described in the stream.
 */
#ifndef FBT_STEPS_FOUND_H
#define FBT_STEPS_FOUND_H

#include "loader.h"
#include "options.h"
#include "record.h"
#include "target_options.h"
#include "traced.h"

struct steps_found;

/* Everything is borrowed. NULL: -ENOMEM. */
struct steps_found *steps_found__new(const struct options *options, struct loader *loader,
				     const struct record_output *output);
void steps_found__free(struct steps_found *found);

/* Looks through the files a process has mapped since the last time: number of new functions, or
 * -errno, logged. */
int steps_found__search(struct steps_found *found, struct traced *traced);

/* Functions known; whether any of them is probed. */
size_t steps_found__count(const struct steps_found *found);
bool steps_found__is_probing(const struct steps_found *found);

/* One line for the user: no step function matched --step in tgid, and what to do. */
void steps_found__explain(const struct steps_found *found, uint32_t tgid);

/*
 * Probes what is known of the process's files and not probed yet: how many functions, or -errno,
 * logged.
 */
int steps_found__attach(struct steps_found *found, struct traced *traced);

/*
 * Takes the probes of one process away (not those for every process). replace: only once the next
 * attach has put others in their place.
 */
void steps_found__detach(struct traced *traced, bool replace);

/*
 * Kinds that are probed together or not at all, as a set of bits: those that kind is joined with,
 * itself too.
 */
uint64_t steps_found__unit(const struct steps_found *found, uint32_t kind);

/* NULL if there is no such kind. */
const char *steps_found__name(const struct steps_found *found, uint32_t kind);

/*
 * Takes the probes of a set of kinds away in all processes, and puts them there again; meanwhile
 * steps_found__attach leaves them out. 0, or -errno, logged: then they are probed nowhere.
 */
void steps_found__switch_off(struct steps_found *found, struct traced_set *set, uint64_t kinds);
int steps_found__switch_on(struct steps_found *found, struct traced_set *set, uint64_t kinds);

/* Describes the kinds that were not described yet; after the window's first record. 0 or -ENOMEM.
 */
int steps_found__describe(struct steps_found *found);

#endif
