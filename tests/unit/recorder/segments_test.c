/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include "base/clock.h"
#include "memfd_fixture.h"
#include "model/assemble.h"
#include "model/event.h"
#include "output/capture.h"
#include "recorder/facts.h"
#include "recorder/segments.h"
#include "stream_fixture.h"

#define SECOND	   NS_PER_S
#define STEPS_SEEN 200000

struct fixture {
	struct segments *segments;
	struct stream stream;
	struct assembler *assembler;
	uint64_t starts[STEPS_SEEN];
	size_t calls[STEPS_SEEN];
	bool complete[STEPS_SEEN];
	size_t steps;
	size_t manuals;
	char option[64]; /* the first one, if options come right after the window */
};

static int open_fixture(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int close_fixture(void **state)
{
	struct fixture *fixture = *state;

	segments__free(fixture->segments);
	assembler__free(fixture->assembler);
	free(fixture);
	return 0;
}

static void record(struct fixture *fixture, uint64_t span_ns)
{
	const struct segments_options options = {.bytes = SEGMENTS_BYTES_MIN, .span_ns = span_ns};

	assert_int_equal(segments__new(&fixture->segments, &options), 0);
}

/* Pushes what the stream has, and empties it. */
static void push(struct fixture *fixture, uint64_t now_ns)
{
	assert_int_equal(segments__push(fixture->segments, fixture->stream.bytes,
					fixture->stream.size, now_ns),
			 0);
	fixture->stream.size = 0;
}

static void begin(struct fixture *fixture, uint32_t detail)
{
	add_window(&fixture->stream, detail);
	add_target(&fixture->stream, 7, "engine");
	add_kind(&fixture->stream, 1, "decode", NULL);
	add_thread(&fixture->stream, 7, 70, "worker");
	push(fixture, 1000);
}

static int take_step(void *ctx, struct window *window, struct step *step)
{
	struct fixture *fixture = ctx;

	assert_true(fixture->steps < STEPS_SEEN);
	fixture->starts[fixture->steps] = step->record.start_ns;
	fixture->complete[fixture->steps] = step->complete;
	fixture->calls[fixture->steps++] = step->calls.count;
	return 0;
}

static void take_manual(void *ctx)
{
	struct fixture *fixture = ctx;

	fixture->manuals++;
}

static int take_records(void *ctx, const void *data, size_t size)
{
	struct fixture *fixture = ctx;
	const struct fbt_header *event;
	uint64_t records = 0;

	for (const char *at = data; size; at += event->size, size -= event->size) {
		assert_true(decode_event(at, size, &event) > 0);
		if (++records == 2 && event->type == FBT_EVENT_OPTIONS)
			snprintf(fixture->option, sizeof(fixture->option), "%s",
				 decode_string(event, 0));
		assert_int_equal(assembler__push(fixture->assembler, event), 0);
	}
	return 0;
}

/* Writes the last part, reads it as --replay does, and returns its window. */
static const struct window *replay(struct fixture *fixture, uint64_t last_ns, uint64_t end_ns,
				   struct segments_written *written)
{
	const struct assembler_output output = {
		.on_step = take_step, .on_manual = take_manual, .ctx = fixture};
	const struct segments_cut cut = {
		.tag = "pid7_99",
		.last_ns = last_ns,
		.end_ns = end_ns,
		.realtime_ns = 1000 * SECOND,
	};
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(segments__write(fixture->segments, file, &cut, written), 0);
	rewind(file);
	assembler__free(fixture->assembler);
	fixture->steps = 0;
	fixture->manuals = 0;
	fixture->assembler = assembler__new(&output);
	assert_non_null(fixture->assembler);
	assert_int_equal(capture_read(file, "x", take_records, fixture), 0);
	assert_int_equal(assembler__flush(fixture->assembler), 0);
	fclose(file);
	return assembler__window(fixture->assembler);
}

static void all_of_a_short_stream_is_written(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;
	struct segments_written written;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	add_step(&fixture->stream, 70, 1, 2000, 3000);
	add_step(&fixture->stream, 70, 1, 4000, 5000);
	push(fixture, 6000);
	window = replay(fixture, UINT64_MAX, 9000, &written);
	assert_string_equal(window->tag, "pid7_99");
	assert_string_equal(window->host, "box");
	assert_int_equal(window->record.start_ns, 1000);
	assert_int_equal(window->record.realtime_ns, 1000 * SECOND - 8000);
	assert_int_equal(window->end_ns, 9000);
	assert_false(window->cut_off);
	assert_string_equal(window__kind_name(window, 1), "decode");
	assert_string_equal(window__thread_name(window, 70), "worker");
	assert_string_equal(window__process(window, 7)->comm, "engine");
	assert_int_equal(fixture->steps, 2);
	assert_int_equal(written.steps, 2);
	assert_false(written.crowded);
	assert_int_equal(window->skipped_records, 0);
}

static void the_stream_goes_on_after_a_dump(void **state)
{
	struct fixture *fixture = *state;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	add_step(&fixture->stream, 70, 1, 2000, 3000);
	push(fixture, 3000);
	replay(fixture, UINT64_MAX, 9000, NULL);
	add_step(&fixture->stream, 70, 1, 4000, 5000);
	push(fixture, 5000);
	replay(fixture, UINT64_MAX, 9000, NULL);
	assert_int_equal(fixture->steps, 2);
}

static void the_last_seconds_have_whole_steps(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;
	struct fbt_step *step;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_ESCALATED);
	for (uint64_t i = 1; i <= 10; i++) {
		add_call(&fixture->stream, 70, i * SECOND + 100);
		add_call(&fixture->stream, 70, i * SECOND + 200);
		step = add_step(&fixture->stream, 70, 1, i * SECOND, i * SECOND + 500);
		step->sums[FBT_READ].calls = 2;
		push(fixture, i * SECOND + 500);
	}
	/* From the middle of step 8 on. */
	window = replay(fixture, 3 * SECOND - 300, 11 * SECOND, NULL);
	assert_int_equal(window->record.start_ns, 8 * SECOND);
	assert_int_equal(fixture->steps, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fixture->starts[i], (8 + i) * SECOND);
		assert_int_equal(fixture->calls[i], 2);
		assert_true(fixture->complete[i]);
	}
}

/* A replay of a dump has to judge as the trace did. */
static void options_come_right_after_the_window(void **state)
{
	static const char *const texts[] = {"cv-threshold=20"};
	struct fixture *fixture = *state;
	struct fbt_options *options;

	record(fixture, 0);
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	options = stream_add(&fixture->stream, FBT_EVENT_OPTIONS, sizeof(*options), texts, 1);
	options->count = 1;
	add_target(&fixture->stream, 7, "engine");
	add_kind(&fixture->stream, 1, "decode", NULL);
	push(fixture, 1000);
	for (uint64_t i = 1; i <= 5; i++) {
		add_step(&fixture->stream, 70, 1, i * SECOND, i * SECOND + 500);
		push(fixture, i * SECOND + 500);
	}
	replay(fixture, 2 * SECOND, 6 * SECOND, NULL);
	assert_string_equal(fixture->option, "cv-threshold=20");
}

static void add_lost(struct fixture *fixture, uint64_t steps)
{
	struct fbt_lost *lost =
		stream_add(&fixture->stream, FBT_EVENT_LOST, sizeof(*lost), NULL, 0);

	lost->count[FBT_LOST_STEPS] = steps;
}

static void losses_count_from_the_begin_of_the_part(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	add_lost(fixture, 5);
	add_step(&fixture->stream, 70, 1, SECOND, 2 * SECOND);
	push(fixture, 2 * SECOND);
	add_step(&fixture->stream, 70, 1, 3 * SECOND, 4 * SECOND);
	add_lost(fixture, 7);
	push(fixture, 4 * SECOND);
	window = replay(fixture, SECOND, 4 * SECOND, NULL);
	assert_int_equal(fixture->steps, 1);
	assert_int_equal(window__lost_total(window), 2);
	window = replay(fixture, UINT64_MAX, 4 * SECOND, NULL);
	assert_int_equal(window__lost_total(window), 7);
}

static void a_total_that_did_not_change_is_zero(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_cost *cost;
	const struct window *window;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	cost = stream_add(&fixture->stream, FBT_EVENT_COST, sizeof(*cost), NULL, 0);
	cost->step_ns = 900;
	cost->cpu_ns = 12345;
	cost->collections = 40;
	cost->collection_ns = 700;
	push(fixture, 1500);
	add_step(&fixture->stream, 70, 1, 3 * SECOND, 4 * SECOND);
	push(fixture, 4 * SECOND);
	window = replay(fixture, 1, 4 * SECOND, NULL);
	assert_int_equal(window->cost.step_ns, 900);
	assert_int_equal(window->cost.cpu_ns, 0);
	assert_int_equal(window->cost.collections, 0);
	assert_int_equal(window->cost.collection_ns, 700);
}

static void a_request_keeps_its_place(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_manual *manual;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	for (uint64_t i = 1; i <= 2; i++) {
		manual = stream_add(&fixture->stream, FBT_EVENT_MANUAL, sizeof(*manual), NULL, 0);
		manual->time_ns = i * SECOND;
		add_step(&fixture->stream, 70, 1, i * SECOND, i * SECOND + 1000);
	}
	push(fixture, 3 * SECOND);
	replay(fixture, 2 * SECOND, 3 * SECOND + 2000, NULL);
	assert_int_equal(fixture->manuals, 1);
	assert_int_equal(fixture->steps, 1);
}

/* More steps than there is room for, one each ms. */
static uint64_t fill(struct fixture *fixture, uint64_t first_ms, uint64_t count)
{
	uint64_t ms = first_ms;

	for (; ms < first_ms + count; ms++) {
		add_step(&fixture->stream, 70, 1, ms * NS_PER_MS, ms * NS_PER_MS + 1000);
		push(fixture, (ms + 1) * NS_PER_MS);
	}
	return ms;
}

static void the_oldest_give_way(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t count = 2 * SEGMENTS_BYTES_MIN / sizeof(struct fbt_step);
	struct segments_figures figures;
	struct segments_written written;
	const struct window *window;
	uint64_t ms;

	record(fixture, 3600 * SECOND);
	begin(fixture, FBT_DETAIL_PROBES);
	ms = fill(fixture, 1, count);
	figures = segments__figures(fixture->segments);
	assert_in_range(figures.bytes, SEGMENTS_BYTES_MIN / 16 * 14, SEGMENTS_BYTES_MIN);
	assert_true(figures.crowded_records);
	assert_int_equal(figures.dropped_records, 0);
	/* The four facts were in the first segment. */
	assert_int_equal(figures.crowded_records + figures.records, count + 4);
	window = replay(fixture, UINT64_MAX, ms * NS_PER_MS, &written);
	assert_true(written.crowded);
	assert_int_equal(fixture->steps, figures.steps);
	assert_int_equal(fixture->starts[0], window->record.start_ns);
	assert_int_equal(fixture->starts[fixture->steps - 1], (ms - 1) * NS_PER_MS);
	assert_string_equal(window__kind_name(window, 1), "decode");
	assert_string_equal(window__thread_name(window, 70), "worker");
	assert_string_equal(window__process(window, 7)->comm, "engine");
	assert_int_equal(window->skipped_records, 0);
	/* What was asked for is there. */
	replay(fixture, SECOND, ms * NS_PER_MS, &written);
	assert_false(written.crowded);
	assert_int_equal(fixture->steps, 1000);
}

static void the_old_are_dropped(void **state)
{
	struct fixture *fixture = *state;
	struct segments_figures figures;

	record(fixture, 10 * SECOND);
	begin(fixture, FBT_DETAIL_PROBES);
	fill(fixture, 1000, 30000);
	figures = segments__figures(fixture->segments);
	assert_in_range(figures.steps, 10000, 11000);
	assert_int_equal(figures.crowded_records, 0);
	segments__turn(fixture->segments, 100 * SECOND);
	figures = segments__figures(fixture->segments);
	assert_int_equal(figures.steps, 0);
	assert_int_equal(figures.bytes, 0);
	assert_int_equal(figures.oldest_ns, 0);
	assert_int_equal(figures.dropped_records, 30004);
	add_step(&fixture->stream, 70, 1, 100 * SECOND, 101 * SECOND);
	push(fixture, 101 * SECOND);
	assert_string_equal(window__kind_name(replay(fixture, UINT64_MAX, 101 * SECOND, NULL), 1),
			    "decode");
	assert_int_equal(fixture->steps, 1);
}

static void add_code(struct stream *stream, uint32_t tgid, uint32_t id, const char *function)
{
	const char *const strings[] = {function, "/usr/bin/python3.11", ""};
	struct fbt_code *code = stream_add(stream, FBT_EVENT_CODE, sizeof(*code), strings, 3);

	code->tgid = tgid;
	code->id = id;
}

static void ended_processes_are_forgotten(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;

	record(fixture, 15 * SECOND);
	begin(fixture, FBT_DETAIL_PROBES);
	add_target(&fixture->stream, 8, "other");
	/* Of a file that both map: it is sent once, with the process that was there first. */
	add_code(&fixture->stream, 7, 1, "take_gil");
	add_exit(&fixture->stream, 7, 2000);
	push(fixture, 2000);
	segments__turn(fixture->segments, 20 * SECOND);
	window = replay(fixture, UINT64_MAX, 21 * SECOND, NULL);
	assert_non_null(window__process(window, 7));
	fill(fixture, 30000, 1);
	segments__turn(fixture->segments, 60 * SECOND);
	window = replay(fixture, UINT64_MAX, 61 * SECOND, NULL);
	assert_null(window__process(window, 7));
	assert_string_equal(window__process(window, 8)->comm, "other");
	assert_string_equal(window__code(window, 1)->function, "take_gil");
}

static void a_new_window_begins_anew(void **state)
{
	struct fixture *fixture = *state;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	fill(fixture, 1, 3);
	add_end(&fixture->stream, SECOND);
	add_window(&fixture->stream, FBT_DETAIL_PROBES)->start_ns = 2 * SECOND;
	add_step(&fixture->stream, 70, 1, 2 * SECOND, 3 * SECOND);
	push(fixture, 3 * SECOND);
	assert_null(window__process(replay(fixture, UINT64_MAX, 4 * SECOND, NULL), 8));
	assert_int_equal(fixture->steps, 1);
}

static void nothing_is_written_before_a_window(void **state)
{
	struct fixture *fixture = *state;
	const struct segments_cut cut = {.tag = "x", .last_ns = SECOND, .end_ns = SECOND};
	FILE *file = tmpfile();

	record(fixture, 0);
	add_step(&fixture->stream, 70, 1, 2000, 3000);
	push(fixture, 3000);
	assert_int_equal(segments__write(fixture->segments, file, &cut, NULL), -ENODATA);
	fclose(file);
}

/* A file without room for one write: that of a record, after the header, the window and names. */
static ssize_t write_but_one(void *cookie, const char *data, size_t size)
{
	int *writes = cookie;

	errno = ENOSPC;
	return ++*writes == 6 ? 0 : (ssize_t)size;
}

static void a_dump_with_a_hole_is_none(void **state)
{
	struct fixture *fixture = *state;
	const struct segments_cut cut = {.tag = "x", .last_ns = UINT64_MAX, .end_ns = 9000};
	int writes = 0;
	FILE *file = fopencookie(&writes, "w", (cookie_io_functions_t){.write = write_but_one});

	assert_non_null(file);
	setvbuf(file, NULL, _IONBF, 0);
	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	add_step(&fixture->stream, 70, 1, 2000, 3000);
	add_step(&fixture->stream, 70, 1, 4000, 5000);
	push(fixture, 6000);
	assert_int_equal(segments__write(fixture->segments, file, &cut, NULL), -ENOSPC);
	fclose(file);
}

static void invalid_records_are_left_out(void **state)
{
	struct fixture *fixture = *state;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	add_step(&fixture->stream, 70, FBT_KIND_COUNT, 2000, 3000);
	stream_add(&fixture->stream, 9999, 64, NULL, 0);
	add_step(&fixture->stream, 70, 1, 4000, 5000);
	push(fixture, 6000);
	assert_int_equal(replay(fixture, UINT64_MAX, 9000, NULL)->skipped_records, 0);
	assert_int_equal(fixture->steps, 1);
}

static void a_hang_is_in_the_window(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;
	struct fbt_hang *hang;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_PROBES);
	fill(fixture, 1, 100);
	hang = stream_add(&fixture->stream, FBT_EVENT_HANG, sizeof(*hang), NULL, 0);
	hang->tgid = 7;
	hang->tid = 70;
	hang->kind = 1;
	hang->step_start_ns = 2 * SECOND;
	hang->time_ns = 12 * SECOND;
	push(fixture, 12 * SECOND);
	window = replay(fixture, SECOND, 12 * SECOND + 1000, NULL);
	assert_int_equal(window->hang_count, 1);
	assert_int_equal(window->record.start_ns, 2 * SECOND);
}

/* Sums of all its life would be taken for those of the window. */
static void tables_of_older_processes_are_left_out(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;
	struct fbt_thread_use *use;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_ALL);
	add_step(&fixture->stream, 70, 1, 50 * SECOND, 51 * SECOND);
	add_target(&fixture->stream, 8, "young")->start_ns = 51 * SECOND;
	add_table(&fixture->stream, 7, 0, 1000);
	add_table(&fixture->stream, 8, 0, 10);
	for (uint32_t tid = 70; tid < 72; tid++) {
		use = stream_add(&fixture->stream, FBT_EVENT_THREAD_USE, sizeof(*use), NULL, 0);
		use->tgid = 7;
		use->tid = tid;
		use->traced_ns = tid == 70 ? 52 * SECOND : SECOND;
	}
	push(fixture, 52 * SECOND);
	window = replay(fixture, 2 * SECOND, 52 * SECOND, NULL);
	assert_int_equal(window__process(window, 7)->table.rows.count, 0);
	assert_int_equal(window__process(window, 8)->table.rows.count, 1);
	assert_int_equal(window__process(window, 7)->threads.threads.count, 1);
	assert_int_equal(window__process(window, 7)->threads.threads.items[0].tid, 71);
}

/* What a thread did that ended early in the part was mostly before it. */
static void threads_that_ended_early_are_left_out(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;

	record(fixture, 0);
	begin(fixture, FBT_DETAIL_ALL);
	for (uint64_t at = 1; at < 100; at++) {
		struct fbt_thread_use *use;

		add_step(&fixture->stream, 70, 1, at * SECOND, at * SECOND + 10);
		if (at != 52 && at != 95)
			continue;
		use = stream_add(&fixture->stream, FBT_EVENT_THREAD_USE, sizeof(*use), NULL, 0);
		use->tgid = 7;
		use->tid = (__u32)at;
		use->traced_ns = 40 * SECOND;
	}
	push(fixture, 100 * SECOND);
	window = replay(fixture, 50 * SECOND, 100 * SECOND, NULL);
	assert_int_equal(window__process(window, 7)->threads.threads.count, 1);
	assert_int_equal(window__process(window, 7)->threads.threads.items[0].tid, 95);
	window = replay(fixture, 100 * SECOND, 100 * SECOND, NULL);
	assert_int_equal(window__process(window, 7)->threads.threads.count, 2);
}

static void names_make_room_for_names(void **state)
{
	struct fixture *fixture = *state;
	struct facts *facts = facts__new(4096);
	const char *const strings[] = {"socket:[123456]"};
	struct fbt_file *file;

	assert_non_null(facts);
	add_kind(&fixture->stream, 1, "decode", NULL);
	assert_int_equal(facts__put(facts, (struct fbt_header *)fixture->stream.bytes), 0);
	fixture->stream.size = 0;
	add_code(&fixture->stream, 7, 1, "take_gil");
	assert_int_equal(facts__put(facts, (struct fbt_header *)fixture->stream.bytes), 0);
	for (uint32_t id = 1; id <= 500; id++) {
		fixture->stream.size = 0;
		file = stream_add(&fixture->stream, FBT_EVENT_FILE, sizeof(*file), strings, 1);
		file->id = id;
		assert_int_equal(facts__put(facts, &file->header), 0);
		assert_true(facts__bytes(facts) <= 4096);
	}
	assert_int_equal(facts__at(facts, 0)->type, FBT_EVENT_KIND);
	/* Code is sent once: files go first, though they came later. */
	assert_int_equal(facts__at(facts, 1)->type, FBT_EVENT_CODE);
	assert_non_null(facts__find(facts, &file->header));
	file->id = 1;
	assert_null(facts__find(facts, &file->header));
	assert_in_range(facts__dropped(facts), 400, 499);
	facts__free(facts);
}

static bool has_files(void *ctx)
{
	struct fixture *fixture = ctx;
	const struct segments_options options = {.bytes = SEGMENTS_BYTES_MIN, .span_ns = SECOND};

	return !segments__new(&fixture->segments, &options);
}

static void its_files_are_not_executable_where_they_must_not_be(void **state)
{
	assert_true(holds_with_noexec_memfds(has_files, *state));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
	const struct CMUnitTest tests[] = {
		TEST(all_of_a_short_stream_is_written),
		TEST(the_stream_goes_on_after_a_dump),
		TEST(the_last_seconds_have_whole_steps),
		TEST(options_come_right_after_the_window),
		TEST(losses_count_from_the_begin_of_the_part),
		TEST(a_total_that_did_not_change_is_zero),
		TEST(a_request_keeps_its_place),
		TEST(the_oldest_give_way),
		TEST(the_old_are_dropped),
		TEST(ended_processes_are_forgotten),
		TEST(a_new_window_begins_anew),
		TEST(nothing_is_written_before_a_window),
		TEST(a_dump_with_a_hole_is_none),
		TEST(invalid_records_are_left_out),
		TEST(a_hang_is_in_the_window),
		TEST(tables_of_older_processes_are_left_out),
		TEST(threads_that_ended_early_are_left_out),
		TEST(names_make_room_for_names),
		TEST(its_files_are_not_executable_where_they_must_not_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
