/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "recorder/flight.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *flight_reason_name(uint32_t reason)
{
	static const char *const names[FLIGHT_REASONS] = {"escalation", "hang", "manual"};

	return reason < FLIGHT_REASONS ? names[reason] : "unknown";
}

int flight_pair(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ? -errno : 0;
}

/* Room for one descriptor. */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int flight_send(int fd, const struct flight_message *message, int passed)
{
	union control control = {0};
	struct iovec part = {(void *)message, sizeof(*message)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (passed >= 0) {
		struct cmsghdr *place;

		header.msg_control = control.bytes;
		header.msg_controllen = sizeof(control.bytes);
		place = CMSG_FIRSTHDR(&header);
		place->cmsg_level = SOL_SOCKET;
		place->cmsg_type = SCM_RIGHTS;
		place->cmsg_len = CMSG_LEN(sizeof(passed));
		memcpy(CMSG_DATA(place), &passed, sizeof(passed));
	}
	do
		sent = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	return errno == ECONNRESET || errno == ENOTCONN ? -EPIPE : -errno;
}

/* All descriptors that came; only the first one is kept. */
static int take_descriptor(struct msghdr *header)
{
	int passed = -1;

	for (struct cmsghdr *place = CMSG_FIRSTHDR(header); place;
	     place = CMSG_NXTHDR(header, place)) {
		size_t count = (place->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (place->cmsg_level != SOL_SOCKET || place->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(place) + i * sizeof(fd), sizeof(fd));
			if (passed < 0)
				passed = fd;
			else
				close(fd);
		}
	}
	return passed;
}

int flight_receive(int fd, struct flight_message *message, int *passed)
{
	union control control = {0};
	struct iovec part = {message, sizeof(*message)};
	struct msghdr header = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t size;

	*passed = -1;
	do
		size = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (size < 0 && errno != ECONNRESET)
		return -errno;
	if (size <= 0)
		return -EPIPE;
	*passed = take_descriptor(&header);
	message->text[sizeof(message->text) - 1] = '\0';
	if (size == sizeof(*message) && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    message->type && message->type < FLIGHT_TYPES && message->reason < FLIGHT_REASONS)
		return 1;
	if (*passed >= 0)
		close(*passed);
	*passed = -1;
	return -EBADMSG;
}
