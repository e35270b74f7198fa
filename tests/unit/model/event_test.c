/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/version.h"
#include "model/event.h"
#include "stream_fixture.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include "target_fixture.h"
#include "record_keeper.h"

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

	add_window(stream, FBT_DETAIL_PROBES + 1);
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

	/* 32 bytes of strings, so that padding cannot be taken for an empty string. */
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

	add_step(stream, 7, 1, 1, 2)->end = FBT_END_RAISED + 1;
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

/* A call of 9 us that stands for three of them. */
static struct fbt_call *add_run(struct stream *stream)
{
	struct fbt_call *call = add_call(stream, 7, 100);

	call->header.flags = FBT_CALL_RUN;
	call->duration_ns = 9000;
	call->run = (struct fbt_run){3, 2000, 6000};
	return call;
}

static void decode_takes_a_row_of_calls(void **state)
{
	struct stream *stream = *state;

	add_run(stream);
	assert_int_equal(decode(stream), sizeof(struct fbt_call));
}

static void decode_refuses_a_row_that_does_not_add_up(void **state)
{
	struct stream *stream = *state;

	add_run(stream)->run.calls = 0;
	assert_int_equal(decode(stream), -EBADMSG);
	stream->size = 0;
	add_run(stream)->run.calls_ns = 9001;
	assert_int_equal(decode(stream), -EBADMSG);
	stream->size = 0;
	add_run(stream)->run.longest_ns = 6001;
	assert_int_equal(decode(stream), -EBADMSG);
	stream->size = 0;
	add_run(stream)->header.flags |= FBT_CALL_UNFINISHED;
	assert_int_equal(decode(stream), -EBADMSG);
}

static struct fbt_peer *add_peer(struct stream *stream)
{
	struct fbt_peer *peer = stream_add(stream, FBT_EVENT_PEER, sizeof(*peer), NULL, 0);

	peer->tgid = 7;
	peer->first_ns = 100;
	peer->time_ns = 110;
	peer->stopped_ns = 4;
	peer->asleep_ns = 6;
	return peer;
}

static void decode_refuses_a_peer_that_did_more_than_its_time(void **state)
{
	struct stream *stream = *state;

	add_peer(stream);
	assert_int_equal(decode(stream), sizeof(struct fbt_peer));
	stream->size = 0;
	add_peer(stream)->cpu_ns = 1;
	assert_int_equal(decode(stream), -EBADMSG);
	stream->size = 0;
	add_peer(stream)->cpu_ns = UINT64_MAX - 3;
	assert_int_equal(decode(stream), -EBADMSG);
	stream->size = 0;
	add_peer(stream)->time_ns = 99;
	assert_int_equal(decode(stream), -EBADMSG);
	stream->size = 0;
	add_peer(stream)->way = FBT_PEER_WAY_COUNT;
	assert_int_equal(decode(stream), -EBADMSG);
	stream->size = 0;
	memset(add_peer(stream)->comm, 'x', sizeof(((struct fbt_peer *)0)->comm));
	assert_int_equal(decode(stream), -EBADMSG);
}

static struct fbt_wake *add_wake(struct stream *stream)
{
	struct fbt_wake *wake = stream_add(stream, FBT_EVENT_WAKE, sizeof(*wake), NULL, 0);

	wake->tgid = 7;
	wake->start_ns = 100;
	wake->wake_ns = 110;
	wake->cpu_ns = 4;
	wake->call_ns = 6;
	return wake;
}

static void decode_refuses_a_wake_of_more_than_its_wait(void **state)
{
	struct stream *stream = *state;

	add_wake(stream)->unknown_ns = 1;
	assert_int_equal(decode(stream), -EBADMSG);
}

/* It began with an earlier call, but not before the machine. */
static void a_wake_of_several_calls_may_have_more(void **state)
{
	struct stream *stream = *state;
	struct fbt_wake *wake = add_wake(stream);

	wake->flags = FBT_WAKE_ROW;
	wake->unknown_ns = 100;
	assert_int_equal(decode(stream), sizeof(*wake));
	wake->unknown_ns = 101;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_wake_whose_parts_overflow(void **state)
{
	struct stream *stream = *state;

	add_wake(stream)->delay_ns = UINT64_MAX - 3;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_wake_before_its_wait(void **state)
{
	struct stream *stream = *state;

	add_wake(stream)->wake_ns = 99;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_a_call_of_a_wake_that_is_longer_than_all(void **state)
{
	struct stream *stream = *state;

	add_wake(stream)->nr_ns = 7;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_an_unknown_collector(void **state)
{
	struct stream *stream = *state;
	static const char *const path[] = {"/usr/bin/python3.11"};
	struct fbt_python *python = stream_add(stream, FBT_EVENT_PYTHON, sizeof(*python), path, 1);

	assert_true(decode(stream) > 0);
	python->collector = FBT_COLLECTOR_COUNT;
	assert_int_equal(decode(stream), -EBADMSG);
	python->collector = 0;
	python->gil_start = 1;
	assert_int_equal(decode(stream), -EBADMSG);
	python->gil_start = 0;
	python->flags = FBT_PYTHON_OFFERED << 1;
	assert_int_equal(decode(stream), -EBADMSG);
}

static void decode_refuses_impossible_stalls(void **state)
{
	struct stream *stream = *state;
	struct fbt_stalls *stalls = stream_add(stream, FBT_EVENT_STALLS, sizeof(*stalls), NULL, 0);

	assert_true(decode(stream) > 0);
	stalls->gc_own_ns = 1;
	assert_int_equal(decode(stream), -EBADMSG);
	stalls->gc_ns = 1;
	assert_true(decode(stream) > 0);
	stalls->gc_generation = FBT_GENERATION_UNKNOWN + 1;
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

static void decode_string_knows_no_string_after_the_last(void **state)
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

/* No process has this id, which is above the kernel's maximum. */
#define NOBODY (1u << 22)

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct record_keeper));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static int send_target(const struct record_output *output, uint32_t tgid, uint32_t parent_tgid,
		       uint64_t start_ns)
{
	struct process_text text;

	process_text_read(&text, tgid);
	return record_send_target(output, tgid, parent_tgid, start_ns, &text);
}

static void target_that_is_gone_has_empty_strings(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	const struct fbt_target *target;

	assert_int_equal(send_target(&output, NOBODY, 7, 99), 0);
	target = kept(keeper, 0, FBT_EVENT_TARGET);
	assert_int_equal(target->header.size, sizeof(*target) + 8);
	assert_int_equal(target->tgid, NOBODY);
	assert_int_equal(target->parent_tgid, 7);
	assert_int_equal(target->start_ns, 99);
	for (int i = 0; i < 3; i++)
		assert_string_equal(kept_string(target, sizeof(*target), i), "");
}

static void thread_that_is_gone_has_no_name(void **state)
{
	char comm[16] = "x";

	(void)state;
	assert_false(proc_comm((struct proc_ref){(uint32_t)getpid(), NOBODY}, comm, sizeof(comm)));
	assert_string_equal(comm, "");
	assert_false(proc_comm((struct proc_ref){NOBODY, NOBODY}, comm, sizeof(comm)));
}

static void strings_that_are_null_are_empty(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	const char *strings[] = {NULL, "b", NULL};
	struct fbt_kind kind = {0};
	const struct fbt_kind *sent;

	assert_int_equal(
		record_send_strings(&output, &kind, sizeof(kind), FBT_EVENT_KIND, strings, 3), 0);
	sent = kept(keeper, 0, FBT_EVENT_KIND);
	assert_int_equal(sent->header.size, sizeof(kind) + 8);
	assert_string_equal(kept_string(sent, sizeof(kind), 0), "");
	assert_string_equal(kept_string(sent, sizeof(kind), 1), "b");
	assert_string_equal(kept_string(sent, sizeof(kind), 2), "");
}

static void strings_of_more_than_4096_bytes_are_cut_off(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	char *text = malloc(6000);
	const char *strings[] = {text, "next"};
	struct fbt_kind kind = {0};
	const struct fbt_kind *sent;

	assert_non_null(text);
	memset(text, 'x', 5999);
	text[5999] = '\0';
	assert_int_equal(
		record_send_strings(&output, &kind, sizeof(kind), FBT_EVENT_KIND, strings, 2), 0);
	free(text);
	sent = kept(keeper, 0, FBT_EVENT_KIND);
	assert_int_equal(strlen(kept_string(sent, sizeof(kind), 0)), 4096);
	assert_string_equal(kept_string(sent, sizeof(kind), 1), "next");
}

static void strings_end_on_a_multiple_of_eight_with_zeroes(void **state)
{
	static const char zeroes[8];
	struct record_output output = keeper_output(*state);

	for (size_t length = 0; length < 17; length++) {
		struct record_keeper *keeper = *state;
		char text[32] = "";
		const char *strings[] = {text};
		struct fbt_kind kind = {0};
		const struct fbt_kind *sent;

		memset(text, 'x', length);
		keeper->size = keeper->count = 0;
		memset(keeper->bytes, 0xff, 256);
		record_send_strings(&output, &kind, sizeof(kind), FBT_EVENT_KIND, strings, 1);
		sent = kept(keeper, 0, FBT_EVENT_KIND);
		assert_int_equal(sent->header.size, sizeof(kind) + (length + 1 + 7) / 8 * 8);
		assert_int_equal(sent->header.size, keeper->size);
		assert_memory_equal((const char *)sent + sizeof(kind) + length, zeroes,
				    sent->header.size - sizeof(kind) - length);
	}
}

static void send_fills_type_and_size_and_leaves_the_flags(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	struct fbt_step step = {.header.flags = FBT_STEP_NO_GAP, .tid = 5};
	const struct fbt_step *sent;

	record_send(&output, &step, sizeof(step), FBT_EVENT_STEP);
	sent = kept(keeper, 0, FBT_EVENT_STEP);
	assert_int_equal(sent->header.size, sizeof(step));
	assert_int_equal(sent->header.flags, FBT_STEP_NO_GAP);
	assert_int_equal(sent->tid, 5);
}

static void window_names_tag_version_kernel_and_host(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	struct fbt_window window = {.start_ns = 3};
	const struct fbt_window *sent;
	struct utsname name;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(record_send_window(&output, &window, "pid7_1"), 0);
	sent = kept(keeper, 0, FBT_EVENT_WINDOW);
	assert_int_equal(sent->start_ns, 3);
	assert_string_equal(kept_string(sent, sizeof(window), 0), "pid7_1");
	assert_string_equal(kept_string(sent, sizeof(window), 1), tool_version());
	assert_string_equal(kept_string(sent, sizeof(window), 2), name.release);
	assert_string_equal(kept_string(sent, sizeof(window), 3), name.nodename);
}

/* Starts a sleeping child with that name. Returns once /proc shows its new command line. */
static pid_t start_sleep(const char *name)
{
	pid_t pid = child_fork();

	assert_true(pid >= 0);
	if (!pid) {
		execlp("sleep", name, "600", NULL);
		_exit(127);
	}
	while (!target_shows(pid, "cmdline", name)) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		usleep(100);
	}
	return pid;
}

static void target_has_name_path_and_arguments_joined_by_spaces(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	pid_t pid = start_sleep("my engine");
	const struct fbt_target *target;
	char path[64], exe[4096];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	length = readlink(path, exe, sizeof(exe) - 1);
	assert_true(length > 0);
	exe[length] = '\0';
	assert_int_equal(send_target(&output, (uint32_t)pid, 0, 1), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	target = kept(keeper, 0, FBT_EVENT_TARGET);
	assert_string_equal(kept_string(target, sizeof(*target), 0), "sleep");
	assert_string_equal(kept_string(target, sizeof(*target), 1), exe);
	assert_string_equal(kept_string(target, sizeof(*target), 2), "my engine 600");
}

static void thread_name_of_fifteen_bytes_is_whole(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	const struct fbt_thread_name *name;
	char before[16], comm[16];

	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, "fifteen bytes !");
	assert_true(proc_comm((struct proc_ref){(uint32_t)getpid(), (uint32_t)gettid()}, comm,
			      sizeof(comm)));
	record_send_thread(&output, (uint32_t)getpid(), (uint32_t)gettid(), comm);
	prctl(PR_SET_NAME, before);
	name = kept(keeper, 0, FBT_EVENT_THREAD);
	assert_int_equal(name->header.size, sizeof(*name));
	assert_int_equal(name->tgid, getpid());
	assert_int_equal(name->tid, gettid());
	assert_string_equal(name->comm, "fifteen bytes !");
}

static void a_wish_for_an_escalation_has_its_time(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	const struct fbt_manual *manual;

	record_send_manual(&output, 77);
	manual = kept(keeper, 0, FBT_EVENT_MANUAL);
	assert_int_equal(manual->header.size, sizeof(*manual));
	assert_int_equal(manual->time_ns, 77);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
		STREAM_TEST(decode_takes_a_row_of_calls),
		STREAM_TEST(decode_refuses_a_row_that_does_not_add_up),
		STREAM_TEST(decode_refuses_a_peer_that_did_more_than_its_time),
		STREAM_TEST(decode_refuses_a_wake_of_more_than_its_wait),
		STREAM_TEST(a_wake_of_several_calls_may_have_more),
		STREAM_TEST(decode_refuses_a_wake_whose_parts_overflow),
		STREAM_TEST(decode_refuses_a_wake_before_its_wait),
		STREAM_TEST(decode_refuses_a_call_of_a_wake_that_is_longer_than_all),
		STREAM_TEST(decode_refuses_impossible_stalls),
		STREAM_TEST(decode_refuses_an_unknown_collector),
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
		STREAM_TEST(decode_string_knows_no_string_after_the_last),
		STREAM_TEST(decode_string_knows_no_string_of_a_record_without_any),
		TEST(target_that_is_gone_has_empty_strings),
		TEST(thread_that_is_gone_has_no_name),
		TEST(strings_that_are_null_are_empty),
		TEST(strings_of_more_than_4096_bytes_are_cut_off),
		TEST(strings_end_on_a_multiple_of_eight_with_zeroes),
		TEST(send_fills_type_and_size_and_leaves_the_flags),
		TEST(window_names_tag_version_kernel_and_host),
		TEST(target_has_name_path_and_arguments_joined_by_spaces),
		TEST(thread_name_of_fifteen_bytes_is_whole),
		TEST(a_wish_for_an_escalation_has_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
