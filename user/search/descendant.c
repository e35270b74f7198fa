/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "search/descendant.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "proc/process.h"
#include "steps/find.h"

/* Of CPU time, so that a busy machine does not end the search: no descendant is begun after it. */
#define SEARCH_NS_MAX (2 * NS_PER_S)

#define OPTION " --step "

static bool has_step(const struct options *options, uint32_t tgid, struct target_seen *seen)
{
	struct target_options target_options = target_options_of(options);
	function_vec functions = {0};
	int count;

	target_options.tells = TARGET_TELLS_NOTHING;
	count = target_find(processes_live_thread(tgid), &target_options, seen, &functions);
	step_functions_free(&functions);
	return count > 0;
}

bool process_has_step(const struct options *options, uint32_t tgid)
{
	struct target_seen *seen = target_seen__new();
	bool has = !seen || has_step(options, tgid, seen);

	target_seen__free(seen);
	return has;
}

struct search {
	const struct options *options;
	bool any_file;
	process_vec processes;
	struct target_seen *seen;
	uint64_t end_ns;
};

static void describe(struct descendant *found, const struct process_entry *process, uint32_t tgid)
{
	found->tgid = process->tgid;
	found->root_tgid = tgid;
	found->is_child = process->parent_tgid == tgid;
	proc_comm((struct proc_ref){.tgid = process->tgid}, found->name, sizeof(found->name));
}

static bool find_below(struct search *search, uint32_t tgid, struct descendant *found)
{
	vec_for_each (process, &search->processes) {
		if (clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= search->end_ns)
			return false;
		if (process->tgid == tgid || options_name_process(search->options, process->tgid) ||
		    !processes_descends(&search->processes, process->tgid, &tgid, 1) ||
		    (!search->any_file && !target_may_have_engine(process->tgid)) ||
		    !has_step(search->options, process->tgid, search->seen))
			continue;
		describe(found, process, tgid);
		return true;
	}
	return false;
}

bool descendant_find(const struct options *options, const struct descendant_roots *roots,
		     bool any_file, struct descendant *found)
{
	struct search search = {.options = options, .any_file = any_file};

	*found = (struct descendant){.tgid = 0};
	search.seen = target_seen__new();
	if (search.seen)
		processes_list(&search.processes);
	/* The list of a busy machine may take as long. */
	search.end_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + SEARCH_NS_MAX;
	for (size_t i = 0; i < roots->count && !found->tgid; i++)
		find_below(&search, roots->tgids[i], found);
	vec_free(&search.processes);
	target_seen__free(search.seen);
	return found->tgid;
}

void descendant_steps(char *to, size_t size, const struct options *options)
{
	char quoted[1024];
	size_t used = 0;

	*to = '\0';
	vec_for_each (spec, &options->specs) {
		size_t length = strlen(OPTION) + text_quote(quoted, sizeof(quoted), spec->text);

		if (length < sizeof(quoted) && used + length < size)
			used += (size_t)snprintf(to + used, size - used, OPTION "%s", quoted);
	}
}
