/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "assemble.h"
#include "decode.h"
#include "evidence.h"
#include "log.h"
#include "vec.h"

struct output_state {
	struct sink *sink;
	bool failed;
	int err; /* why */
};

struct pipeline {
	struct assembler *assembler;
	struct merger *merger;
	struct classifier *classifier;
	struct evidence *evidence;
	VEC(struct output_state) outputs;
	int first_err;
	bool assembler_failed; /* and it was said */
	bool manual;	       /* the next step that ends is to be escalated */
	bool finished;
};

static void keep_first_error(struct pipeline *pipeline, int err)
{
	if (!pipeline->first_err)
		pipeline->first_err = err;
}

/* A wait that was given up is nobody's connection. */
static const char *failure_text(int err)
{
	return err == -ETIMEDOUT ? "nobody reads it" : strerror(-err);
}

static const char *failure_advice(int err)
{
	if (err == -EFBIG)
		return "; raise ulimit -f or trace for a shorter time";
	if (err == -ENOSPC || err == -EDQUOT)
		return "; free some space or name a file elsewhere";
	return "";
}

/* Puts an output that failed out of use. */
static void check_sink(struct pipeline *pipeline, struct output_state *output, int err)
{
	if (!err)
		return;
	output->failed = true;
	output->err = err;
	keep_first_error(pipeline, err);
	log_err("%s: %s: the %s ends here, other outputs go on%s", output->sink->name,
		failure_text(err), output->sink->name, failure_advice(err));
}

static void write_escalation(struct pipeline *pipeline, const struct window *window,
			     const struct step *step, const struct escalation *escalation)
{
	vec_for_each (output, &pipeline->outputs) {
		if (!output->failed && output->sink->write_escalation)
			check_sink(pipeline, output,
				   output->sink->write_escalation(output->sink, window, step,
								  escalation));
	}
}

static int write_step(void *ctx, const struct window *window, struct step *step)
{
	const struct escalation *escalation = NULL;
	struct pipeline *pipeline = ctx;
	int err, result;

	if (step->manual)
		classifier__request_manual(pipeline->classifier);
	err = classifier__judge(pipeline->classifier, window, step, &escalation);
	vec_for_each (output, &pipeline->outputs) {
		if (!output->failed && output->sink->write_step)
			check_sink(pipeline, output,
				   output->sink->write_step(output->sink, window, step));
	}
	if (escalation)
		write_escalation(pipeline, window, step, escalation);
	result = evidence__push(pipeline->evidence, window, step,
				escalation && escalation_is_shown(escalation));
	return err ? err : result;
}

static int write_calls(void *ctx, const struct window *window, const struct step *step)
{
	struct pipeline *pipeline = ctx;

	vec_for_each (output, &pipeline->outputs) {
		if (!output->failed && output->sink->write_calls)
			check_sink(pipeline, output,
				   output->sink->write_calls(output->sink, window, step));
	}
	return 0;
}

static int write_call(void *ctx, const struct window *window, const struct fbt_call *call)
{
	struct pipeline *pipeline = ctx;

	vec_for_each (output, &pipeline->outputs) {
		if (!output->failed && output->sink->write_call)
			check_sink(pipeline, output,
				   output->sink->write_call(output->sink, window, call));
	}
	return 0;
}

static int write_gpu(void *ctx, const struct window *window, const struct gpu_batch *batch)
{
	struct pipeline *pipeline = ctx;

	vec_for_each (output, &pipeline->outputs) {
		if (!output->failed && output->sink->write_gpu)
			check_sink(pipeline, output,
				   output->sink->write_gpu(output->sink, window, batch));
	}
	return 0;
}

/* Of the next step that ends, not of the next that merge lets go. */
static void request_manual(void *ctx)
{
	struct pipeline *pipeline = ctx;

	pipeline->manual = true;
}

static int merge_step(void *ctx, struct window *window, struct step *step)
{
	struct pipeline *pipeline = ctx;

	step->manual = pipeline->manual;
	pipeline->manual = false;
	return merger__push_step(pipeline->merger, window, step);
}

static int merge_gpu(void *ctx, struct window *window, const struct fbt_header *event)
{
	struct pipeline *pipeline = ctx;

	return merger__push_gpu(pipeline->merger, window, event);
}

static int merge_end(void *ctx, struct window *window)
{
	struct pipeline *pipeline = ctx;
	int err = merger__flush(pipeline->merger, window);

	if (pipeline->manual)
		classifier__request_manual(pipeline->classifier);
	return err;
}

struct pipeline *pipeline__new(const struct pipeline_options *options)
{
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	struct assembler_output assembled = {.on_step = merge_step,
					     .on_call = write_call,
					     .on_manual = request_manual,
					     .on_gpu = merge_gpu,
					     .on_end = merge_end,
					     .ctx = pipeline};
	struct merge_output merged = {write_step, write_gpu, pipeline};

	if (!pipeline)
		return NULL;
	pipeline->assembler = assembler__new(&assembled);
	pipeline->merger = merger__new(&options->merge, &merged);
	pipeline->classifier = classifier__new(&options->classify);
	pipeline->evidence = evidence__new(options->context, write_calls, pipeline);
	if (!pipeline->assembler || !pipeline->merger || !pipeline->classifier ||
	    !pipeline->evidence) {
		pipeline__free(pipeline);
		return NULL;
	}
	return pipeline;
}

void pipeline__free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	vec_for_each (output, &pipeline->outputs)
		output->sink->free(output->sink);
	vec_free(&pipeline->outputs);
	evidence__free(pipeline->evidence);
	classifier__free(pipeline->classifier);
	merger__free(pipeline->merger);
	assembler__free(pipeline->assembler);
	free(pipeline);
}

int pipeline__add_sink(struct pipeline *pipeline, struct sink *sink)
{
	struct output_state output = {.sink = sink};
	int err;

	err = vec_push(&pipeline->outputs, output);
	if (err)
		sink->free(sink);
	return err;
}

/* The sinks' errors end in write_step and write_call: what is left is a lack of memory. */
static void check_assembler(struct pipeline *pipeline, int err)
{
	if (!err)
		return;
	keep_first_error(pipeline, err);
	if (!pipeline->assembler_failed)
		log_err("steps: %s: some records were not taken", strerror(-err));
	pipeline->assembler_failed = true;
}

void pipeline__push(struct pipeline *pipeline, const void *data, size_t size)
{
	const char *position = data;
	const struct fbt_header *event;
	long taken;

	while (size) {
		taken = decode_event(position, size, &event);
		if (taken > 0)
			check_assembler(pipeline, assembler__push(pipeline->assembler, event));
		else
			assembler__count_skipped(pipeline->assembler);
		/* Without a sound header nobody knows where the next record begins. */
		if (!event)
			return;
		position += event->size;
		size -= event->size;
	}
}

bool pipeline__end_sink(struct pipeline *pipeline, const struct sink *sink, int err, bool finish)
{
	vec_for_each (output, &pipeline->outputs) {
		if (output->sink != sink || output->failed)
			continue;
		if (finish)
			check_sink(pipeline, output,
				   output->sink->finish(output->sink, pipeline__window(pipeline),
							pipeline->classifier));
		output->failed = true;
		output->err = output->err ? output->err : err;
		keep_first_error(pipeline, err);
		return true;
	}
	return false;
}

const char *pipeline__end_reason(const struct pipeline *pipeline, const struct sink *sink)
{
	vec_for_each (output, &pipeline->outputs) {
		if (output->sink == sink && output->failed)
			return failure_text(output->err);
	}
	return NULL;
}

int pipeline__finish(struct pipeline *pipeline)
{
	const struct window *window = pipeline__window(pipeline);

	if (pipeline->finished)
		return pipeline->first_err;
	pipeline->finished = true;
	check_assembler(pipeline, assembler__flush(pipeline->assembler));
	vec_for_each (output, &pipeline->outputs) {
		if (!output->failed && output->sink->finish)
			check_sink(
				pipeline, output,
				output->sink->finish(output->sink, window, pipeline->classifier));
	}
	return pipeline->first_err;
}

void pipeline__wait(struct pipeline *pipeline)
{
	vec_for_each (output, &pipeline->outputs) {
		if (!output->failed && output->sink->wait)
			output->sink->wait(output->sink);
	}
}

void pipeline__poll(struct pipeline *pipeline)
{
	vec_for_each (output, &pipeline->outputs) {
		if (!output->failed && output->sink->poll)
			check_sink(pipeline, output, output->sink->poll(output->sink));
	}
}

const struct window *pipeline__window(const struct pipeline *pipeline)
{
	return assembler__window(pipeline->assembler);
}

bool pipeline__has_failed(const struct pipeline *pipeline)
{
	return pipeline->first_err != 0;
}
