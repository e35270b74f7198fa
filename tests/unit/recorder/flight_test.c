/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "recorder/flight.h"

static int ends[2];

static int open_pair(void **state)
{
	return flight_pair(ends);
}

static int close_pair(void **state)
{
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void a_message_and_its_descriptor_arrive(void **state)
{
	struct flight_message sent = {.type = FLIGHT_DUMP, .steps = 7, .text = "decode"}, got;
	int fd = memfd_create("x", MFD_CLOEXEC), passed;
	char text[8] = "";

	assert_int_equal(write(fd, "records", 7), 7);
	assert_int_equal(flight_send(ends[0], &sent, fd), 0);
	close(fd);
	assert_int_equal(flight_receive(ends[1], &got, &passed), 1);
	assert_memory_equal(&got, &sent, sizeof(sent));
	assert_int_equal(pread(passed, text, 7, 0), 7);
	assert_string_equal(text, "records");
	assert_true(fcntl(passed, F_GETFD) & FD_CLOEXEC);
	close(passed);
	assert_int_equal(flight_receive(ends[1], &got, &passed), 0);
	assert_int_equal(passed, -1);
}

static void the_end_of_the_other_side_is_seen(void **state)
{
	const struct flight_message sent = {.type = FLIGHT_BEAT};
	struct flight_message got;
	int passed;

	assert_int_equal(flight_send(ends[0], &sent, -1), 0);
	close(ends[0]);
	assert_int_equal(flight_receive(ends[1], &got, &passed), 1);
	assert_int_equal(flight_receive(ends[1], &got, &passed), -EPIPE);
	assert_int_equal(flight_send(ends[1], &sent, -1), -EPIPE);
}

static void a_reader_that_does_not_read_is_not_waited_for(void **state)
{
	const struct flight_message sent = {.type = FLIGHT_BEAT};
	int err = 0;

	for (int i = 0; i < 100000 && !err; i++)
		err = flight_send(ends[0], &sent, -1);
	assert_int_equal(err, -EAGAIN);
}

static void send_raw(const void *data, size_t size, const int *fds, size_t count)
{
	char control[CMSG_SPACE(8 * sizeof(int))] = "";
	struct iovec part = {(void *)data, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *place;

		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		place = CMSG_FIRSTHDR(&header);
		place->cmsg_level = SOL_SOCKET;
		place->cmsg_type = SCM_RIGHTS;
		place->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(place), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(ends[0], &header, 0), (ssize_t)size);
}

static void other_messages_are_dropped(void **state)
{
	struct flight_message bad = {.type = FLIGHT_TYPES}, got;
	const int fds[] = {0, 1, 2, 0, 1, 2, 0, 1};
	int passed, before = dup(0);
	char long_one[4096] = {1};

	close(before);
	send_raw("x", 1, fds, 1);
	assert_int_equal(flight_receive(ends[1], &got, &passed), -EBADMSG);
	assert_int_equal(passed, -1);
	send_raw(&bad, sizeof(bad), fds, 8);
	assert_int_equal(flight_receive(ends[1], &got, &passed), -EBADMSG);
	bad.type = 0;
	send_raw(&bad, sizeof(bad), NULL, 0);
	assert_int_equal(flight_receive(ends[1], &got, &passed), -EBADMSG);
	bad.type = FLIGHT_TRIGGER;
	bad.reason = FLIGHT_REASONS;
	send_raw(&bad, sizeof(bad), NULL, 0);
	assert_int_equal(flight_receive(ends[1], &got, &passed), -EBADMSG);
	send_raw(long_one, sizeof(long_one), NULL, 0);
	assert_int_equal(flight_receive(ends[1], &got, &passed), -EBADMSG);
	/* No descriptor was left open. */
	passed = dup(0);
	assert_int_equal(passed, before);
	close(passed);
}

static void a_text_ends(void **state)
{
	struct flight_message sent = {.type = FLIGHT_TRIGGER}, got;
	int passed;

	memset(sent.text, 'x', sizeof(sent.text));
	assert_int_equal(flight_send(ends[0], &sent, -1), 0);
	assert_int_equal(flight_receive(ends[1], &got, &passed), 1);
	assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
		TEST(a_message_and_its_descriptor_arrive),
		TEST(the_end_of_the_other_side_is_seen),
		TEST(a_reader_that_does_not_read_is_not_waited_for),
		TEST(other_messages_are_dropped),
		TEST(a_text_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
