/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Unix sockets and their peers (sock_diag(7)). The socket is opened before the tool gives up its
 * rights; read and write are all that it needs afterwards.
 */
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proc/ipc.h"

#define ESTABLISHED 1
#define NO_COOKIE   (~0u)

/* More messages than one are an answer to an earlier question. */
#define ANSWERS_MAX 8

struct question {
	struct nlmsghdr header;
	struct unix_diag_req body;
};

int unix_diag_open(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
}

/* The kernel answers within the write, so the answer is there when that returns. */
static bool ask(int diag, uint32_t inode)
{
	struct question question = {
		.header = {.nlmsg_len = sizeof(question),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST,
			   .nlmsg_seq = inode},
		.body = {.sdiag_family = AF_UNIX,
			 .udiag_states = 1u << ESTABLISHED,
			 .udiag_ino = inode,
			 .udiag_show = UDIAG_SHOW_PEER,
			 .udiag_cookie = {NO_COOKIE, NO_COOKIE}},
	};

	return write(diag, &question, sizeof(question)) == (ssize_t)sizeof(question);
}

static uint64_t find_peer(const struct unix_diag_msg *message, size_t size)
{
	const struct rtattr *attribute = (const struct rtattr *)(message + 1);
	int left = (int)(size - sizeof(*message));
	uint32_t inode = 0;

	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		if (attribute->rta_type == UNIX_DIAG_PEER &&
		    RTA_PAYLOAD(attribute) >= sizeof(inode))
			memcpy(&inode, RTA_DATA(attribute), sizeof(inode));
	}
	return inode;
}

uint64_t unix_diag_peer(int diag, uint64_t inode)
{
	_Alignas(struct nlmsghdr) char answer[1024];
	const struct nlmsghdr *header = (const struct nlmsghdr *)answer;

	if (diag < 0 || !inode || inode > UINT32_MAX || !ask(diag, (uint32_t)inode))
		return 0;
	for (int i = 0; i < ANSWERS_MAX; i++) {
		ssize_t size = read(diag, answer, sizeof(answer));

		if (size < (ssize_t)(sizeof(*header) + sizeof(struct unix_diag_msg)) ||
		    header->nlmsg_len > (size_t)size ||
		    header->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
			return 0;
		if (header->nlmsg_seq == (uint32_t)inode &&
		    header->nlmsg_type == SOCK_DIAG_BY_FAMILY)
			return find_peer(NLMSG_DATA(header), header->nlmsg_len - NLMSG_HDRLEN);
	}
	return 0;
}
