/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/refusal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "python/guest.h"

/*
 * The library lets its functions go by itself: see the lease in fbt_python.h. The holder may also
 * be in another PID namespace.
 */
#define ENDED_HOLDER                                                                               \
	", which is not there: if it was killed, they are free within 5 s, try again then"

static bool has_ended(uint32_t pid)
{
	return kill((pid_t)pid, 0) && errno == ESRCH;
}

bool python_refusal_tell(uint32_t tgid, int err, uint32_t holder)
{
	if (err == -EBUSY)
		log_warn("process %u: its Python functions are steps of another tracer (process "
			 "%u%s)",
			 tgid, holder, has_ended(holder) ? ENDED_HOLDER : "");
	else if (err == -EPROTONOSUPPORT)
		log_warn("process %u: libferrum_python.so in it is that of another version of this "
			 "tool: it stays until the process is restarted",
			 tgid);
	else if (err == -ENOTCONN)
		log_warn("process %u: no other tracer has Python functions of it as steps", tgid);
	else if (python_guest_is_there(tgid))
		log_warn("process %u: libferrum_python.so is in it, but cannot be reached: %s",
			 tgid, strerror(-err));
	else
		return false;
	return true;
}

void python_refusal_tell_order(uint32_t tgid, const struct python_guest *guest, int err,
			       uint64_t limit_ns)
{
	char text[128];

	python_guest__text(guest, text, sizeof(text));
	if (err == -EBUSY)
		log_warn("process %u: its Python functions are steps of another tracer now", tgid);
	else if (err == -EPIPE || *text)
		log_warn("process %u: its Python functions cannot be steps: %s", tgid, text);
	else
		log_warn("process %u: its Python functions cannot be steps: the interpreter did "
			 "not let go of its lock within %llu s",
			 tgid, (unsigned long long)(limit_ns / NS_PER_S));
}
