/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What --explain has found out about an escalation, as members of a JSON object. */
#ifndef FBT_OUTPUT_EXPLAINED_H
#define FBT_OUTPUT_EXPLAINED_H

#include "base/json.h"
#include "judge/explained.h"
#include "judge/frames.h"

/* Room for names that are no strings of their own yet: as long as the fields. */
struct explained_names {
	char function[FRAMES_NAME];
	char callers[FUNCTIONS_SIZE];
	char faulted[FUNCTIONS_SIZE];
	char path[FAULT_MAPPING_SIZE];
};

/*
 * Adds who had the CPU that the step waited for: cpu_taken_waited_us, cpu_taken_own_us of its own
 * threads, and of the other process that had it longest cpu_taken_by, cpu_taken_pid, cpu_taken_us
 * and, if it is known, cpu_taken_cgroup; cpu_taken_from_tid if it was another thread that waited.
 * Adds who ended its wait: woken_context (thread, interrupt, sending, kernel), and unless that is
 * an interrupt woken_by, woken_by_pid and woken_by_tid. Adds grown_function, in which the step
 * computed for longer than usual, grown_callers and by how much, grown_us; or function_us, all of
 * it, if that is not known. Adds where most page faults were: faults_counted, faults_in_calls,
 * faulted_in, faulted_memory, faulted_count, faulted_majors. Nothing if that was not looked at.
 * Strings are borrowed from the cause.
 */
void explained_fields_add(struct json_fields *fields, const struct cause *cause,
			  const struct window *window, struct explained_names *names);

#endif
