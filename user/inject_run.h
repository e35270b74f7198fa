/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The whole sequence, as it runs in a process of its own (inject.h): check, write the stub, choose
 * a thread, send it through the stub, fill the page. Before the thread is diverted nothing has
 * happened to the target but the stub's bytes; after it the target needs nobody.
 */
#ifndef FBT_INJECT_RUN_H
#define FBT_INJECT_RUN_H

#include "inject_check.h"
#include "inject_page.h"
#include "inject_point.h"
#include "inject_thread.h"

enum inject_status {
	INJECT_LOADED,	  /* the library is in, and its entry returned result */
	INJECT_PRESENT,	  /* the shim was there already: nothing was done */
	INJECT_REFUSED,	  /* by what was found out before; nothing was done */
	INJECT_NO_THREAD, /* none waited where it could be taken until the deadline */
	INJECT_NO_HELPER, /* a thread went through the stub, but no helper came */
	INJECT_FAILED,	  /* text says what; the target goes on */
	INJECT_GONE,	  /* the process has ended, or called execve */
	INJECT_STATUS_COUNT,
};

struct inject_wish {
	uint32_t tgid;
	uint32_t tid; /* only this thread; 0: whichever is best */
	struct inject_library library;
	bool need_cuda;	     /* see inject_check */
	uint64_t timeout_ns; /* to find a thread */
	struct inject_hook hook;
};

/* Plain bytes: it goes through a pipe. */
struct inject_outcome {
	enum inject_status status;
	uint32_t tid;		    /* that was taken; 0: none */
	uint32_t nr;		    /* its call */
	uint32_t tries;		    /* stops, all threads */
	uint64_t stop_ns;	    /* that thread, the last time */
	uint64_t total_ns;	    /* from the first stop to the answer */
	int result;		    /* of the entry */
	char text[INJECT_TEXT_MAX]; /* a reason, "" if LOADED; may hold the target's own text */
};

/*
 * For a process that is there to call inject_run: a session of its own, and before all others on
 * the processor, so that no thread stands for long because we have to wait. Where that is not
 * allowed it is left at that.
 */
void inject_hurry(void);

/* Blocks; logs nothing. */
void inject_run(const struct inject_wish *wish, struct inject_outcome *outcome);

/*
 * --dry-run: everything that can be told without a change, filters of a thread included, which is
 * stopped for that as a real run would. 0 or -errno as inject_check.
 */
int inject_try(uint32_t tgid, struct inject_verdict *verdict);

#endif
