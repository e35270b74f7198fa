/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/inject.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "inject/inject.h"
#include "inject/python_use.h"

#define ENTRY "ferrum_python_attach"

int python_inject(uint32_t tgid, const char *path, uint64_t timeout_ns)
{
	struct inject_load load = {.path = path, .entry = ENTRY, .purpose = INJECT_FOR_PYTHON};
	struct inject_outcome outcome;
	int err;

	if (!python_use_is_there(tgid))
		return -ENOENT;
	err = inject_now(tgid, &load, timeout_ns, &outcome);
	if (err)
		return err;
	switch (outcome.status) {
	case INJECT_PRESENT:
		return 0;
	case INJECT_LOADED:
		if (!outcome.result) {
			log_info(
				"process %u: libferrum_python.so injected through thread %u, which "
				"was stopped for %.3f ms; it stays loaded after the trace, and "
				"idle",
				tgid, outcome.tid, (double)outcome.stop_ns / 1e6);
			return 0;
		}
		log_warn("process %u: libferrum_python.so was loaded but could not start: %s", tgid,
			 strerror(outcome.result));
		return -EPERM;
	case INJECT_GONE:
		return -ESRCH;
	default:
		log_warn("process %u: libferrum_python.so was not injected: %s", tgid,
			 *outcome.text ? outcome.text : "it failed; the process goes on");
		return -EPERM;
	}
}
