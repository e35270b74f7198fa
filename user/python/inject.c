/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "inject/python_use.h"
#include "proc/maps.h"

struct inject_load python_inject_load(const char *path)
{
	return (struct inject_load){path, "ferrum_python_attach", INJECT_FOR_PYTHON};
}

struct library {
	char path[256];
};

static bool take_path(const struct mapping *mapping, const void *ctx)
{
	struct library *library = *(struct library *const *)ctx;

	if (!mapping->path || !mapping->executable || !python_use_minor(mapping_name(mapping)))
		return false;
	snprintf(library->path, sizeof(library->path), "%s", mapping->path);
	return true;
}

/* ENOENT: it sees none of the interpreter's functions, which are in the process. */
static void tell_why_not(uint32_t tgid, int error)
{
	struct library library = {"libpython3.N.so"}, *ctx = &library;

	if (error != ENOENT) {
		log_warn("process %u: libferrum_python.so was loaded but could not start: %s", tgid,
			 strerror(error));
		return;
	}
	maps_search(tgid, "python3.", take_path, &ctx);
	log_warn("process %u: libferrum_python.so was loaded but cannot see the interpreter's "
		 "functions: the interpreter is loaded for the program alone (RTLD_LOCAL): start "
		 "the program with LD_PRELOAD=%s",
		 tgid, library.path);
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
		tell_why_not(tgid, outcome->result);
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
