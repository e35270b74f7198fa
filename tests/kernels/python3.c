// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * python3 for guests, first in their PATH: a question for query.py goes to query_server.py through
 * the socket FBT_QUERY_SERVER. All other calls, and those that get no answer, go to the real
 * python3.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
#define QUERY  "tests/live/query.py"

static int connect_server(void)
{
	const char *path = getenv("FBT_QUERY_SERVER");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (!path || strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Sends the word with its NUL. */
static int send_word(int fd, const char *word)
{
	size_t size = strlen(word ? word : "") + 1;

	return send(fd, word ? word : "", size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

static int ask(int fd, const char *expression)
{
	char bytes[4096];
	ssize_t size;

	if (send_word(fd, getenv("OUT")) || send_word(fd, getenv("TMP")) ||
	    send_word(fd, expression))
		return 1;
	shutdown(fd, SHUT_WR);
	while ((size = read(fd, bytes, sizeof(bytes))) > 0)
		if (write(STDOUT_FILENO, bytes, size) != size)
			return 1;
	return size != 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 3 && strcmp(argv[1], QUERY) == 0 ? connect_server() : -1;

	if (fd >= 0)
		return ask(fd, argv[2]);
	execv(PYTHON, argv);
	fprintf(stderr, "python3: %s: %s\n", PYTHON, strerror(errno));
	return 127;
}
