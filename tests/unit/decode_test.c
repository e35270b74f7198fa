/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include "decode.h"
#include "stream_fixture.h"

static int open_stream(void **state)
{
	*state = calloc(1, sizeof(struct stream));
	return *state ? 0 : -1;
}

static int close_stream(void **state)
{
	free(*state);
	return 0;
}

static long decode(const struct stream *stream)
{
	const struct fbt_header *event;

	return decode_event(stream->bytes, stream->size, &event);
}

static void decode_asks_for_more_than_half_a_header(void **state)
{
	struct stream *stream = *state;
	const struct fbt_header *event;

	add_window(stream, FBT_DETAIL_STEPS);
	for (size_t size = 0; size < sizeof(struct fbt_header); size++)
		assert_int_equal(decode_event(stream->bytes, size, &event), -EAGAIN);
}

static void decode_asks_for_more_at_every_cut_of_a_record(void **state)
{
	struct stream *stream = *state;
	const struct fbt_header *event;

	add_window(stream, FBT_DETAIL_STEPS);
	for (size_t size = 0; size < stream->size; size++) {
		assert_int_equal(decode_event(stream->bytes, size, &event), -EAGAIN);
		assert_null(event);
	}
}

static void decode_refuses_a_size_that_is_smaller_than_a_header(void **state)
{
	struct stream *stream = *state;

	((struct fbt_header *)stream_add(stream, 999, 16, NULL, 0))->size = 0;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_size_that_is_no_multiple_of_8(void **state)
{
	struct stream *stream = *state;

	((struct fbt_header *)stream_add(stream, 999, 16, NULL, 0))->size = 12;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_record_above_the_limit_without_waiting_for_it(void **state)
{
	struct stream *stream = *state;

	add_window(stream, FBT_DETAIL_STEPS)->header.size = DECODE_RECORD_MAX + 8;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_does_not_say_where_an_impossible_header_ends(void **state)
{
	struct stream *stream = *state;
	const struct fbt_header *event;

	add_window(stream, FBT_DETAIL_STEPS)->header.size = 3;
	decode_event(stream->bytes, stream->size, &event);
	assert_null(event);
}

static void decode_gives_the_record_to_skip_when_its_contents_are_bad(void **state)
{
	struct stream *stream = *state;
	const struct fbt_header *event;

	add_step(stream, 7, FBT_KIND_COUNT, 1, 2);
	assert_int_equal(decode_event(stream->bytes, stream->size, &event), -EBADMSG);
	assert_ptr_equal(event, stream->bytes);
}

static void decode_passes_over_an_unknown_type(void **state)
{
	struct stream *stream = *state;
	const struct fbt_header *event;

	stream_add(stream, 999, 16, NULL, 0);
	assert_int_equal(decode_event(stream->bytes, stream->size, &event), -EOPNOTSUPP);
	assert_int_equal(event->size, 16);
}

static void decode_does_not_know_type_zero(void **state)
{
	struct stream *stream = *state;

	stream_add(stream, 0, 16, NULL, 0);
	assert_int_equal(decode(stream), -EOPNOTSUPP);
}

static void decode_refuses_a_record_that_is_smaller_than_its_struct(void **state)
{
	struct stream *stream = *state;

	stream_add(stream, FBT_EVENT_STEP, sizeof(struct fbt_step) - 8, NULL, 0);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_record_that_is_larger_than_its_struct(void **state)
{
	struct stream *stream = *state;

	stream_add(stream, FBT_EVENT_STEP, sizeof(struct fbt_step) + 8, NULL, 0);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_an_unknown_detail(void **state)
{
	struct stream *stream = *state;

	add_window(stream, FBT_DETAIL_ALL + 1);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_an_unknown_architecture(void **state)
{
	struct stream *stream = *state;

	add_window(stream, FBT_DETAIL_ALL)->arch = 3;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_kind_out_of_range(void **state)
{
	struct stream *stream = *state;

	add_kind(stream, FBT_KIND_COUNT, "f", NULL);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_an_unknown_step_source(void **state)
{
	struct stream *stream = *state;

	add_kind(stream, 1, "f", NULL)->source = 3;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_too_many_arguments(void **state)
{
	struct stream *stream = *state;

	add_kind(stream, 1, "f", NULL)->arg_count = FBT_ARG_COUNT + 1;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_fewer_argument_names_than_arguments(void **state)
{
	struct stream *stream = *state;

	/* 32 bytes of strings, so that no padding reads as an empty one. */
	add_kind(stream, 1, "forward", "n")->arg_count = 2;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_step_of_a_kind_out_of_range(void **state)
{
	struct stream *stream = *state;

	add_step(stream, 7, FBT_KIND_COUNT, 1, 2);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_step_that_ends_before_it_begins(void **state)
{
	struct stream *stream = *state;

	add_step(stream, 7, 1, 2, 1);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_an_unknown_step_end(void **state)
{
	struct stream *stream = *state;

	add_step(stream, 7, 1, 1, 2)->end = FBT_END_EXITED + 1;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_arguments_out_of_range(void **state)
{
	struct stream *stream = *state;

	add_step(stream, 7, 1, 1, 2)->arg_mask = 1u << FBT_ARG_COUNT;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_call_that_ends_after_the_end_of_time(void **state)
{
	struct stream *stream = *state;

	add_call(stream, 7, UINT64_MAX - 5);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_table_row_out_of_range(void **state)
{
	struct stream *stream = *state;

	add_table(stream, 7, FBT_NR_COUNT, 1);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_thread_name_without_an_end(void **state)
{
	struct stream *stream = *state;

	memset(add_thread(stream, 7, 8, "")->comm, 'x', 16);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_string_without_an_end(void **state)
{
	struct stream *stream = *state;

	add_target(stream, 7, "engine");
	memset(stream->bytes + sizeof(struct fbt_target), 'x',
	       stream->size - sizeof(struct fbt_target));
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_missing_string(void **state)
{
	struct stream *stream = *state;
	static const char *const strings[] = {"engine7", "/bin/en"};

	stream_add(stream, FBT_EVENT_TARGET, sizeof(struct fbt_target), strings, 2);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_string_too_many(void **state)
{
	struct stream *stream = *state;
	static const char *const strings[] = {"a", "b", "c", "d"};

	stream_add(stream, FBT_EVENT_TARGET, sizeof(struct fbt_target), strings, 4);
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_more_padding_than_needed(void **state)
{
	struct stream *stream = *state;
	struct fbt_target *target = add_target(stream, 7, "engine");

	target->header.size += 8;
	memset(stream->bytes + stream->size, 0, 8);
	stream->size += 8;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_survives_any_single_wrong_byte(void **state)
{
	struct stream *stream = *state;
	const struct fbt_header *event;

	add_kind(stream, 1, "llama_decode", "n_tokens");
	for (size_t i = 0; i < stream->size; i++) {
		for (unsigned int value = 0; value < 256; value++) {
			char old = stream->bytes[i];

			stream->bytes[i] = (char)value;
			if (decode_event(stream->bytes, stream->size, &event) > 0 &&
			    event->type == FBT_EVENT_KIND)
				assert_non_null(decode_string(event, 1));
			stream->bytes[i] = old;
		}
	}
}

static void decode_takes_each_type(void **state)
{
	struct stream *stream = *state;
	const struct fbt_header *event;
	size_t position = 0;
	int count = 0;

	add_window(stream, FBT_DETAIL_ALL);
	add_target(stream, 7, "engine");
	add_thread(stream, 7, 8, "worker");
	add_kind(stream, 1, "llama_decode", "n_tokens");
	add_step(stream, 7, 1, 1, 1);
	add_call(stream, 7, 5);
	add_table(stream, 7, FBT_NR_COUNT - 1, 5);
	stream_add(stream, FBT_EVENT_LOST, sizeof(struct fbt_lost), NULL, 0);
	stream_add(stream, FBT_EVENT_COST, sizeof(struct fbt_cost), NULL, 0);
	add_exit(stream, 7, 9);
	add_end(stream, 10);
	while (position < stream->size) {
		long taken =
			decode_event(stream->bytes + position, stream->size - position, &event);

		assert_true(taken > 0);
		assert_int_equal(event->type, ++count);
		position += taken;
	}
	assert_int_equal(count, 11);
}

static void decode_takes_a_kind_with_all_arguments(void **state)
{
	struct stream *stream = *state;
	static const char *const strings[] = {"f", "/lib", "a", "b", "c", "d"};
	struct fbt_kind *kind = stream_add(stream, FBT_EVENT_KIND, sizeof(*kind), strings, 6);

	kind->kind = FBT_KIND_COUNT - 1;
	kind->arg_count = 4;
	assert_int_equal(decode(stream), stream->size);
	assert_string_equal(decode_string(&kind->header, 5), "d");
}

static void decode_string_finds_each_string(void **state)
{
	struct stream *stream = *state;
	struct fbt_target *target = add_target(stream, 7, "engine");

	assert_string_equal(decode_string(&target->header, 0), "engine");
	assert_string_equal(decode_string(&target->header, 1), "/usr/bin/engine");
	assert_string_equal(decode_string(&target->header, 2), "engine --serve");
}

static void decode_string_knows_no_string_behind_the_last(void **state)
{
	struct stream *stream = *state;

	assert_null(decode_string(&add_target(stream, 7, "engine")->header, 3));
}

static void decode_string_knows_no_string_of_a_record_without_any(void **state)
{
	struct stream *stream = *state;

	assert_null(decode_string(&add_step(stream, 7, 1, 1, 2)->header, 0));
}

#define STREAM_TEST(test) cmocka_unit_test_setup_teardown(test, open_stream, close_stream)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STREAM_TEST(decode_asks_for_more_than_half_a_header),
		STREAM_TEST(decode_asks_for_more_at_every_cut_of_a_record),
		STREAM_TEST(decode_refuses_a_size_that_is_smaller_than_a_header),
		STREAM_TEST(decode_refuses_a_size_that_is_no_multiple_of_8),
		STREAM_TEST(decode_refuses_a_record_above_the_limit_without_waiting_for_it),
		STREAM_TEST(decode_does_not_say_where_an_impossible_header_ends),
		STREAM_TEST(decode_gives_the_record_to_skip_when_its_contents_are_bad),
		STREAM_TEST(decode_passes_over_an_unknown_type),
		STREAM_TEST(decode_does_not_know_type_zero),
		STREAM_TEST(decode_refuses_a_record_that_is_smaller_than_its_struct),
		STREAM_TEST(decode_refuses_a_record_that_is_larger_than_its_struct),
		STREAM_TEST(decode_refuses_an_unknown_detail),
		STREAM_TEST(decode_refuses_an_unknown_architecture),
		STREAM_TEST(decode_refuses_a_kind_out_of_range),
		STREAM_TEST(decode_refuses_an_unknown_step_source),
		STREAM_TEST(decode_refuses_too_many_arguments),
		STREAM_TEST(decode_refuses_fewer_argument_names_than_arguments),
		STREAM_TEST(decode_refuses_a_step_of_a_kind_out_of_range),
		STREAM_TEST(decode_refuses_a_step_that_ends_before_it_begins),
		STREAM_TEST(decode_refuses_an_unknown_step_end),
		STREAM_TEST(decode_refuses_arguments_out_of_range),
		STREAM_TEST(decode_refuses_a_call_that_ends_after_the_end_of_time),
		STREAM_TEST(decode_refuses_a_table_row_out_of_range),
		STREAM_TEST(decode_refuses_a_thread_name_without_an_end),
		STREAM_TEST(decode_refuses_a_string_without_an_end),
		STREAM_TEST(decode_refuses_a_missing_string),
		STREAM_TEST(decode_refuses_a_string_too_many),
		STREAM_TEST(decode_refuses_more_padding_than_needed),
		STREAM_TEST(decode_survives_any_single_wrong_byte),
		STREAM_TEST(decode_takes_each_type),
		STREAM_TEST(decode_takes_a_kind_with_all_arguments),
		STREAM_TEST(decode_string_finds_each_string),
		STREAM_TEST(decode_string_knows_no_string_behind_the_last),
		STREAM_TEST(decode_string_knows_no_string_of_a_record_without_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
