/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/explained.h"

#include "base/clock.h"
#include "judge/frames.h"

static void add_taken(struct json_fields *fields, const struct cause *cause)
{
	const struct fbt_taken *taken = &cause->taken;
	const struct fbt_taker *most = NULL;

	for (uint32_t i = 0; i < taken->count && !most; i++)
		if (!taken->takers[i].tid && taken->takers[i].ns)
			most = &taken->takers[i];
	json_fields_uint(fields, "cpu_taken_waited_us", taken->waited_ns / NS_PER_US);
	json_fields_uint(fields, "cpu_taken_own_us", taken->own_ns / NS_PER_US);
	if (taken->cpu)
		json_fields_uint(fields, "cpu_taken_cpu", taken->cpu - 1);
	if (cause_is_of_other(cause))
		json_fields_uint(fields, "cpu_taken_from_tid", taken->tid);
	if (!most)
		return;
	if (!taker_is_group(most)) {
		json_fields_string(fields, "cpu_taken_by", most->comm);
		json_fields_uint(fields, "cpu_taken_pid", most->tgid);
	}
	json_fields_uint(fields, "cpu_taken_us", most->ns / NS_PER_US);
	if (*most->cgroup)
		json_fields_string(fields, "cpu_taken_cgroup", most->cgroup);
}

static void add_woken(struct json_fields *fields, const struct fbt_woken *woken)
{
	static const char *const contexts[FBT_WOKEN_CONTEXTS] = {
		[FBT_WOKEN_BY_THREAD] = "thread",
		[FBT_WOKEN_BY_INTERRUPT] = "interrupt",
		[FBT_WOKEN_WHILE_SENDING] = "sending",
		[FBT_WOKEN_BY_KERNEL] = "kernel",
	};

	json_fields_string(fields, "woken_context", contexts[woken->context]);
	if (!woken_has_waker(woken))
		return;
	json_fields_string(fields, "woken_by", woken->comm);
	json_fields_uint(fields, "woken_by_pid", woken->waker_tgid);
	json_fields_uint(fields, "woken_by_tid", woken->waker_tid);
}

/* Of a cause that does not know what is usual the time is all of it. */
static void add_grown(struct json_fields *fields, const struct cause *cause,
		      const struct window *window, struct explained_names *names)
{
	const uint32_t *codes = cause->grown[0].codes;

	json_fields_string(fields, "grown_function",
			   frames_name(window__code(window, codes[0]), names->function));
	functions_text(codes + 1, CAUSE_GROWN_CODES - 1, window, names->callers);
	if (*names->callers)
		json_fields_string(fields, "grown_callers", names->callers);
	json_fields_uint(fields, cause->grown_usual ? "grown_us" : "function_us",
			 cause->grown[0].ns / NS_PER_US);
}

/* The site with most faults. */
static void add_fault_site(struct json_fields *fields, const struct cause *cause,
			   const struct window *window, struct explained_names *names)
{
	const struct fbt_fault_sites *sites = &cause->fault_sites;
	const struct fbt_fault_site *most = &sites->sites[0];

	json_fields_uint(fields, "faults_counted", sites->faults);
	json_fields_uint(fields, "faults_in_calls", sites->in_calls);
	if (!sites->count)
		return;
	functions_text(most->codes, FBT_FAULT_CALLERS, window, names->faulted);
	if (*names->faulted)
		json_fields_string(fields, "faulted_in", names->faulted);
	json_fields_string(fields, "faulted_memory", fault_mapping_text(most, window, names->path));
	json_fields_uint(fields, "faulted_count", most->faults);
	json_fields_uint(fields, "faulted_majors", most->majors);
}

void explained_fields_add(struct json_fields *fields, const struct cause *cause,
			  const struct window *window, struct explained_names *names)
{
	if (cause->taken.header.type == FBT_EVENT_TAKEN && cause->taken.waited_ns)
		add_taken(fields, cause);
	if (cause->grown_count)
		add_grown(fields, cause, window, names);
	if (cause->fault_sites.header.type == FBT_EVENT_FAULT_SITES && !cause_is_of_other(cause))
		add_fault_site(fields, cause, window, names);
	if (cause->woken.header.type == FBT_EVENT_WOKEN && !cause->waker.tid)
		add_woken(fields, &cause->woken);
}
