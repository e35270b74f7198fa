/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_ids(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static bool is_due(const struct roster_entry *entry, uint64_t now_ns)
{
	return entry->read_ns - entry->first_ns < ROSTER_YOUNG_NS ||
	       now_ns - entry->read_ns >= ROSTER_KEEP_NS;
}

static void read_entry(struct roster_entry *entry, const struct options *options,
		       struct candidate *candidate)
{
	candidate->tgid = entry->process.tgid;
	entry->how = SELECTED_NOT;
	entry->is_left_out = !process_entry_read(&entry->process) ||
			     !candidate_read(candidate, selector_needs_cgroups(options));
	if (entry->is_left_out)
		return;
	candidate->parent_tgid = entry->process.parent_tgid;
	entry->how = selector_match(options, candidate);
	memcpy(entry->comm, candidate->comm, sizeof(entry->comm));
}

/* Replaces the entries by those of these ids, which are sorted. */
static int take_ids(struct roster *roster, const pid_vec *ids, const struct options *options,
		    uint64_t now_ns)
{
	struct candidate *candidate = calloc(1, sizeof(*candidate));
	struct roster fresh = {0};
	size_t old = 0;
	int err = candidate ? 0 : -ENOMEM;

	vec_for_each (id, ids) {
		struct roster_entry entry = {.process.tgid = *id, .first_ns = now_ns};
		bool is_known;

		if (err)
			break;
		while (old < roster->entries.count && roster->entries.items[old].process.tgid < *id)
			old++;
		is_known = old < roster->entries.count &&
			   roster->entries.items[old].process.tgid == *id;
		if (is_known)
			entry = roster->entries.items[old];
		if (!is_known || is_due(&entry, now_ns)) {
			read_entry(&entry, options, candidate);
			entry.read_ns = now_ns;
		}
		err = vec_push(&fresh.entries, entry);
	}
	free(candidate);
	vec_free(err ? &fresh.entries : &roster->entries);
	if (!err)
		*roster = fresh;
	return err;
}

static int list_processes(const struct roster *roster, process_vec *processes)
{
	int err = 0;

	vec_for_each (entry, &roster->entries) {
		if (!err && !entry->is_left_out)
			err = vec_push(processes, entry->process);
	}
	return err;
}

static int list_selected(const struct roster *roster, const process_vec *processes,
			 selected_vec *found)
{
	const uint32_t self = (uint32_t)getpid();
	int err = 0;

	vec_for_each (entry, &roster->entries) {
		struct selected_process selected = {.tgid = entry->process.tgid, .how = entry->how};

		if (err || !entry->how || processes_descends(processes, selected.tgid, &self, 1))
			continue;
		memcpy(selected.comm, entry->comm, sizeof(selected.comm));
		err = vec_push(found, selected);
	}
	if (!err)
		selected_mark(found, processes);
	return err;
}

int roster_look(struct roster *roster, const struct options *options, uint64_t now_ns,
		selected_vec *found)
{
	process_vec processes = {0};
	pid_vec ids = {0};
	int err = processes_ids(&ids);

	vec_sort(&ids, compare_ids);
	if (!err)
		err = take_ids(roster, &ids, options, now_ns);
	if (!err)
		err = list_processes(roster, &processes);
	if (!err)
		err = list_selected(roster, &processes, found);
	vec_free(&processes);
	vec_free(&ids);
	return err;
}

void roster_clear(struct roster *roster)
{
	vec_free(&roster->entries);
}
