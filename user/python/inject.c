/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/inject.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "inject/python_use.h"

struct inject_load python_inject_load(const char *path)
{
	return (struct inject_load){path, "ferrum_python_attach", INJECT_FOR_PYTHON};
}

int python_inject_judge(uint32_t tgid, const struct inject_outcome *outcome)
{
	switch (outcome->status) {
	case INJECT_PRESENT:
		return 0;
	case INJECT_LOADED:
		if (!outcome->result) {
			log_info(
				"process %u: libferrum_python.so injected through thread %u, which "
				"was stopped for %.3f ms; it stays loaded after the trace, and "
				"idle",
				tgid, outcome->tid, (double)outcome->stop_ns / 1e6);
			return 0;
		}
		log_warn("process %u: libferrum_python.so was loaded but could not start: %s", tgid,
			 strerror(outcome->result));
		return -EPERM;
	case INJECT_GONE:
		return -ESRCH;
	default:
		log_warn("process %u: libferrum_python.so was not injected: %s", tgid,
			 *outcome->text ? outcome->text : "it failed; the process goes on");
		return -EPERM;
	}
}

int python_inject(uint32_t tgid, const char *path, uint64_t timeout_ns)
{
	const struct inject_load load = python_inject_load(path);
	struct inject_outcome outcome;
	int err;

	if (!python_use_is_there(tgid))
		return -ENOENT;
	err = inject_now(tgid, &load, timeout_ns, &outcome);
	return err ? err : python_inject_judge(tgid, &outcome);
}
