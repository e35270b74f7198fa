/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * --gpu=inject: puts the shim into a running process. inject_run checks the process, writes the
 * stub, chooses a thread, sends it through the stub and fills the page. Until the thread is
 * diverted, the stub's bytes are all that has changed in the target. After that, the target no
 * longer needs the tool.
 *
 * A short-lived child of the tool (inject__start) does the work, in a session of its own, with
 * signals blocked and a high priority. Ctrl-C, Ctrl-Z or the death of the tool therefore cannot
 * leave the thread stopped, and the tool keeps draining its rings.
 */
#ifndef FBT_INJECT_INJECT_H
#define FBT_INJECT_INJECT_H

#include "inject/check.h"
#include "inject/page.h"
#include "inject/point.h"

struct broker_order;
struct inject;

enum inject_status {
	INJECT_LOADED,	  /* the library is loaded, and its entry returned result */
	INJECT_PRESENT,	  /* the shim was there already: nothing was done */
	INJECT_REFUSED,	  /* by a check: nothing was done */
	INJECT_NO_THREAD, /* no thread could be taken before the deadline */
	INJECT_NO_HELPER, /* a thread went through the stub, but no helper thread appeared */
	INJECT_FAILED,	  /* text says why; the target goes on */
	INJECT_GONE,	  /* the process has ended, or called execve */
	INJECT_STATUS_COUNT,
};

struct inject_wish {
	uint32_t tgid;
	uint32_t tid; /* only this thread; 0: the best one */
	struct inject_library library;
	enum inject_purpose purpose;
	uint64_t timeout_ns; /* to find a thread */
	struct inject_hook hook;
};

/* No pointers: the outcome is written to a pipe. */
struct inject_outcome {
	enum inject_status status;
	uint32_t tid;		    /* of the thread that was taken; 0: none */
	uint32_t nr;		    /* its call */
	uint32_t tries;		    /* number of stops, of all threads */
	uint64_t stop_ns;	    /* how long the last stop took */
	uint64_t wait_ns;	    /* how long that thread waited for a CPU before it could stop */
	uint64_t total_ns;	    /* from the first stop to the end of inject_run */
	int result;		    /* of the entry */
	char text[INJECT_TEXT_MAX]; /* the reason; "" if LOADED; may contain the target's text */
};

/*
 * Prepares a process that only calls inject_run: gives it a session of its own and the highest
 * priority that is allowed, so that the stopped thread does not wait while we wait for a CPU.
 */
void inject_hurry(void);

/* Blocks; logs nothing. */
void inject_run(const struct inject_wish *wish, struct inject_outcome *outcome);

/*
 * --dry-run: checks everything that can be checked without changing the process. As in a real run,
 * a thread is stopped to read its seccomp filters. 0 or -errno as inject_check.
 */
int inject_try(uint32_t tgid, enum inject_purpose purpose, struct inject_verdict *verdict);

/* What is put into a process. */
struct inject_load {
	const char *path;  /* of the library */
	const char *entry; /* the function to call; it returns 0 or an errno */
	enum inject_purpose purpose;
};

static inline struct inject_load inject_load_shim(const char *path)
{
	return (struct inject_load){path, "ferrum_cupti_attach", INJECT_FOR_CUDA};
}

/* What the child injects. */
struct inject_service {
	void *library; /* contents of the library's file, owned; the file may change later */
	size_t size;
	const char *entry; /* borrowed */
	enum inject_purpose purpose;
	uint64_t timeout_ns;
};

/* Reads the library. load: its entry is borrowed. 0; or -errno, logged, and library is NULL. */
int inject_service_open(struct inject_service *service, const struct inject_load *load,
			uint64_t timeout_ns);
void inject_service_clear(struct inject_service *service);

/*
 * The child's work when the broker starts it (struct broker_task). service: a struct
 * inject_service.
 */
void inject_serve(const void *service, const struct broker_order *order, int output);

/*
 * Injects a library in a child process and waits for the outcome. The broker is not asked, so the
 * tool must not be confined yet. 0, and outcome is set; or -errno, logged.
 */
int inject_now(uint32_t tgid, const struct inject_load *load, uint64_t timeout_ns,
	       struct inject_outcome *outcome);

/*
 * Starts the child that injects a library. Confined, the broker starts it, with the library that it
 * has read for the load's purpose. 0 or -errno, logged.
 */
int inject__start(struct inject **inject, uint32_t tgid, const struct inject_load *load,
		  uint64_t timeout_ns);

/*
 * true: the injection is over and outcome is set, even if the child died. A child that takes 10 s
 * longer than its time-out is killed. The kernel then releases a thread that the child has stopped.
 */
bool inject__poll(struct inject *inject, uint64_t now_ns, struct inject_outcome *outcome);

/* Waits for a running child until inject__poll would kill it. */
void inject__await(struct inject *inject, struct inject_outcome *outcome);

/* Waits as inject__await does. */
void inject__free(struct inject *inject);

#endif
