/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "judge/evidence.h"
#include "model/assemble.h"
#include "model/event.h"
#include "output/safe_file.h"

struct output_state {
	struct sink *sink;
	int err; /* why it is no longer used; 0: it is in use */
	bool finished;
};

struct pipeline {
	struct assembler *assembler;
	struct merger *merger;
	struct classifier *classifier;
	struct evidence *evidence;
	struct iterations *iterations;
	VEC(struct output_state) outputs;
	struct pipeline_watch watch;
	size_t items; /* since the last call of the watch */
	int first_err;
	bool assembler_failed; /* a failure was logged */
	bool manual;	       /* escalate the next step that ends */
	bool ended;
};

/* -ETIMEDOUT comes from timed_write, where it is not about a connection, as strerror would say. */
static const char *failure_text(int err)
{
	return err == -ETIMEDOUT ? "nobody reads it" : strerror(-err);
}

/* Takes a sink that has failed out of use. */
static void check_sink(struct pipeline *pipeline, struct output_state *output, int err)
{
	const char *name = output->sink->name;

	if (!err)
		return;
	output->err = err;
	keep_first(&pipeline->first_err, err);
	log_err("%s: %s: the %s ends here, other outputs continue%s", name, failure_text(err), name,
		safe_file_advice(-err));
}

/* Calls a function of every sink that has it and is in use. */
#define call_sinks(pipeline, verb, ...)                                                            \
	vec_for_each (output, &(pipeline)->outputs) {                                              \
		if (!output->err && output->sink->verb)                                            \
			check_sink(pipeline, output,                                               \
				   output->sink->verb(output->sink, ##__VA_ARGS__));               \
	}

/* Counts what the sinks were given, and calls the watch when it is due. */
static void count_items(struct pipeline *pipeline, size_t items)
{
	pipeline->items += items;
	if (!pipeline->watch.look || pipeline->items < PIPELINE_WATCH_ITEMS)
		return;
	pipeline->items = 0;
	pipeline->watch.look(pipeline->watch.ctx);
}

static int write_step(void *ctx, const struct window *window, struct step *step)
{
	const struct escalation *escalation = NULL;
	struct pipeline *pipeline = ctx;
	int err, result, joined;

	if (step->manual)
		classifier__request_manual(pipeline->classifier);
	err = classifier__judge(pipeline->classifier, window, step, &escalation);
	step->class = *classifier__class(pipeline->classifier);
	call_sinks(pipeline, write_step, window, step);
	if (escalation)
		call_sinks(pipeline, write_escalation, window, step, escalation);
	count_items(pipeline, 1);
	joined = iterations__add(pipeline->iterations, window, step);
	result = evidence__push(pipeline->evidence, window, step,
				escalation && escalation_is_shown(escalation));
	keep_first(&err, joined);
	keep_first(&err, result);
	return err;
}

static int write_iteration(void *ctx, const struct window *window,
			   const struct iteration *iteration)
{
	struct pipeline *pipeline = ctx;

	call_sinks(pipeline, write_iteration, window, iteration);
	count_items(pipeline, 1);
	return 0;
}

static int write_calls(void *ctx, const struct window *window, const struct step *step)
{
	struct pipeline *pipeline = ctx;

	call_sinks(pipeline, write_calls, window, step);
	count_items(pipeline, step->calls.count);
	return 0;
}

static int write_call(void *ctx, const struct window *window, const struct fbt_call *call)
{
	struct pipeline *pipeline = ctx;

	call_sinks(pipeline, write_call, window, call);
	count_items(pipeline, 1);
	return 0;
}

static int write_gpu(void *ctx, const struct window *window, const struct gpu_batch *batch)
{
	struct pipeline *pipeline = ctx;

	call_sinks(pipeline, write_gpu, window, batch);
	count_items(pipeline, batch->records->works.count + batch->records->apis.count);
	return 0;
}

/*
 * The user asks for the next step that ends. That is not the next step that the merger passes on.
 */
static void request_manual(void *ctx)
{
	struct pipeline *pipeline = ctx;

	pipeline->manual = true;
}

static int write_hang(void *ctx, const struct window *window, const struct fbt_hang *hang)
{
	struct pipeline *pipeline = ctx;

	call_sinks(pipeline, write_hang, window, hang);
	return 0;
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

	keep_first(&err, iterations__flush(pipeline->iterations, window));
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
					     .on_hang = write_hang,
					     .on_gpu = merge_gpu,
					     .on_end = merge_end,
					     .ctx = pipeline,
					     .is_endless = options->is_endless};
	struct merge_output merged = {write_step, write_gpu, pipeline};

	if (!pipeline)
		return NULL;
	pipeline->assembler = assembler__new(&assembled);
	pipeline->merger = merger__new(&options->merge, &merged);
	pipeline->classifier = classifier__new(&options->classify);
	pipeline->evidence = evidence__new(options->context, write_calls, pipeline);
	pipeline->iterations = iterations__new(write_iteration, pipeline);
	if (!pipeline->assembler || !pipeline->merger || !pipeline->classifier ||
	    !pipeline->evidence || !pipeline->iterations) {
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
	iterations__free(pipeline->iterations);
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

/* Errors of sinks are handled in call_sinks, so this one means a lack of memory. */
static void check_assembler(struct pipeline *pipeline, int err)
{
	if (!err)
		return;
	keep_first(&pipeline->first_err, err);
	if (!pipeline->assembler_failed)
		log_err("steps: %s: some records were dropped", strerror(-err));
	pipeline->assembler_failed = true;
}

void pipeline__push(struct pipeline *pipeline, const void *data, size_t size)
{
	const char *position = data;
	const struct fbt_header *event;
	long taken;

	call_sinks(pipeline, write_records, data, size);
	while (size) {
		taken = decode_event(position, size, &event);
		if (taken > 0)
			check_assembler(pipeline, assembler__push(pipeline->assembler, event));
		else
			assembler__count_skipped(pipeline->assembler);
		/* Without a valid header the start of the next record is unknown. */
		if (!event)
			return;
		position += event->size;
		size -= event->size;
	}
}

static struct output_state *find_output(const struct pipeline *pipeline, const struct sink *sink)
{
	vec_for_each (output, &pipeline->outputs) {
		if (output->sink == sink)
			return output;
	}
	return NULL;
}

static void finish_output(struct pipeline *pipeline, struct output_state *output,
			  const struct window *window)
{
	if (output->err || output->finished)
		return;
	output->finished = true;
	if (output->sink->finish)
		check_sink(pipeline, output,
			   output->sink->finish(output->sink, window, pipeline->classifier));
}

bool pipeline__end_sink(struct pipeline *pipeline, const struct sink *sink, int err)
{
	struct output_state *output = find_output(pipeline, sink);
	struct window so_far;

	if (!output || output->err)
		return false;
	if (sink->is_document) {
		so_far = assembler__window_so_far(pipeline->assembler);
		finish_output(pipeline, output,
			      pipeline->ended ? pipeline__window(pipeline) : &so_far);
	}
	if (!output->err)
		output->err = err;
	keep_first(&pipeline->first_err, err);
	return true;
}

const char *pipeline__end_reason(const struct pipeline *pipeline, const struct sink *sink)
{
	const struct output_state *output = find_output(pipeline, sink);

	return output && output->err ? failure_text(output->err) : NULL;
}

void pipeline__finish_files(struct pipeline *pipeline)
{
	if (!pipeline->ended)
		check_assembler(pipeline, assembler__flush(pipeline->assembler));
	pipeline->ended = true;
	vec_for_each (output, &pipeline->outputs) {
		if (output->sink->is_file)
			finish_output(pipeline, output, pipeline__window(pipeline));
	}
}

int pipeline__finish(struct pipeline *pipeline)
{
	pipeline__finish_files(pipeline);
	vec_for_each (output, &pipeline->outputs)
		finish_output(pipeline, output, pipeline__window(pipeline));
	return pipeline->first_err;
}

void pipeline__wait(struct pipeline *pipeline)
{
	vec_for_each (output, &pipeline->outputs) {
		if (!output->err && output->sink->wait)
			output->sink->wait(output->sink);
	}
}

void pipeline__poll(struct pipeline *pipeline)
{
	call_sinks(pipeline, poll);
}

void pipeline__watch(struct pipeline *pipeline, struct pipeline_watch watch)
{
	pipeline->watch = watch;
}

const struct window *pipeline__window(const struct pipeline *pipeline)
{
	return assembler__window(pipeline->assembler);
}

bool pipeline__has_failed(const struct pipeline *pipeline)
{
	return pipeline->first_err != 0;
}
