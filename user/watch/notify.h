/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Tells systemd how a service is (sd_notify(3)), without its library, which is never static. */
#ifndef FBT_WATCH_NOTIFY_H
#define FBT_WATCH_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* What the service manager asks for, by the environment. */
struct notify {
	char *path;	      /* NOTIFY_SOCKET; NULL: nobody wants to know */
	uint64_t watchdog_ns; /* how often to tell that we are alive; 0: not */
	bool ready_due;	      /* notify_ready was called, and that is not sent yet */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. */
void notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/*
 * Sends "KEY=VALUE" lines, for example "READY=1\nSTATUS=...". Nothing waits. 0, also if nobody
 * wants to know; or -errno.
 */
int notify_send(const struct notify *notify, const char *state);

/* Sends READY=1, now or in one of the turns: without it the service's start fails in the end. */
void notify_ready(struct notify *notify);

/* Call several times a second. */
void notify_turn(struct notify *notify);

#endif
