/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "search/descendant.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "proc/process.h"
#include "steps/find.h"

/* No descendant is begun after this time. */
#define SEARCH_NS_MAX (2 * NS_PER_S)

#define OPTION " --step "

static bool has_step(const struct options *options, uint32_t tgid, struct target_seen *seen)
{
	struct target_options target_options = target_options_of(options);
	function_vec functions = {0};
	int count;

	target_options.tells = TARGET_TELLS_NOTHING;
	count = target_find(tgid, &target_options, seen, &functions);
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

static void describe(struct descendant *found, const struct process_entry *process, uint32_t tgid)
{
	found->tgid = process->tgid;
	found->is_child = process->parent_tgid == tgid;
	proc_comm((struct proc_ref){.tgid = process->tgid}, found->name, sizeof(found->name));
}

bool descendant_find(const struct options *options, uint32_t tgid, bool any_file,
		     struct descendant *found)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + SEARCH_NS_MAX;
	struct target_seen *seen = target_seen__new();
	process_vec processes = {0};

	*found = (struct descendant){.tgid = 0};
	if (seen)
		processes_list(&processes);
	vec_for_each (process, &processes) {
		if (clock_ns(CLOCK_MONOTONIC) >= end_ns)
			break;
		if (process->tgid == tgid || options_name_process(options, process->tgid) ||
		    !processes_descends(&processes, process->tgid, &tgid, 1) ||
		    (!any_file && !target_may_have_engine(process->tgid)) ||
		    !has_step(options, process->tgid, seen))
			continue;
		describe(found, process, tgid);
		break;
	}
	vec_free(&processes);
	target_seen__free(seen);
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
