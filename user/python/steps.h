/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Steps that are Python functions, of all traced processes: has libferrum_python.so look them up,
 * and makes step functions of its markers, which are then probed like any other.
 */
#ifndef FBT_PYTHON_STEPS_H
#define FBT_PYTHON_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include "steps/resolve.h"

struct python_guest;
struct python_steps;

/* specs: --step; those of other forms are left out. Without any --step, the table of engines. */
struct python_steps *python_steps__new(const struct step_spec *specs, size_t count);

/*
 * Call it first: of what another tracer has armed, the wishes are steps of ours, too. Libraries get
 * no orders, so what that one has not armed is no step.
 */
void python_steps__share(struct python_steps *steps);

/* Disarms, and gives all pages back. */
void python_steps__free(struct python_steps *steps);

/*
 * Has the library of a process that -p does not name look for the functions, without waiting: call
 * it for all of them, then search each.
 */
void python_steps__ask(struct python_steps *steps, uint32_t tgid);

struct python_search {
	uint32_t tgid;
	bool is_named; /* by -p: waited for alone. The others are waited for together */
	bool quiet;    /* says nothing about why functions cannot be had */
};

/*
 * Looks for the functions in a process that has the library, once for each start of it, and appends
 * what was found. Returns the number of added functions; 0 also where there is no library, or a
 * process does not answer in time; or -errno, logged.
 */
int python_steps__search(struct python_steps *steps, const struct python_search *search,
			 function_vec *functions);

/*
 * Says of each function that --step names, and no process has, why not. Call once all processes
 * were searched, before any of them is forgotten.
 */
void python_steps__explain(struct python_steps *steps);

/*
 * Whether search has said why it cannot have the library of a process, or explain that another
 * tracer has not armed a function in it.
 */
bool python_steps__is_told(const struct python_steps *steps, uint32_t tgid);

/* Whether any Python function is looked for. */
bool python_steps__has_wishes(const struct python_steps *steps);

/*
 * Their probes are in place: arms the functions of a process, once. A process that -p does not name
 * is only asked: call finish_arming once all are. It waits for them together, and then leaves those
 * that do not answer to beat, which is said. 0, also where there are none; or -errno, logged.
 */
int python_steps__arm(struct python_steps *steps, uint32_t tgid);
void python_steps__finish_arming(struct python_steps *steps);

/*
 * The same in a window that is open, where nothing may be waited for: look has the library look the
 * functions up, call it again and again. 0: none of them is there; -EAGAIN: not known yet;
 * -ETIMEDOUT: there was no answer for 2 s, so that the order was withdrawn, and the next call gives
 * it again; -ENOENT: there is no library; -EPIPE: it serves nobody; else their number, and take
 * appends them: it returns the number of those whose markers are the library's, or -errno. They are
 * armed as others are; beat sees to it.
 */
int python_steps__look(struct python_steps *steps, uint32_t tgid);
int python_steps__take(struct python_steps *steps, uint32_t tgid, function_vec *functions);

/* How often an armed function was called, and since when (CLOCK_MONOTONIC). */
struct python_count {
	uint32_t tgid;
	const char *function; /* "module:Class.method" */
	const char *file;
	uint32_t line;
	uint64_t calls;
	uint64_t armed_ns;
};

/* Asks for the counts of all armed functions; each is called for every one, process by process. */
void python_steps__count(const struct python_steps *steps,
			 void (*each)(void *ctx, const struct python_count *count), void *ctx);

/* The library of a process whose functions are armed; false: there are no more than i of them. */
struct python_member {
	uint32_t tgid;
	struct python_guest *guest; /* borrowed */
};
bool python_steps__member(const struct python_steps *steps, size_t i, struct python_member *member);

/* Keeps what is armed armed. Call at least once a second. */
void python_steps__beat(struct python_steps *steps, uint64_t now_ns);

/* Disarms all. Call before the probes are removed. */
void python_steps__disarm(struct python_steps *steps);

/* The process has ended, or called execve: there is another library in it, or none. */
void python_steps__forget(struct python_steps *steps, uint32_t tgid);

#endif
