/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A merger whose receivers keep what they get. Process 7 has GPU records from time 1 on. Times are
 * small numbers. Include after cmocka.h.
 */
#ifndef FBT_MERGE_FIXTURE_H
#define FBT_MERGE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpu/merge.h"

#define TIMEOUT	   10000
#define SEEN_MAX   64
#define RECORD_MAX 512

/* A step that was passed on, with the correlation ids of the records assigned to it. */
struct seen {
	uint64_t number;
	bool has_gpu;
	bool manual;
	struct step_gpu gpu; /* without its vectors, which are freed */
	size_t calls;
	char works[256]; /* "1 2 3": ordered by start */
	char apis[256];	 /* nested calls in brackets */
	size_t syncs;
	size_t overheads;
};

union gpu_record {
	struct fbt_header header;
	struct fbt_gpu_state state;
	struct fbt_gpu_work work;
	struct fbt_gpu_api api;
	struct fbt_gpu_sync sync;
	struct fbt_gpu_overhead overhead;
	struct fbt_gpu_flush flush;
};

struct fixture {
	struct merger *merger;
	struct window *window;
	struct seen steps[SEEN_MAX];
	size_t count;
	uint64_t numbers; /* number of steps that were pushed */
	char order[1024]; /* "s1 b1 b0": steps and batches in the order in which they came */
	char left[1024];  /* correlation ids of work outside of steps */
	char left_apis[1024];
	size_t left_syncs;
	size_t left_overheads;
	size_t given; /* number of records in all batches */
	union gpu_record list[RECORD_MAX];
	size_t list_count;
	bool is_listing;  /* records are kept in list */
	bool is_quiet;	  /* records are counted but not kept, because there are many */
	uint64_t left_ns; /* latest end of work outside of steps */
	int step_result;
	int gpu_result;
};

static inline void add_text(char *text, size_t size, const char *before, unsigned long number,
			    const char *behind)
{
	size_t length = strlen(text);

	assert_true(length + 32 < size);
	snprintf(text + length, size - length, "%s%s%lu%s", length ? " " : "", before, number,
		 behind);
}

static inline void list_works(char *text, size_t size, const gpu_work_vec *works)
{
	vec_for_each (work, works)
		add_text(text, size, "", work->correlation, "");
}

static inline void list_apis(char *text, size_t size, const gpu_api_vec *apis)
{
	vec_for_each (api, apis) {
		bool is_nested = api->header.flags & FBT_GPU_API_NESTED;

		add_text(text, size, is_nested ? "(" : "", api->correlation, is_nested ? ")" : "");
	}
}

static inline int keep_step(void *ctx, const struct window *window, struct step *step)
{
	struct fixture *fixture = ctx;
	struct seen *seen = &fixture->steps[fixture->is_quiet ? 0 : fixture->count];

	fixture->count++;
	if (fixture->is_quiet)
		return fixture->step_result;
	assert_true(fixture->count < SEEN_MAX);
	assert_ptr_equal(window, fixture->window);
	seen->number = step->number;
	seen->manual = step->manual;
	seen->calls = step->calls.count;
	add_text(fixture->order, sizeof(fixture->order), "s", step->number, "");
	if (!step->gpu)
		return fixture->step_result;
	seen->has_gpu = true;
	seen->gpu = *step->gpu;
	list_works(seen->works, sizeof(seen->works), &step->gpu->records.works);
	list_apis(seen->apis, sizeof(seen->apis), &step->gpu->records.apis);
	seen->syncs = step->gpu->records.syncs.count;
	seen->overheads = step->gpu->records.overheads.count;
	return fixture->step_result;
}

static inline int keep_batch(void *ctx, const struct window *window, const struct gpu_batch *batch)
{
	struct fixture *fixture = ctx;

	fixture->given += gpu_records_count(batch->records);
	vec_for_each (work, &batch->records->works) {
		if (!batch->step && work->end_ns > fixture->left_ns)
			fixture->left_ns = work->end_ns;
	}
	if (fixture->is_quiet)
		return fixture->gpu_result;
	add_text(fixture->order, sizeof(fixture->order), "b", batch->step, "");
	if (batch->step)
		return fixture->gpu_result;
	list_works(fixture->left, sizeof(fixture->left), &batch->records->works);
	list_apis(fixture->left_apis, sizeof(fixture->left_apis), &batch->records->apis);
	fixture->left_syncs += batch->records->syncs.count;
	fixture->left_overheads += batch->records->overheads.count;
	return fixture->gpu_result;
}

static inline void open_merger(struct fixture *fixture, bool strict)
{
	const struct merge_options options = {.strict = strict, .timeout_ns = TIMEOUT};
	const struct merge_output output = {keep_step, keep_batch, fixture};

	fixture->window = window__new();
	fixture->merger = merger__new(&options, &output);
	assert_non_null(fixture->window);
	assert_non_null(fixture->merger);
}

static inline void close_merger(struct fixture *fixture)
{
	merger__free(fixture->merger);
	window__free(fixture->window);
}

/* Pushes a record as the assembler does. */
static inline int take(struct fixture *fixture, const union gpu_record *record)
{
	struct gpu_table *table = &fixture->window->gpus;

	if (fixture->is_listing) {
		assert_true(fixture->list_count < RECORD_MAX);
		fixture->list[fixture->list_count++] = *record;
		return 0;
	}
	if (record->header.type == FBT_EVENT_GPU_STATE)
		assert_int_equal(gpu_table_set_state(table, &record->state, "", ""), 0);
	if (record->header.type == FBT_EVENT_GPU_FLUSH)
		assert_int_equal(gpu_table_set_flush(table, &record->flush), 0);
	return merger__push_gpu(fixture->merger, fixture->window, &record->header);
}

static inline void push_state(struct fixture *fixture, uint32_t tgid, enum fbt_gpu_status status,
			      uint64_t time_ns)
{
	union gpu_record record = {.state = {.header = {FBT_EVENT_GPU_STATE, 0, 48},
					     .tgid = tgid,
					     .status = status,
					     .time_ns = time_ns}};

	assert_int_equal(take(fixture, &record), 0);
}

/* A kernel launch by the thread. */
static inline struct fbt_gpu_api launch(uint32_t tid, uint32_t correlation, uint64_t start_ns,
					uint64_t end_ns)
{
	return (struct fbt_gpu_api){.header = {FBT_EVENT_GPU_API, 0, sizeof(struct fbt_gpu_api)},
				    .tgid = 7,
				    .tid = tid,
				    .start_ns = start_ns,
				    .end_ns = end_ns,
				    .correlation = correlation,
				    .api_class = FBT_GPU_API_LAUNCH};
}

static inline void push_api(struct fixture *fixture, struct fbt_gpu_api api)
{
	union gpu_record record = {.api = api};

	assert_int_equal(take(fixture, &record), 0);
}

static inline void push_launch(struct fixture *fixture, uint32_t tid, uint32_t correlation,
			       uint64_t start_ns, uint64_t end_ns)
{
	push_api(fixture, launch(tid, correlation, start_ns, end_ns));
}

static inline void push_class(struct fixture *fixture, uint32_t tid, uint32_t correlation,
			      uint64_t start_ns, uint64_t end_ns, enum fbt_gpu_api_class class)
{
	struct fbt_gpu_api api = launch(tid, correlation, start_ns, end_ns);

	api.api_class = class;
	push_api(fixture, api);
}

static inline void push_work(struct fixture *fixture, uint32_t correlation, uint64_t start_ns,
			     uint64_t end_ns)
{
	union gpu_record record = {.work = {.header = {FBT_EVENT_GPU_WORK, 0, 104},
					    .tgid = 7,
					    .start_ns = start_ns,
					    .end_ns = end_ns,
					    .stream = 7,
					    .correlation = correlation}};

	assert_int_equal(take(fixture, &record), 0);
}

static inline void push_flush(struct fixture *fixture, uint64_t time_ns)
{
	union gpu_record record = {
		.flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(record.flush)},
			  .tgid = 7,
			  .time_ns = time_ns}};

	assert_int_equal(take(fixture, &record), 0);
}

static inline int push_step_of(struct fixture *fixture, uint32_t tgid, uint32_t tid, uint32_t kind,
			       uint64_t start_ns, uint64_t end_ns)
{
	struct step step = {.number = ++fixture->numbers,
			    .record = {.header = {FBT_EVENT_STEP, 0, sizeof(struct fbt_step)},
				       .tgid = tgid,
				       .tid = tid,
				       .kind = kind,
				       .start_ns = start_ns,
				       .end_ns = end_ns,
				       .thread_ns = end_ns - start_ns}};

	return merger__push_step(fixture->merger, fixture->window, &step);
}

static inline void push_step(struct fixture *fixture, uint32_t tid, uint64_t start_ns,
			     uint64_t end_ns)
{
	assert_int_equal(push_step_of(fixture, 7, tid, 1, start_ns, end_ns), 0);
}

static inline const struct gpu_counts *counts(const struct fixture *fixture)
{
	return &gpu_table_find(&fixture->window->gpus, 7)->counts;
}

/* The step that was passed on at that index. */
static inline const struct seen *seen(const struct fixture *fixture, size_t index)
{
	assert_true(index < fixture->count);
	return &fixture->steps[index];
}

static inline void finish(struct fixture *fixture)
{
	assert_int_equal(merger__flush(fixture->merger, fixture->window), 0);
}

static inline int open_fixture(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	open_merger(fixture, false);
	push_state(fixture, 7, FBT_GPU_ARMED, 1);
	*state = fixture;
	return 0;
}

static inline int close_fixture(void **state)
{
	struct fixture *fixture = *state;

	close_merger(fixture);
	free(fixture);
	return 0;
}

#define MERGE_TEST(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

static inline void push_totals(struct fixture *fixture, uint64_t time_ns, uint64_t dropped,
			       uint64_t ring_lost, uint64_t no_buffer, uint64_t shim_ns)
{
	union gpu_record record = {
		.flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(record.flush)},
			  .tgid = 7,
			  .time_ns = time_ns,
			  .cupti_dropped = dropped,
			  .ring_lost = ring_lost,
			  .no_buffer = no_buffer,
			  .shim_ns = shim_ns}};

	assert_int_equal(take(fixture, &record), 0);
}

#endif
