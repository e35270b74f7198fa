/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/folded.h"

#include <errno.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/log.h"
#include "judge/frames.h"
#include "judge/look.h"
#include "model/syscalls.h"
#include "output/folded_table.h"

struct folded_sink {
	struct sink sink;
	FILE *out;
	struct folded_table *table;
	uint64_t timeless; /* stacks of calls whose records were lost */
};

static uint64_t part_of(uint64_t ns, uint32_t samples, uint32_t all)
{
	return (uint64_t)((unsigned __int128)ns * samples / all);
}

static bool has_call(const struct step *step, const struct fbt_stack *stack)
{
	size_t at = vec_lower_bound(&step->calls, item->start_ns, stack->start_ns);
	const struct fbt_call *row = at ? &step->calls.items[at - 1] : NULL;

	if (at < step->calls.count && step->calls.items[at].start_ns == stack->start_ns)
		return true;
	/* Calls of a row that spins have one record for all. */
	return row && row->header.flags & FBT_CALL_RUN &&
	       stack->start_ns - row->start_ns < row->duration_ns;
}

static int add_call(struct folded_sink *folded, const struct window *window,
		    const struct step *step, const struct fbt_call *call)
{
	struct fbt_stack stack;
	char label[24];
	struct folded_stack line = {
		.kind = window__kind_name(window, step->record.kind),
		.codes = stack.codes,
		.ns = call->duration_ns,
	};

	if (!look_call_stack(step, window, call, &stack))
		return 0;
	line.count = frames_of_step(window, line.kind, stack.codes, stack.count);
	line.flags = stack.header.flags;
	line.end = syscall_label(window->record.arch, call->nr, label);
	return folded_table__add(folded->table, window, &line);
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct folded_sink *folded = (struct folded_sink *)sink;
	int err = 0;

	vec_for_each (stack, &step->stacks)
		if (!(stack->header.flags & (FBT_STACK_WAKER | FBT_STACK_SAMPLED)) &&
		    !has_call(step, stack))
			folded->timeless++;
	if (!step->stacks.count && !step->looks.count)
		return 0;
	for (size_t i = 0; i < step->calls.count && !err; i++)
		err = add_call(folded, window, step, &step->calls.items[i]);
	return err;
}

/* A part of the time that a sampled step computed; stack is NULL if it is not known where. */
static int add_samples(struct folded_sink *folded, const struct window *window,
		       const struct step *step, const struct fbt_stack *stack, uint64_t ns)
{
	static const uint32_t unknown = 0;
	struct folded_stack line = {
		.kind = window__kind_name(window, step->record.kind),
		.codes = &unknown,
		.count = 1,
		.end = "on CPU",
		.ns = ns,
	};

	/* A function without a name has been left out. */
	if (stack) {
		line.codes = stack->codes + !stack->codes[0];
		line.count = frames_of_step(window, line.kind, line.codes,
					    stack->count - !stack->codes[0]);
		line.flags = stack->header.flags;
	}
	return folded_table__add(folded->table, window, &line);
}

/* Where steps that are slow compute, if that was sampled; that others do would hide it. */
static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct folded_sink *folded = (struct folded_sink *)sink;
	uint32_t all = step->samples.samples, samples = all;
	struct step_parts parts;
	int err = 0;

	if (step->samples.header.type != FBT_EVENT_SAMPLES || !all)
		return 0;
	step_split(step, &parts);
	for (size_t i = 0; i < step->stacks.count && !err; i++) {
		const struct fbt_stack *stack = &step->stacks.items[i];

		if (!(stack->header.flags & FBT_STACK_SAMPLED) || stack->samples > samples)
			continue;
		samples -= stack->samples;
		err = add_samples(folded, window, step, stack,
				  part_of(parts.ns[STEP_OWN], stack->samples, all));
	}
	return err || !samples ? err
			       : add_samples(folded, window, step, NULL,
					     part_of(parts.ns[STEP_OWN], samples, all));
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	const struct folded_sink *folded = (const struct folded_sink *)sink;

	if (folded->timeless)
		log_warn("folded: %s slow call%s left out: how long %s took is not known, because "
			 "records were lost",
			 FORMAT_COUNT(folded->timeless), folded->timeless == 1 ? " is" : "s are",
			 folded->timeless == 1 ? "it" : "they");
	return folded_table__write(folded->table, folded->out);
}

static void free_sink(struct sink *sink)
{
	struct folded_sink *folded = (struct folded_sink *)sink;

	folded_table__free(folded->table);
	free(folded);
}

struct sink *sink_folded__new(FILE *out)
{
	struct folded_sink *folded = calloc(1, sizeof(*folded));

	if (!folded)
		return NULL;
	folded->sink = (struct sink){
		.name = "folded",
		.is_file = true,
		.is_document = true,
		.write_step = write_step,
		.write_escalation = write_escalation,
		.finish = finish,
		.free = free_sink,
	};
	folded->out = out;
	folded->table = folded_table__new();
	if (folded->table)
		return &folded->sink;
	free(folded);
	return NULL;
}
