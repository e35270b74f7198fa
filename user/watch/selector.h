/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which processes are watched. Pure, but for candidate_read. */
#ifndef FBT_WATCH_SELECTOR_H
#define FBT_WATCH_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "options.h"
#include "proc/process.h"

/* Room for the lines of /proc/PID/cgroup: one with cgroups v2, a dozen with v1. */
#define CANDIDATE_CGROUPS 4096

struct candidate {
	uint32_t tgid;
	uint32_t parent_tgid;
	char comm[16];
	char cgroups[CANDIDATE_CGROUPS]; /* "" if not known, or not needed */
};

enum selected {
	SELECTED_NOT = 0,
	SELECTED_PROCESS = 1, /* by PID or name */
	SELECTED_GROUP = 2, /* by cgroup, container or unit: any process of it may be the engine */
};

enum selected selector_match(const struct options *options, const struct candidate *candidate);

/* A process that the options select. */
struct selected_process {
	uint32_t tgid;
	char comm[16];
	enum selected how;
	bool is_below;	   /* it descends from another one of these, and is traced with it */
	bool is_above;	   /* another one descends from it */
	uint32_t top_tgid; /* is_below: of the one from which it descends that is not below */
};

typedef VEC(struct selected_process) selected_vec;

/* Sets the last three of each. Both lists are by tgid. */
void selected_mark(selected_vec *found, const process_vec *processes);

/* NULL: it is not selected. */
const struct selected_process *selected_find(const selected_vec *found, uint32_t tgid);

/* Whether candidates need their cgroups. */
bool selector_needs_cgroups(const struct options *options);

/*
 * The three that look into the lines of /proc/PID/cgroup, "0::/system.slice/llm.service". A cgroup
 * holds those below it. A container is named by its id, or at least 12 digits of it; a unit
 * without a suffix is a service. Below user.slice no unit is found: users make cgroups there.
 */
bool cgroups_have_path(const char *lines, const char *path);
bool cgroups_have_container(const char *lines, const char *id);
bool cgroups_have_unit(const char *lines, const char *unit);

/* Reads name and cgroups of candidate->tgid. false: it has ended. */
bool candidate_read(struct candidate *candidate, bool with_cgroups);

#endif
