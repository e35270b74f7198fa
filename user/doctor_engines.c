/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_engines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "cuda_use.h"
#include "map_search.h"
#include "processes.h"
#include "target.h"

#define NAME_SHOWN 100

static bool is_any(const struct mapping *mapping, const void *ctx)
{
	(void)ctx;
	return mapping->path && mapping->executable;
}

/* Where the built-in table would look into a library. */
static bool is_likely(uint32_t tgid)
{
	return map_search(tgid, "llama", is_any, NULL) ||
	       map_search(tgid, "ferrum", is_any, NULL) || cuda_use_is_there(tgid);
}

static void name_steps(struct doctor_engine *engine, const function_vec *functions)
{
	size_t used = 0;

	vec_for_each (function, functions) {
		if (used < sizeof(engine->steps))
			used += (size_t)snprintf(engine->steps + used, sizeof(engine->steps) - used,
						 "%s%.*s", used ? ", " : "", NAME_SHOWN,
						 (*function)->name);
	}
}

static void look_at(struct doctor_engines *engines, uint32_t tgid)
{
	struct target_options options = {.specs = NULL};
	struct doctor_engine engine = {.tgid = tgid};
	struct target_seen *seen = target_seen__new();
	function_vec functions = {0};

	engine.cuda = cuda_use_is_there(tgid) && !cuda_use_is_inherited(tgid);
	if (seen && target_find(processes_living_thread(tgid), &options, seen, &functions) > 0)
		name_steps(&engine, &functions);
	target_seen__free(seen);
	vec_for_each (function, &functions)
		target_function_free(*function);
	vec_free(&functions);
	if (!*engine.steps && !engine.cuda)
		return;
	if (engines->count == DOCTOR_ENGINES_MAX) {
		engines->more++;
		return;
	}
	doctor_process_comm(tgid, engine.comm);
	engines->items[engines->count++] = engine;
}

/* Those that are likely first: the time may be over before all are through. */
void doctor_engines_find(struct doctor_engines *engines, uint64_t budget_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + budget_ns;
	process_vec processes = {0};
	struct doctor_words unheard;

	*engines = (struct doctor_engines){.count = 0};
	doctor_listen(&unheard);
	processes_list(&processes);
	vec_for_each (process, &processes) {
		if (clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= end_ns || !is_likely(process->tgid))
			continue;
		look_at(engines, process->tgid);
		process->tgid = 0;
	}
	vec_for_each (process, &processes) {
		if (!process->tgid)
			continue;
		if (clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= end_ns)
			engines->not_looked++;
		else
			look_at(engines, process->tgid);
	}
	doctor_listen_end();
	vec_free(&processes);
}

void doctor_engines_judge(const struct doctor_engines *engines, struct doctor_checks *checks)
{
	for (size_t i = 0; i < engines->count; i++) {
		const struct doctor_engine *engine = &engines->items[i];

		if (*engine->steps)
			doctor_say(checks, DOCTOR_OK, "engine", "-p %" PRIu32 " (%s): %s%s",
				   engine->tgid, engine->comm, engine->steps,
				   engine->cuda ? "; uses CUDA" : "");
		else
			doctor_say(checks, DOCTOR_NOTE, "engine",
				   "-p %" PRIu32 " (%s): uses CUDA, no known step function",
				   engine->tgid, engine->comm);
	}
	if (engines->more)
		doctor_say(checks, DOCTOR_NOTE, "engines", "and %zu more", engines->more);
	if (!engines->count)
		doctor_say(checks, DOCTOR_NOTE, "engines",
			   "none found: no process has a known step function (llama.cpp, ferrum), "
			   "or CUDA");
	if (engines->not_looked)
		doctor_say(checks, DOCTOR_NOTE, "engines",
			   "%zu processes were not looked into: that takes longer",
			   engines->not_looked);
}
