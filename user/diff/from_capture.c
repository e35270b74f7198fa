/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A capture goes through the same stages as in --replay; here is the sink at their end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arith.h"
#include "diff/read.h"
#include "gpu/text.h"
#include "output/capture.h"
#include "output/jsonl_window.h"
#include "output/slice.h"

struct sink_side {
	struct sink sink; /* first: what the pipeline holds */
	struct side *side;
	int kinds[FBT_KIND_COUNT]; /* index + 1 in the side; 0: not yet known */
};

static int find_kind(struct sink_side *self, const struct window *window, uint32_t kind)
{
	const char *const *names = (const char *const *)window->kinds[kind].arg_names;
	int index;

	if (self->kinds[kind])
		return self->kinds[kind] - 1;
	index = side__kind(self->side, window__kind_name(window, kind), names, !kind);
	if (index >= 0)
		self->kinds[kind] = index + 1;
	return index;
}

/* Why the step does not count; LEFT_COUNT if it does. */
static enum left_out why_left_out(const struct step *step)
{
	if (step_is_profiled(step))
		return LEFT_PROFILED;
	if (!step->complete)
		return LEFT_INCOMPLETE;
	return step->record.end == FBT_END_RETURN ? LEFT_COUNT : LEFT_UNWOUND;
}

static void fill_step(const struct sink_side *self, const struct window *window,
		      const struct step *step, const struct step_parts *parts,
		      struct side_step *filled)
{
	const char *const *names = (const char *const *)window->kinds[step->record.kind].arg_names;
	int argument = side_kind_argument(self->side->kinds.items[filled->kind], names);
	uint64_t busy_ns = step->gpu && step->gpu->complete ? step->gpu->all.busy_ns : 0;

	filled->ns = step_total_ns(step);
	filled->size[SIZE_BY_WORK] = max_u64(parts->ns[STEP_OWN], busy_ns);
	if (argument >= 0 && step->record.arg_mask & 1u << argument) {
		filled->has_argument = true;
		filled->size[SIZE_BY_ARGUMENT] =
			step->record.args[argument] > 0 ? (uint64_t)step->record.args[argument] : 0;
	}
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct sink_side *self = (struct sink_side *)sink;
	struct side_step filled = {0};
	struct step_parts parts;
	int kind = step->record.kind < FBT_KIND_COUNT ? find_kind(self, window, step->record.kind)
						      : -ENOSPC;
	enum left_out why = why_left_out(step);

	self->side->has_last = false;
	if (kind == -ENOSPC) {
		self->side->kinds_left_out++;
		return 0;
	}
	if (kind < 0)
		return kind;
	if (why != LEFT_COUNT) {
		side__leave_out(self->side, (uint8_t)kind, why);
		return 0;
	}
	step_split(step, &parts);
	filled.kind = (uint8_t)kind;
	self->side->has_gpu |= step->gpu != NULL;
	fill_step(self, window, step, &parts, &filled);
	self->side->kinds.items[kind]->without_calls += !step_calls_known(step);
	return side__add(self->side, &filled, parts.known ? parts.ns : NULL);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	const struct cause *cause = &escalation->cause;

	side__add_cause(((struct sink_side *)sink)->side, cause->kind,
			sub_saturating(cause->time_ns, cause->usual_ns));
	return 0;
}

/* Functions of one name are one kind: in another file, nothing else tells which is which. */
static void find_pooled(struct sink_side *self)
{
	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		for (uint32_t j = i + 1; j < FBT_KIND_COUNT && self->kinds[i]; j++) {
			if (self->kinds[i] == self->kinds[j])
				self->side->kinds.items[self->kinds[i] - 1]->is_pooled = true;
		}
	}
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct side *side = ((struct sink_side *)sink)->side;
	const struct fbt_window *record = &window->record;
	const char *values[FACT_COUNT] = {
		[FACT_HOST] = *window->host ? window->host : NULL,
		[FACT_ARCH] = record->arch == FBT_ARCH_ARM64 ? "arm64" : "x86_64",
		[FACT_KERNEL] = *window->kernel_release ? window->kernel_release : NULL,
		[FACT_TOOL] = *window->tool_version ? window->tool_version : NULL,
		[FACT_DETAIL] = detail_name(record->detail),
		[FACT_GPU] = side_gpu_fact(side, window__is_gpu_strict(window)),
	};
	int err = 0;

	find_pooled((struct sink_side *)sink);
	for (int i = 0; i < FACT_COUNT && !err; i++)
		err = side__set_fact(side, (enum side_fact)i, values[i]);
	side->has_gpu = false;
	side->windows++;
	side->windows_ns += sub_saturating(window->end_ns, record->start_ns);
	side->lost = add_saturating(window__lost_total(window), window->skipped_records);
	side->cut_off += window->cut_off;
	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		double percent = window__sampled_percent(window, i);

		if (percent > 0 && (!side->sampled_percent || percent < side->sampled_percent))
			side->sampled_percent = percent;
	}
	return err;
}

static void free_sink(struct sink *sink)
{
	free(sink);
}

static struct sink *sink_side__new(struct side *side)
{
	struct sink_side *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "diff",
		.write_step = write_step,
		.write_escalation = write_escalation,
		.finish = finish,
		.free = free_sink,
	};
	self->side = side;
	return &self->sink;
}

static int push(void *ctx, const void *data, size_t size)
{
	pipeline__push(ctx, data, size);
	return 0;
}

int side_read_capture(struct side *side, FILE *in, const struct pipeline_options *judging)
{
	struct pipeline *pipeline = pipeline__new(judging);
	struct sink *sink = sink_side__new(side);
	int err, finished;

	side->is_capture = true;
	if (!pipeline || !sink) {
		free(sink);
		pipeline__free(pipeline);
		return -ENOMEM;
	}
	err = pipeline__add_sink(pipeline, sink);
	if (!err)
		err = capture_read(in, side->path, push, pipeline);
	finished = pipeline__finish(pipeline);
	pipeline__free(pipeline);
	return err ? err : finished;
}
