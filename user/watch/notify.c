/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* Half of the time, as sd_watchdog_enabled(3) recommends, and once more. */
#define WATCHDOG_PART 3

static uint64_t read_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	unsigned long long value;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	return *end || errno ? 0 : value;
}

void notify_open(struct notify *notify)
{
	const char *path = getenv("NOTIFY_SOCKET");
	uint64_t usec = read_number("WATCHDOG_USEC"), pid = read_number("WATCHDOG_PID");

	*notify = (struct notify){0};
	/* "@" begins an abstract name. */
	if (path && (*path == '/' || *path == '@') && path[1])
		notify->path = strdup(path);
	if ((!pid || pid == (uint64_t)getpid()) && usec && usec < UINT64_MAX / NS_PER_US)
		notify->watchdog_ns = usec * NS_PER_US / WATCHDOG_PART;
}

void notify_close(struct notify *notify)
{
	free(notify->path);
	*notify = (struct notify){0};
}

int notify_send(const struct notify *notify, const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = notify->path ? strlen(notify->path) : 0;
	int fd, err = 0;

	if (!length)
		return 0;
	if (length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, notify->path, length);
	if (*address.sun_path == '@')
		address.sun_path[0] = '\0';
	else
		length++; /* the NUL of a path */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
		   (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		err = -errno;
	close(fd);
	return err;
}

void notify_ready(struct notify *notify)
{
	notify->ready_due = true;
	notify_turn(notify);
}

void notify_turn(struct notify *notify)
{
	int err = notify->ready_due ? notify_send(notify, "READY=1") : 0;

	if (!err || err == -ENAMETOOLONG)
		notify->ready_due = false;
}
