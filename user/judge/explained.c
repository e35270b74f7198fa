/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/explained.h"

#include <inttypes.h>
#include <string.h>

#include "base/arith.h"
#include "judge/frames.h"
#include "model/syscalls.h"

#define NAME_COLUMNS   15
#define CGROUP_COLUMNS 39
#define PATH_COLUMNS   60
/* Of those that had the CPU, the ones with this part of the time are named, … */
#define NAMED_PART 20
/* … and no more than so many. */
#define NAMED_MAX 3

static bool has_taken(const struct fbt_taken *taken)
{
	return taken->header.type == FBT_EVENT_TAKEN && taken->waited_ns;
}

bool cause_explained_by(const struct cause *cause, enum fbt_explain *kind, bool *is_explained)
{
	switch (cause->kind) {
	case CAUSE_RUN_QUEUE:
		*kind = FBT_EXPLAIN_SWITCHES;
		*is_explained = has_taken(&cause->taken);
		return true;
	case CAUSE_COMPUTE:
		/* It waited for another thread, or for the GPU. */
		if (cause_is_of_other(cause))
			return false;
		*kind = FBT_EXPLAIN_SAMPLES;
		*is_explained = cause->grown_count != 0;
		return true;
	case CAUSE_PAGE_FAULTS:
	case CAUSE_MEMORY_LIMIT:
		if (cause_is_of_other(cause))
			return false;
		*kind = FBT_EXPLAIN_FAULTS;
		*is_explained = cause->fault_sites.header.type == FBT_EVENT_FAULT_SITES;
		return true;
	case CAUSE_LOCK_CONTENTION:
	case CAUSE_DRIVER_CALLS:
	case CAUSE_FILE_IO:
	case CAUSE_SOCKET_IO:
	case CAUSE_SLEEP:
	case CAUSE_OTHER_CALLS:
		if (!cause->wants_waker || cause->waker.tid)
			return false;
		*kind = FBT_EXPLAIN_WAKES;
		*is_explained = cause->woken.header.type == FBT_EVENT_WOKEN;
		return true;
	default:
		return false;
	}
}

/* Names come from other processes, so they may contain anything. */
static void add_taker(struct line *line, const struct fbt_taker *taker, bool with_cgroup)
{
	char name[4 * sizeof(taker->comm) + 1], cgroup[4 * sizeof(taker->cgroup) + 1];

	shorten_text(cgroup, sizeof(cgroup), taker->cgroup, CGROUP_COLUMNS);
	if (taker_is_group(taker)) {
		line_add(line, "many processes of cgroup %s %s", cgroup, FORMAT_TIME(taker->ns));
		return;
	}
	line_add(line, "%s (pid %" PRIu32,
		 shorten_text(name, sizeof(name), taker->comm, NAME_COLUMNS), taker->tgid);
	if (with_cgroup && *taker->cgroup && strcmp(taker->cgroup, "/") != 0)
		line_add(line, ", cgroup %s", cgroup);
	line_add(line, ") %s", FORMAT_TIME(taker->ns));
}

/* "its own threads 120 ms", or the one of them that had nearly all of that. */
static void add_own(struct line *line, const struct fbt_taken *taken)
{
	uint64_t own_ns = taken->own_ns;
	const struct fbt_taker *most = NULL;
	char name[4 * sizeof(most->comm) + 1];

	for (uint32_t i = 0; i < taken->count && !most; i++)
		if (taken->takers[i].tid)
			most = &taken->takers[i];
	if (most && most->ns >= own_ns - own_ns / 10)
		line_add(line, "its own thread %" PRIu32 " \"%s\" %s", most->tid,
			 shorten_text(name, sizeof(name), most->comm, NAME_COLUMNS),
			 FORMAT_TIME(own_ns));
	else
		line_add(line, "its own threads %s", FORMAT_TIME(own_ns));
}

/*
 * The time of all processes that had too little for a name each, if together they had much: a build
 * with many compilers. Else 0.
 */
static uint64_t sum_small(const struct fbt_taken *taken, uint64_t least_ns)
{
	uint64_t ns = taken->other_ns;

	for (uint32_t i = 0; i < taken->count; i++) {
		const struct fbt_taker *taker = &taken->takers[i];

		if (!taker->tid && taker->ns < least_ns)
			ns = add_saturating(ns, taker->ns);
	}
	return ns > taken->waited_ns / 2 ? ns : 0;
}

/* Processes, and among them the own threads, those with more time first. */
static void add_takers(struct line *line, const struct fbt_taken *taken, uint64_t least_ns,
		       const char *word)
{
	uint64_t own_ns = taken->own_ns >= least_ns ? taken->own_ns : 0;
	uint32_t named = 0;

	for (uint32_t i = 0; i < taken->count && named < NAMED_MAX; i++) {
		const struct fbt_taker *taker = &taken->takers[i];

		if (own_ns && own_ns >= taker->ns) {
			line_add(line, "%s", word);
			add_own(line, taken);
			own_ns = 0;
			word = ", ";
			named++;
		}
		if (taker->tid || taker->ns < least_ns || !taker->ns)
			continue;
		line_add(line, "%s", word);
		add_taker(line, taker, !named);
		word = ", ";
		named++;
	}
	if (own_ns && named < NAMED_MAX) {
		line_add(line, "%s", word);
		add_own(line, taken);
	}
}

void taken_describe(struct line *line, const struct fbt_taken *taken)
{
	uint64_t least_ns = taken->waited_ns / NAMED_PART;
	uint64_t small_ns = sum_small(taken, least_ns);

	if (!has_taken(taken))
		return;
	if (small_ns)
		line_add(line, ", taken by many other processes %s", FORMAT_TIME(small_ns));
	add_takers(line, taken, least_ns, small_ns ? ", " : ", taken by ");
	if (taken->idle_ns > taken->waited_ns / 2)
		line_add(line, ", while the CPU ran nothing for %s", FORMAT_TIME(taken->idle_ns));
}

void functions_text(const uint32_t *codes, uint32_t count, const struct window *window,
		    char text[FUNCTIONS_SIZE])
{
	struct line line = {text, FUNCTIONS_SIZE, 0};
	char name[FRAMES_NAME];

	*text = '\0';
	for (uint32_t i = 0; i < count && codes[i]; i++)
		line_add(&line, "%s%s", i ? " <- " : "",
			 frames_name(window__code(window, codes[i]), name));
}

void grown_describe(struct line *line, const struct cause *cause, const struct window *window)
{
	char functions[FUNCTIONS_SIZE];

	for (uint32_t i = 0; i < cause->grown_count; i++) {
		functions_text(cause->grown[i].codes, i ? 1 : CAUSE_GROWN_CODES, window, functions);
		line_add(line, "%s%s %s%s",
			 i		      ? ", "
			 : cause->grown_usual ? "; grew: "
					      : "; most in ",
			 functions, cause->grown_usual ? "+" : "", FORMAT_TIME(cause->grown[i].ns));
	}
}

const char *fault_mapping_text(const struct fbt_fault_site *site, const struct window *window,
			       char text[FAULT_MAPPING_SIZE])
{
	const struct file *file = site->file ? window__file(window, site->file) : NULL;

	switch ((enum fbt_mapping)site->mapping) {
	case FBT_MAPPING_ANON:
		return "anonymous memory (heap)";
	case FBT_MAPPING_STACK:
		return "the stack";
	case FBT_MAPPING_FILE:
		if (file && *file->path)
			return shorten_text(text, FAULT_MAPPING_SIZE, file->path, PATH_COLUMNS);
		return "a mapped file";
	default:
		return "memory";
	}
}

void fault_sites_describe(struct line *line, const struct cause *cause, const struct window *window)
{
	const struct fbt_fault_sites *sites = &cause->fault_sites;
	char path[FAULT_MAPPING_SIZE], functions[FUNCTIONS_SIZE];

	if (sites->header.type != FBT_EVENT_FAULT_SITES || cause_is_of_other(cause))
		return;
	for (uint32_t i = 0; i < sites->count && i < NAMED_MAX; i++) {
		const struct fbt_fault_site *site = &sites->sites[i];

		if (site->faults < sites->faults / NAMED_PART)
			break;
		functions_text(site->codes, FBT_FAULT_CALLERS, window, functions);
		line_add(line, "%s %s of %s in %s",
			 i ? "," : "; counted:", FORMAT_COUNT(site->faults),
			 fault_mapping_text(site, window, path),
			 *functions ? functions : "a function that is not known");
	}
}

/* "redis (pid 8)", "its own thread 71 "w1"", "the kernel thread kworker/0:1" */
static void add_name(struct line *line, const struct fbt_woken *woken)
{
	char name[4 * sizeof(woken->comm) + 1];

	shorten_text(name, sizeof(name), woken->comm, NAME_COLUMNS);
	if (woken->context == FBT_WOKEN_BY_KERNEL)
		line_add(line, "the kernel thread %s", name);
	else if (woken->waker_tgid == woken->tgid)
		line_add(line, "its own thread %" PRIu32 " \"%s\"", woken->waker_tid, name);
	else
		line_add(line, "%s (pid %" PRIu32 ")", name, woken->waker_tgid);
}

void woken_describe(struct line *line, const struct cause *cause, const struct window *window)
{
	const struct fbt_woken *woken = &cause->woken;
	char label[24];

	if (woken->header.type != FBT_EVENT_WOKEN || cause->waker.tid)
		return;
	switch ((enum fbt_woken_context)woken->context) {
	case FBT_WOKEN_BY_INTERRUPT:
		line_add(line, ", ended by an interrupt (a timer or a device)");
		return;
	case FBT_WOKEN_WHILE_SENDING:
		line_add(line, ", perhaps woken by ");
		break;
	default:
		line_add(line, ", woken by ");
	}
	add_name(line, woken);
	if (woken->nr < FBT_NR_COUNT)
		line_add(line, " in %s",
			 syscall_label((enum fbt_arch)window->record.arch, woken->nr, label));
}

bool woken_has_waker(const struct fbt_woken *woken)
{
	return woken->header.type == FBT_EVENT_WOKEN && woken->context != FBT_WOKEN_BY_INTERRUPT;
}

const char *explain_subject(enum fbt_explain kind)
{
	switch (kind) {
	case FBT_EXPLAIN_SWITCHES:
		return "who took the CPU";
	case FBT_EXPLAIN_WAKES:
		return "who ended the wait";
	case FBT_EXPLAIN_SAMPLES:
		return "which functions computed";
	case FBT_EXPLAIN_FAULTS:
		return "which functions had page faults";
	case FBT_EXPLAIN_COUNT:
		break;
	}
	return "";
}

void ended_after_add(struct line *line, uint64_t after_ns)
{
	if (after_ns)
		line_add(line, ", %s after the wait began", FORMAT_TIME(after_ns));
}
