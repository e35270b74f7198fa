/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "output/capture.h"
#include "stream_fixture.h"

struct fixture {
	struct stream stream;
	char file[sizeof(struct capture_header) + sizeof(((struct stream *)NULL)->bytes)];
	size_t file_size;
	char *received;
	size_t received_size;
	size_t blocks;
	int err; /* what the reader of a block returns */
	char said[1024];
};

static int open_fixture(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int close_fixture(void **state)
{
	struct fixture *fixture = *state;

	free(fixture->received);
	free(fixture);
	return 0;
}

static int receive(void *ctx, const void *data, size_t size)
{
	struct fixture *fixture = ctx;

	fixture->received = realloc(fixture->received, fixture->received_size + size);
	assert_non_null(fixture->received);
	memcpy(fixture->received + fixture->received_size, data, size);
	fixture->received_size += size;
	fixture->blocks++;
	return fixture->err;
}

/* Reads a stream and catches stderr in fixture->said. */
static int read_stream(struct fixture *fixture, FILE *in)
{
	int kept = dup(STDERR_FILENO);
	int pipe_fds[2];
	ssize_t size;
	int err;

	free(fixture->received);
	fixture->received = NULL;
	fixture->received_size = 0;
	fixture->blocks = 0;
	assert_int_equal(pipe(pipe_fds), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	err = capture_read(in, "x.capture", receive, fixture);
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(pipe_fds[1]);
	size = read(pipe_fds[0], fixture->said, sizeof(fixture->said) - 1);
	fixture->said[size > 0 ? size : 0] = '\0';
	close(pipe_fds[0]);
	return err;
}

/* Reads the first size bytes of fixture->file. */
static int read_front(struct fixture *fixture, size_t size)
{
	FILE *in = tmpfile();
	int err;

	assert_non_null(in);
	assert_true(!size || fwrite(fixture->file, size, 1, in) == 1);
	rewind(in);
	err = read_stream(fixture, in);
	fclose(in);
	return err;
}

static struct capture_header *make_file(struct fixture *fixture)
{
	FILE *out = fmemopen(fixture->file, sizeof(fixture->file), "w");

	assert_non_null(out);
	assert_int_equal(capture_write_header(out), 0);
	assert_int_equal(capture_write(out, fixture->stream.bytes, fixture->stream.size), 0);
	fixture->file_size = ftell(out);
	fclose(out);
	return (struct capture_header *)fixture->file;
}

static struct capture_header *make_small_file(struct fixture *fixture)
{
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	add_target(&fixture->stream, 7, "engine");
	add_step(&fixture->stream, 7, 1, 1000, 2000);
	add_end(&fixture->stream, 3000);
	return make_file(fixture);
}

static void assert_refused(struct fixture *fixture, size_t size, int expected, const char *words)
{
	assert_int_equal(read_front(fixture, size), expected);
	assert_non_null(strstr(fixture->said, words));
	assert_ptr_equal(strchr(fixture->said, '\n'), strrchr(fixture->said, '\n'));
	assert_int_equal(fixture->blocks, 0);
}

static void an_empty_file_is_refused(void **state)
{
	assert_refused(*state, 0, -EBADMSG, "x.capture: not a capture: the file is empty\n");
}

static void a_directory_is_refused(void **state)
{
	struct fixture *fixture = *state;
	FILE *in = fopen("/", "r");

	assert_non_null(in);
	assert_int_equal(read_stream(fixture, in), -EISDIR);
	assert_non_null(strstr(fixture->said, "x.capture: Is a directory"));
	fclose(in);
}

static void garbage_is_refused(void **state)
{
	struct fixture *fixture = *state;

	memset(fixture->file, 'x', 1000);
	assert_refused(fixture, 1000, -EBADMSG, "not a capture");
}

static void a_wrong_magic_is_refused(void **state)
{
	struct fixture *fixture = *state;

	make_small_file(fixture)->magic ^= 1;
	assert_refused(fixture, fixture->file_size, -EBADMSG, "not a capture");
}

static void the_other_byte_order_is_refused(void **state)
{
	struct fixture *fixture = *state;

	make_small_file(fixture)->magic = __builtin_bswap64(CAPTURE_MAGIC);
	assert_refused(fixture, fixture->file_size, -EBADMSG, "byte order");
}

static void a_newer_version_is_refused(void **state)
{
	struct fixture *fixture = *state;

	make_small_file(fixture)->version = CAPTURE_VERSION + 1;
	assert_refused(fixture, fixture->file_size, -EOPNOTSUPP, "newer");
}

static void version_zero_is_refused(void **state)
{
	struct fixture *fixture = *state;

	make_small_file(fixture)->version = 0;
	assert_refused(fixture, fixture->file_size, -EBADMSG, "damaged");
}

static void a_header_of_impossible_size_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct capture_header *header = make_small_file(fixture);
	static const uint32_t sizes[] = {0, 8, 20, 1 << 20, UINT32_MAX};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		header->header_bytes = sizes[i];
		assert_refused(fixture, fixture->file_size, -EBADMSG, "damaged");
	}
}

static void a_file_that_does_not_begin_with_a_window_is_refused(void **state)
{
	struct fixture *fixture = *state;

	add_step(&fixture->stream, 7, 1, 1000, 2000);
	make_file(fixture);
	assert_refused(fixture, fixture->file_size, -EBADMSG, "begin with a window");
}

static void a_file_that_is_cut_in_its_header_is_refused(void **state)
{
	struct fixture *fixture = *state;

	make_small_file(fixture);
	for (size_t size = 1; size < sizeof(struct capture_header); size++)
		assert_refused(fixture, size, -EBADMSG, "its first record");
}

static void a_file_that_is_cut_anywhere_gives_its_whole_records(void **state)
{
	struct fixture *fixture = *state;
	const size_t header = sizeof(struct capture_header);

	make_small_file(fixture);
	for (size_t size = header; size < fixture->file_size; size++) {
		size_t whole = 0;

		for (;;) {
			const struct fbt_header *record =
				(const void *)(fixture->stream.bytes + whole);

			if (header + whole + record->size > size)
				break;
			whole += record->size;
		}
		assert_int_equal(read_front(fixture, size), 0);
		assert_int_equal(fixture->received_size, whole);
		assert_memory_equal(fixture->received ? fixture->received : "",
				    fixture->stream.bytes, whole);
		if (header + whole < size || !whole)
			assert_non_null(strstr(fixture->said, "x.capture: cut off"));
	}
}

static void what_comes_before_damage_is_used(void **state)
{
	struct fixture *fixture = *state;
	size_t whole;

	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	whole = fixture->stream.size;
	add_end(&fixture->stream, 3000)->header.size = 5;
	make_file(fixture);
	assert_int_equal(read_front(fixture, fixture->file_size), -EBADMSG);
	assert_int_equal(fixture->received_size, whole);
	assert_non_null(strstr(fixture->said, "x.capture: damaged"));
}

static void a_full_disk_is_reported_by_the_writer(void **state)
{
	FILE *out = fopen("/dev/full", "w");

	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(capture_write_header(out), -ENOSPC);
	fclose(out);
}

static void a_whole_file_is_read_in_silence(void **state)
{
	struct fixture *fixture = *state;

	make_small_file(fixture);
	assert_int_equal(read_front(fixture, fixture->file_size), 0);
	assert_string_equal(fixture->said, "");
	assert_int_equal(fixture->received_size, fixture->stream.size);
}

static void a_longer_header_is_passed_over(void **state)
{
	struct fixture *fixture = *state;
	const size_t header = sizeof(struct capture_header);

	make_small_file(fixture)->header_bytes = header + 8;
	memmove(fixture->file + header + 8, fixture->file + header, fixture->stream.size);
	assert_int_equal(read_front(fixture, fixture->file_size + 8), 0);
	assert_int_equal(fixture->received_size, fixture->stream.size);
}

#define LARGE_STEPS 20000

/* More than one block. The stream is one of its steps then. */
static FILE *make_large_file(struct fixture *fixture)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	assert_int_equal(capture_write_header(file), 0);
	assert_int_equal(capture_write(file, fixture->stream.bytes, fixture->stream.size), 0);
	fixture->stream.size = 0;
	add_step(&fixture->stream, 7, 1, 1000, 2000);
	for (int i = 0; i < LARGE_STEPS; i++)
		assert_int_equal(capture_write(file, fixture->stream.bytes, fixture->stream.size),
				 0);
	rewind(file);
	return file;
}

static void a_file_larger_than_the_buffer_is_read_whole(void **state)
{
	struct fixture *fixture = *state;
	FILE *file = make_large_file(fixture);

	assert_int_equal(read_stream(fixture, file), 0);
	assert_true(fixture->blocks > 1);
	assert_true(fixture->received_size > LARGE_STEPS * sizeof(struct fbt_step));
	assert_memory_equal(fixture->received + fixture->received_size - sizeof(struct fbt_step),
			    fixture->stream.bytes, sizeof(struct fbt_step));
	fclose(file);
}

static void an_error_of_who_takes_a_block_ends_the_reading(void **state)
{
	struct fixture *fixture = *state;
	FILE *file = make_large_file(fixture);

	fixture->err = -ENOSPC;
	assert_int_equal(read_stream(fixture, file), -ENOSPC);
	assert_int_equal(fixture->blocks, 1);
	assert_string_equal(fixture->said, "");
	fclose(file);
}

#define CAPTURE_TEST(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURE_TEST(an_empty_file_is_refused),
		CAPTURE_TEST(a_directory_is_refused),
		CAPTURE_TEST(garbage_is_refused),
		CAPTURE_TEST(a_wrong_magic_is_refused),
		CAPTURE_TEST(the_other_byte_order_is_refused),
		CAPTURE_TEST(a_newer_version_is_refused),
		CAPTURE_TEST(version_zero_is_refused),
		CAPTURE_TEST(a_header_of_impossible_size_is_refused),
		CAPTURE_TEST(a_file_that_does_not_begin_with_a_window_is_refused),
		CAPTURE_TEST(a_file_that_is_cut_in_its_header_is_refused),
		CAPTURE_TEST(a_file_that_is_cut_anywhere_gives_its_whole_records),
		CAPTURE_TEST(what_comes_before_damage_is_used),
		CAPTURE_TEST(a_full_disk_is_reported_by_the_writer),
		CAPTURE_TEST(a_whole_file_is_read_in_silence),
		CAPTURE_TEST(a_longer_header_is_passed_over),
		CAPTURE_TEST(a_file_larger_than_the_buffer_is_read_whole),
		CAPTURE_TEST(an_error_of_who_takes_a_block_ends_the_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
