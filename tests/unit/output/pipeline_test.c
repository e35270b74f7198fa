/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "output/pipeline.h"
#include "stream_fixture.h"

#define LOG_MAX 64

/* A sink that writes one letter into a log for each call. */
struct letter_sink {
	struct sink sink;
	char letter;
	char *log;
	int step_result;
	int call_result;
	int finish_result;
	uint64_t end_ns; /* the window's, at the end */
	bool cut_off;
};

struct fixture {
	struct pipeline *pipeline;
	struct stream stream;
	char log[LOG_MAX];
	char said[1024]; /* stderr of quietly() */
};

static int note(struct letter_sink *sink, char what, int result)
{
	size_t length = strlen(sink->log);

	assert_true(length + 3 < LOG_MAX);
	sink->log[length] = sink->letter;
	sink->log[length + 1] = what;
	return result;
}

static int letter_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct letter_sink *self = (struct letter_sink *)sink;

	return note(self, 's', self->step_result);
}

static int letter_call(struct sink *sink, const struct window *window, const struct fbt_call *call)
{
	struct letter_sink *self = (struct letter_sink *)sink;

	return note(self, 'c', self->call_result);
}

static int letter_finish(struct sink *sink, const struct window *window,
			 const struct classifier *classifier)
{
	struct letter_sink *self = (struct letter_sink *)sink;

	self->end_ns = window->end_ns;
	self->cut_off = window->cut_off;
	return note(self, window->end_ns ? 'f' : '?', self->finish_result);
}

static void letter_wait(struct sink *sink)
{
	note((struct letter_sink *)sink, 'w', 0);
}

static void letter_free(struct sink *sink)
{
	free(sink);
}

static struct letter_sink *add_letter(struct fixture *fixture, char letter)
{
	struct letter_sink *sink = calloc(1, sizeof(*sink));

	assert_non_null(sink);
	sink->sink = (struct sink){
		.name = "trace",
		.write_step = letter_step,
		.write_call = letter_call,
		.finish = letter_finish,
		.wait = letter_wait,
		.free = letter_free,
	};
	sink->letter = letter;
	sink->log = fixture->log;
	assert_int_equal(pipeline__add_sink(fixture->pipeline, &sink->sink), 0);
	return sink;
}

static int open_fixture(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->pipeline = pipeline__new(
		&(struct pipeline_options){.classify = classify_default_options(), .context = 1});
	assert_non_null(fixture->pipeline);
	*state = fixture;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *fixture = *state;

	pipeline__free(fixture->pipeline);
	free(fixture);
	return 0;
}

static void push(struct fixture *fixture)
{
	pipeline__push(fixture->pipeline, fixture->stream.bytes, fixture->stream.size);
}

/* Pushes and finishes with stderr caught in fixture->said. */
static int run_quietly(struct fixture *fixture)
{
	int kept = dup(STDERR_FILENO);
	int pipe_fds[2];
	ssize_t size;
	int err;

	assert_int_equal(pipe(pipe_fds), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	push(fixture);
	err = pipeline__finish(fixture->pipeline);
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(pipe_fds[1]);
	size = read(pipe_fds[0], fixture->said, sizeof(fixture->said) - 1);
	fixture->said[size > 0 ? size : 0] = '\0';
	close(pipe_fds[0]);
	return err;
}

static void add_two_steps(struct fixture *fixture)
{
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	add_step(&fixture->stream, 7, 1, 1000, 2000);
	add_step(&fixture->stream, 7, 1, 2000, 3000);
}

static uint64_t skipped(const struct fixture *fixture)
{
	return pipeline__window(fixture->pipeline)->skipped_records;
}

static void pipeline_free_takes_null(void **state)
{
	pipeline__free(NULL);
}

static void a_sink_that_fails_is_left_out_and_the_others_go_on(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A')->step_result = -ENOSPC;
	add_letter(fixture, 'B');
	add_two_steps(fixture);
	assert_int_equal(run_quietly(fixture), -ENOSPC);
	assert_string_equal(fixture->log, "AsBsBsBf");
	assert_true(pipeline__has_failed(fixture->pipeline));
}

static void a_sink_that_fails_is_named_once_with_what_to_do(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A')->step_result = -ENOSPC;
	add_two_steps(fixture);
	run_quietly(fixture);
	assert_string_equal(fixture->said,
			    "ferrum-bpftrace: trace: No space left on device: the trace ends here, "
			    "other outputs continue; free some space or name a file elsewhere\n");
}

static void a_sink_that_fails_at_a_call_is_left_out(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A')->call_result = -EIO;
	add_window(&fixture->stream, FBT_DETAIL_ALL);
	add_call(&fixture->stream, 7, 1100);
	add_call(&fixture->stream, 7, 1200);
	assert_int_equal(run_quietly(fixture), -EIO);
	assert_string_equal(fixture->log, "Ac");
}

static void the_first_of_several_errors_is_returned(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A')->finish_result = -EIO;
	add_letter(fixture, 'B')->step_result = -ENOSPC;
	add_two_steps(fixture);
	assert_int_equal(run_quietly(fixture), -ENOSPC);
}

static void finish_twice_finishes_once(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A')->finish_result = -EIO;
	add_letter(fixture, 'B');
	add_two_steps(fixture);
	assert_int_equal(run_quietly(fixture), -EIO);
	assert_int_equal(pipeline__finish(fixture->pipeline), -EIO);
	assert_string_equal(fixture->log, "AsBsAsBsAfBf");
}

static void a_record_with_bad_contents_is_counted_and_skipped(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A');
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	add_step(&fixture->stream, 7, 1, 1000, 900);
	add_step(&fixture->stream, 7, 1, 2000, 3000);
	push(fixture);
	assert_string_equal(fixture->log, "As");
	assert_int_equal(skipped(fixture), 1);
}

static void a_record_of_an_unknown_type_is_counted_and_skipped(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A');
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	stream_add(&fixture->stream, 99, 24, NULL, 0);
	add_step(&fixture->stream, 7, 1, 2000, 3000);
	push(fixture);
	assert_string_equal(fixture->log, "As");
	assert_int_equal(skipped(fixture), 1);
}

static void an_impossible_header_ends_its_block_only(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A');
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	push(fixture);
	fixture->stream.size = 0;
	add_step(&fixture->stream, 7, 1, 1000, 2000)->header.size = 1;
	add_step(&fixture->stream, 7, 1, 2000, 3000);
	push(fixture);
	assert_string_equal(fixture->log, "");
	assert_int_equal(skipped(fixture), 1);

	fixture->stream.size = 0;
	add_step(&fixture->stream, 7, 1, 3000, 4000);
	push(fixture);
	assert_string_equal(fixture->log, "As");
}

static void a_block_that_is_cut_off_is_counted(void **state)
{
	struct fixture *fixture = *state;

	add_two_steps(fixture);
	fixture->stream.size -= 8;
	push(fixture);
	assert_int_equal(skipped(fixture), 1);
	assert_int_equal(pipeline__window(fixture->pipeline)->steps, 1);
}

static void an_empty_block_is_no_error(void **state)
{
	struct fixture *fixture = *state;

	push(fixture);
	assert_int_equal(skipped(fixture), 0);
	assert_false(pipeline__has_failed(fixture->pipeline));
}

static void a_sink_without_write_call_gets_none(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A')->sink.write_call = NULL;
	add_letter(fixture, 'B');
	add_window(&fixture->stream, FBT_DETAIL_ALL);
	add_call(&fixture->stream, 7, 1100);
	push(fixture);
	assert_int_equal(pipeline__finish(fixture->pipeline), 0);
	assert_string_equal(fixture->log, "BcAfBf");
}

static void sinks_are_served_in_the_order_they_were_added(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A');
	add_letter(fixture, 'B');
	add_two_steps(fixture);
	push(fixture);
	assert_int_equal(pipeline__finish(fixture->pipeline), 0);
	assert_string_equal(fixture->log, "AsBsAsBsAfBf");
}

static void files_are_finished_before_the_others(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A');
	add_letter(fixture, 'B')->sink.is_file = true;
	add_two_steps(fixture);
	push(fixture);
	pipeline__finish_files(fixture->pipeline);
	assert_string_equal(fixture->log, "AsBsAsBsBf");
	assert_int_equal(pipeline__finish(fixture->pipeline), 0);
	assert_string_equal(fixture->log, "AsBsAsBsBfAf");
}

static void count_looks(void *ctx)
{
	int *looks = ctx;

	++*looks;
}

static void the_watch_looks_after_so_many_items(void **state)
{
	struct fixture *fixture = *state;
	int looks = 0;

	pipeline__watch(fixture->pipeline, (struct pipeline_watch){count_looks, &looks});
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	push(fixture);
	for (uint64_t i = 0; i < 2 * PIPELINE_WATCH_ITEMS; i++) {
		fixture->stream.size = 0;
		add_step(&fixture->stream, 7, 1, 1000 * i, 1000 * i + 500);
		assert_int_equal(looks, i / PIPELINE_WATCH_ITEMS);
		push(fixture);
	}
	assert_int_equal(looks, 2);
}

static void sinks_are_waited_for_after_the_end_if_they_did_not_fail(void **state)
{
	struct fixture *fixture = *state;

	add_letter(fixture, 'A')->finish_result = -EIO;
	add_letter(fixture, 'B')->sink.wait = NULL;
	add_letter(fixture, 'C');
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	assert_int_equal(run_quietly(fixture), -EIO);
	assert_string_equal(fixture->log, "AfBfCf");
	pipeline__wait(fixture->pipeline);
	assert_string_equal(fixture->log, "AfBfCfCw");
}

static void a_sink_that_is_ended_is_finished_if_a_document_and_gets_nothing_more(void **state)
{
	struct fixture *fixture = *state;
	struct sink *a = &add_letter(fixture, 'A')->sink;
	struct sink *b = &add_letter(fixture, 'B')->sink;

	a->is_document = true;
	add_letter(fixture, 'C');
	add_two_steps(fixture);
	push(fixture);
	assert_true(pipeline__end_sink(fixture->pipeline, a, -ENOSPC));
	assert_true(pipeline__end_sink(fixture->pipeline, b, -EDQUOT));
	assert_false(pipeline__end_sink(fixture->pipeline, a, -ENOSPC));
	assert_string_equal(pipeline__end_reason(fixture->pipeline, a), "No space left on device");
	assert_string_equal(pipeline__end_reason(fixture->pipeline, b), "Disk quota exceeded");
	assert_null(pipeline__end_reason(fixture->pipeline, NULL));
	assert_int_equal(pipeline__finish(fixture->pipeline), -ENOSPC);
	pipeline__wait(fixture->pipeline);
	assert_string_equal(fixture->log, "AsBsCsAsBsCsAfCfCw");
}

/* It has a window all the same: up to what came last. */
static void a_document_that_is_ended_early_has_a_window_that_is_cut_off(void **state)
{
	struct fixture *fixture = *state;
	struct letter_sink *a = add_letter(fixture, 'A');
	struct letter_sink *b = add_letter(fixture, 'B');

	a->sink.is_document = true;
	add_two_steps(fixture);
	push(fixture);
	assert_true(pipeline__end_sink(fixture->pipeline, &a->sink, -ENOSPC));
	assert_true(a->cut_off);
	assert_int_equal(pipeline__window(fixture->pipeline)->end_ns, 0);
	assert_int_equal(pipeline__finish(fixture->pipeline), -ENOSPC);
	assert_int_equal(a->end_ns, b->end_ns);
}

static void a_sink_that_failed_is_not_ended(void **state)
{
	struct fixture *fixture = *state;
	struct letter_sink *a = add_letter(fixture, 'A');

	a->step_result = -EIO;
	add_two_steps(fixture);
	assert_int_equal(run_quietly(fixture), -EIO);
	assert_false(pipeline__end_sink(fixture->pipeline, &a->sink, -ENOSPC));
	assert_string_equal(pipeline__end_reason(fixture->pipeline, &a->sink),
			    "Input/output error");
	assert_string_equal(fixture->log, "As");
}

#define PIPELINE_TEST(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipeline_free_takes_null),
		PIPELINE_TEST(a_sink_that_fails_is_left_out_and_the_others_go_on),
		PIPELINE_TEST(a_sink_that_fails_is_named_once_with_what_to_do),
		PIPELINE_TEST(a_sink_that_fails_at_a_call_is_left_out),
		PIPELINE_TEST(the_first_of_several_errors_is_returned),
		PIPELINE_TEST(finish_twice_finishes_once),
		PIPELINE_TEST(a_record_with_bad_contents_is_counted_and_skipped),
		PIPELINE_TEST(a_record_of_an_unknown_type_is_counted_and_skipped),
		PIPELINE_TEST(an_impossible_header_ends_its_block_only),
		PIPELINE_TEST(a_block_that_is_cut_off_is_counted),
		PIPELINE_TEST(an_empty_block_is_no_error),
		PIPELINE_TEST(a_sink_without_write_call_gets_none),
		PIPELINE_TEST(sinks_are_served_in_the_order_they_were_added),
		PIPELINE_TEST(files_are_finished_before_the_others),
		PIPELINE_TEST(the_watch_looks_after_so_many_items),
		PIPELINE_TEST(sinks_are_waited_for_after_the_end_if_they_did_not_fail),
		PIPELINE_TEST(a_sink_that_is_ended_is_finished_if_a_document_and_gets_nothing_more),
		PIPELINE_TEST(a_document_that_is_ended_early_has_a_window_that_is_cut_off),
		PIPELINE_TEST(a_sink_that_failed_is_not_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
