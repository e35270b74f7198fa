/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "fbt_python.h"
#include "judge/peers.h"
#include "judge/look.h"
#include "judge/explained.h"
#include "judge/stopper.h"
#include "model/driver_calls.h"
#include "model/syscalls.h"

#define PATH_COLUMNS 72

/* Removes a UTF-8 character that was cut in the middle. */
static void end_line(struct line *line)
{
	size_t start = line->length, bytes = 1;
	unsigned char lead;

	while (start && ((unsigned char)line->text[start - 1] & 0xc0) == 0x80)
		start--;
	if (!start)
		return;
	lead = (unsigned char)line->text[start - 1];
	if (lead >= 0xf0)
		bytes = 4;
	else if (lead >= 0xe0)
		bytes = 3;
	else if (lead >= 0xc0)
		bytes = 2;
	if (start - 1 + bytes > line->length)
		line->text[start - 1] = '\0';
}

static void add_time(struct line *line, uint64_t ns)
{
	line_add(line, "%s", FORMAT_TIME(ns));
}

static void add_usual(struct line *line, const struct cause *cause)
{
	if (!cause->usual_known)
		return;
	line_add(line, " (usually %s%s)", cause->usual_ns ? FORMAT_TIME(cause->usual_ns) : "none",
		 cause->is_usual ? ": such steps are over the budget as a rule" : "");
}

/* "read 120 ms (usually 1.00 ms)" */
static void add_measured(struct line *line, const char *words, const struct cause *cause)
{
	line_add(line, "%s ", words);
	add_time(line, cause->time_ns);
	add_usual(line, cause);
}

/* The one of several that took most of the time. */
static void add_most(struct line *line, const char *name, uint64_t ns, uint64_t calls)
{
	line_add(line, ", most in %s (%s in %" PRIu64 ")", name, FORMAT_TIME(ns), calls);
}

/* Much of the time is not within the calls. */
static bool has_entry(const struct cause *cause)
{
	return cause->between_ns > cause->time_ns / 4;
}

static void add_calls(struct line *line, const struct cause *cause)
{
	if (!cause->calls_known)
		return;
	if ((cause->kind == CAUSE_LOCK_CONTENTION || cause->kind == CAUSE_LATE_THREAD) &&
	    cause->blocked_known)
		line_add(line, ", %s of %s call%s blocked", FORMAT_COUNT(cause->blocked),
			 FORMAT_COUNT(cause->calls), plural(cause->calls));
	else
		line_add(line, ", %s call%s%s", FORMAT_COUNT(cause->calls), plural(cause->calls),
			 has_entry(cause) ? " with their entry and exit" : "");
}

static void add_bytes(struct line *line, const struct cause *cause)
{
	if (cause->bytes)
		line_add(line, ", %s", FORMAT_BYTES(cause->bytes));
}

/* The time of the calls among which the file was found. */
static uint64_t time_of_calls(const struct cause *cause)
{
	if (cause->command_calls)
		return cause->command_ns;
	return cause->kind == CAUSE_TINY_WRITES ? cause->writes_ns : cause->time_ns;
}

/*
 * " of PATH", ", most of PATH", or ", 12.0 ms of PATH" for the first of many. The path comes from
 * the target, so it may contain anything.
 */
static void add_file(struct line *line, const struct cause *cause, const struct window *window,
		     const char *word)
{
	uint64_t calls = cause->command_calls ? cause->command_calls : cause->calls;
	const struct file *file = cause->file ? window__file(window, cause->file) : NULL;
	char path[4 * PATH_COLUMNS + 1];

	if (!file || !*file->path)
		return;
	if (cause->file_calls < calls && cause->file_ns < time_of_calls(cause) / 2) {
		line_add(line, ", ");
		add_time(line, cause->file_ns);
	} else if (cause->file_calls < calls) {
		line_add(line, ", most");
	}
	line_add(line, " %s %s", word, shorten_text(path, sizeof(path), file->path, PATH_COLUMNS));
}

static const char *label(const struct cause *cause, const struct window *window, char buffer[24])
{
	return syscall_label((enum fbt_arch)window->record.arch, cause->nr, buffer);
}

/* Where calls are not known, a whole category stands for them. */
static const char *category_words(enum cause_kind kind)
{
	switch (kind) {
	case CAUSE_LOCK_CONTENTION:
		return "futex";
	case CAUSE_ALLOCATION_CHURN:
		return "mmap, munmap, mprotect, brk";
	case CAUSE_FILE_IO:
		return "reads and writes (files and sockets)";
	default:
		return NULL;
	}
}

/* "read 120 ms (usually 1.00 ms), 118 calls" */
static void add_head(struct line *line, const struct cause *cause, const struct window *window)
{
	static const char *const group_words[CAUSE_COUNT] = {
		[CAUSE_LOCK_CONTENTION] = "locks",     [CAUSE_ALLOCATION_CHURN] = "memory calls",
		[CAUSE_DRIVER_CALLS] = "ioctl",	       [CAUSE_FILE_IO] = "file calls",
		[CAUSE_SOCKET_IO] = "socket calls",    [CAUSE_SIGNAL_STORM] = "signal calls",
		[CAUSE_SLEEP] = "waiting calls",       [CAUSE_OTHER_CALLS] = "other calls",
		[CAUSE_LATE_THREAD] = "waiting calls",
	};
	const char *words = cause->calls_known ? NULL : category_words(cause->kind);
	bool one = cause->nr_calls && cause->nr_calls == cause->calls;
	char buffer[24];

	if (!words)
		words = one ? label(cause, window, buffer) : group_words[cause->kind];
	add_measured(line, words, cause);
	add_calls(line, cause);
	if (!one && cause->nr_calls)
		add_most(line, label(cause, window, buffer), cause->nr_ns, cause->nr_calls);
}

/* "in read", "in 96 calls, most of them epoll_wait" */
static void add_waiting_calls(struct line *line, const struct cause *cause,
			      const struct window *window)
{
	char buffer[24];

	if (!cause->nr_calls)
		return;
	if (cause->calls == 1)
		line_add(line, "in %s", label(cause, window, buffer));
	else
		line_add(line, "in %s calls, most of the time %s", FORMAT_COUNT(cause->calls),
			 label(cause, window, buffer));
}

static void add_driver(struct line *line, const struct cause *cause, const struct window *window)
{
	char command[sizeof("ioctl ") + DRIVER_CALL_NAME], name[DRIVER_CALL_NAME];

	if (driver_call_name(window__file(window, cause->file), cause->command, name))
		snprintf(command, sizeof(command), "ioctl %s", name);
	else
		snprintf(command, sizeof(command), "ioctl 0x%x", (uint32_t)cause->command);
	if (cause->command_calls && cause->command_calls == cause->calls) {
		add_measured(line, command, cause);
		add_calls(line, cause);
	} else {
		add_head(line, cause, window);
		if (cause->command_calls)
			add_most(line, command + strlen("ioctl "), cause->command_ns,
				 cause->command_calls);
	}
	add_file(line, cause, window, "on");
}

/* "write 12.0 ms of 22.0 ms of I/O (usually 10.0 ms), 4,096 calls of 17 bytes on average" */
static void add_tiny_writes(struct line *line, const struct cause *cause,
			    const struct window *window)
{
	char buffer[24];

	line_add(line, "%s ", label(cause, window, buffer));
	if (cause->writes_ns < cause->time_ns) {
		add_time(line, cause->writes_ns);
		line_add(line, " of ");
	}
	add_time(line, cause->time_ns);
	if (cause->writes_ns < cause->time_ns)
		line_add(line, " of I/O");
	add_usual(line, cause);
	line_add(line, ", %s calls of %" PRIu64 " bytes on average", FORMAT_COUNT(cause->calls),
		 cause->calls ? cause->bytes / cause->calls : 0);
	add_file(line, cause, window, "to");
}

static void add_threads(struct line *line, const struct cause *cause)
{
	add_measured(line, "threads", cause);
	if (cause->threads_made)
		line_add(line, ", %s created, with their stacks and joins",
			 FORMAT_COUNT(cause->threads_made));
	else
		add_calls(line, cause);
}

static void add_signals(struct line *line, const struct cause *cause, const struct window *window)
{
	if (!cause->signals) {
		add_head(line, cause, window);
		return;
	}
	line_add(line, "%s signal%s handled, %s", FORMAT_COUNT(cause->signals),
		 plural(cause->signals), cause->estimated ? "about " : "");
	add_time(line, cause->time_ns);
	add_usual(line, cause);
}

/* What the waker did most of the time, and for how long. *words: NULL in the call waker.nr. */
static uint64_t find_doing(const struct cause *cause, const char **words)
{
	const struct {
		uint64_t ns;
		const char *words;
	} parts[] = {
		{cause->waker.cpu_ns, "computed"},
		{cause->waker.call_ns, NULL},
		{cause->waker.delay_ns, "waited for a CPU"},
		{cause->waker.stopped_ns, "was stopped"},
		{cause->waker.fault_ns, "waited for a disk in page faults"},
		{cause->waker.off_ns, "was off the CPU outside of calls"},
	};
	size_t most = 0;

	for (size_t i = 1; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].ns > parts[most].ns)
			most = i;
	*words = parts[most].words;
	return parts[most].ns;
}

/* True: it was in the call waker.nr. */
static bool add_doing(struct line *line, const struct cause *cause, const struct window *window)
{
	char buffer[24];
	const char *words;
	uint64_t ns = find_doing(cause, &words);

	if (words && ns)
		line_add(line, ", which %s for %s", words, FORMAT_TIME(ns));
	else if (ns)
		line_add(line, ", which was in %s for %s",
			 syscall_label((enum fbt_arch)window->record.arch, cause->waker.nr, buffer),
			 FORMAT_TIME(ns));
	return !words && ns;
}

/* The threads that were seen to hold locks, and for which process the last of them waited. */
static void add_holders(struct line *line, const struct cause *cause, bool is_call_said,
			const struct window *window)
{
	const struct look_holders holders = {.threads = cause->holders,
					     .count = cause->holder_count,
					     .is_call_said = is_call_said,
					     .peer = &cause->peer};

	look_add_holders(line, &holders, window);
}

/*
 * What the thread that ended the wait was seen doing, if it is the one that was looked at.
 * call_said: the text before names the call waker.nr.
 */
static void add_seen(struct line *line, const struct cause *cause, bool call_said,
		     const struct window *window)
{
	const struct fbt_look_thread *holder = &cause->holders[0];

	if (cause->holder_count && holder->owner == cause->waker.tid)
		add_holders(line, cause,
			    call_said && holder->doing == FBT_DOING_CALL &&
				    holder->nr == cause->waker.nr,
			    window);
}

/* A lock may have been given on: then it is named who had it when it was looked at. */
static bool has_other_holder(const struct cause *cause)
{
	return cause->holder_count && cause->holders[0].owner != cause->waker.tid;
}

/* By the way in which it was given back, or because it was seen. */
static bool is_held(const struct cause *cause)
{
	return cause->waker.flags & FBT_WAKE_LOCK ||
	       (cause->holder_count && !has_other_holder(cause));
}

/*
 * It waited in futex for most of the time, and nobody was seen to hold the lock. Perhaps it queued
 * before the step, and had the lock for a moment only.
 */
static bool waited_itself(const struct cause *cause)
{
	return !cause->holder_count && cause->waker.flags & FBT_WAKE_LOCK &&
	       cause->waker.futex_ns && cause->waker.futex_ns >= cause->waker.ns / 2;
}

bool cause_names_culprit(const struct cause *cause)
{
	if (cause->kind == CAUSE_STOPPED)
		return cause->stop.tracer || cause->stop_sender.header.type;
	return cause->holder_count || (cause->waker.tid && is_held(cause) && !waited_itself(cause));
}

/*
 * ", held by thread 7331 "worker", which was in clock_nanosleep for 38.0 ms", and if it was looked
 * at while it held the lock ", in evict <- run (seen 20.0 ms into the wait)".
 */
static void add_waker(struct line *line, const struct cause *cause, const struct window *window)
{
	bool is_other = has_other_holder(cause);

	if (is_other) {
		line_add(line, ", held by ");
		look_add_thread(line, cause->holders[0].owner, window);
		add_holders(line, cause, false, window);
	}
	if (!cause->waker.tid)
		return;
	if (waited_itself(cause)) {
		line_add(line, ", released by ");
		look_add_thread(line, cause->waker.tid, window);
		line_add(line, ", which was in futex itself for %s",
			 FORMAT_TIME(cause->waker.futex_ns));
		return;
	}
	if (is_other)
		line_add(line, is_held(cause) ? "; then by " : "; woken by ");
	else if (cause->kind == CAUSE_LATE_THREAD && !cause->holder_count)
		line_add(line, ", for ");
	else
		line_add(line, is_held(cause) ? ", held by " : ", woken by ");
	look_add_thread(line, cause->waker.tid, window);
	add_seen(line, cause, add_doing(line, cause, window), window);
}

/* ", 57.0 ms of it by thread 7331 "worker", for which the step waited" */
static void add_worker(struct line *line, const struct cause *cause, const struct window *window)
{
	if (!cause->waker.tid)
		return;
	line_add(line, ", %s of it by ", FORMAT_TIME(cause->waker.ns));
	look_add_thread(line, cause->waker.tid, window);
	line_add(line, ", for which the step waited");
	add_seen(line, cause, false, window);
}

static void add_major_faults(struct line *line, uint64_t faults)
{
	if (faults)
		line_add(line, ", %s page fault%s waited for a disk", FORMAT_COUNT(faults),
			 plural(faults));
}

static void add_work(struct line *line, const struct cause *cause)
{
	if (!cause->covered_ns && !cause->waker.tid) {
		line_add(line, ": outside of syscalls, not waiting for a CPU");
		return;
	}
	if (!cause->covered_ns)
		return;
	line_add(line, ", ");
	add_time(line, cause->covered_ns);
	line_add(line, " of it waiting for the busy GPU");
}

/* Own code, calls and their waits cannot be told apart. */
static void add_unknown(struct line *line, const struct cause *cause)
{
	add_measured(line, "own code or system calls", cause);
	add_major_faults(line, cause->major_faults);
	line_add(line, "; calls were not traced");
}

/* The path comes from the target, so it may contain anything. */
static void add_mapping(struct line *line, const struct cause *cause, const struct window *window)
{
	const struct file *file =
		cause->fault_file ? window__file(window, cause->fault_file) : NULL;
	char path[4 * PATH_COLUMNS + 1];

	if (cause->mapping == FBT_MAPPING_UNKNOWN)
		return;
	line_add(line, cause->mapping_is_all ? " of " : ", most of ");
	if (cause->mapping == FBT_MAPPING_ANON)
		line_add(line, "anonymous memory (heap)");
	else if (cause->mapping == FBT_MAPPING_STACK)
		line_add(line, "the stack");
	else if (file && *file->path)
		line_add(line, "file %s",
			 shorten_text(path, sizeof(path), file->path, PATH_COLUMNS));
	else
		line_add(line, "mapped files");
}

/* "spent 55.0 ms (usually none) in 940 page faults of file /w, 48.0 ms of it waiting for a disk" */
static void add_measured_faults(struct line *line, const struct cause *cause,
				const struct window *window)
{
	uint64_t faults = (uint64_t)cause->minor_faults + cause->major_faults +
			  cause->worker_faults + cause->worker_minor_faults;

	add_measured(line, "spent", cause);
	line_add(line, " in %s page fault%s", FORMAT_COUNT(faults), plural(faults));
	/* What they were for is not known of those of other threads. */
	if (!cause->worker_faults)
		add_mapping(line, cause, window);
	if (cause->fault_wait_ns)
		line_add(line, ", %s of it waiting for a disk", FORMAT_TIME(cause->fault_wait_ns));
}

/* All or nearly all of the time. */
static bool is_disk_wait(const struct cause *cause)
{
	return cause->fault_wait_ns >= cause->time_ns - cause->time_ns / 10;
}

/* "waited 61.2 ms (usually none) for a disk in 96 page faults", or an estimate by their number. */
static void add_faults(struct line *line, const struct cause *cause, const struct window *window)
{
	uint64_t disk_faults = (uint64_t)cause->major_faults + cause->worker_faults;
	uint64_t minor_faults = (uint64_t)cause->minor_faults + cause->worker_minor_faults;

	if (!cause->estimated &&
	    (!is_disk_wait(cause) || (cause->faults_timed && !cause->worker_faults))) {
		add_measured_faults(line, cause, window);
		return;
	}
	if (!cause->estimated) {
		add_measured(line, "waited", cause);
		line_add(line, " for a disk in %s page fault%s", FORMAT_COUNT(disk_faults),
			 plural(disk_faults));
		return;
	}
	add_measured(line, "about", cause);
	if (cause->fault_wait_ns >= cause->time_ns / 2) {
		line_add(line, ", %s of it waiting for a disk in %s page fault%s",
			 FORMAT_TIME(cause->fault_wait_ns), FORMAT_COUNT(disk_faults),
			 plural(disk_faults));
		return;
	}
	line_add(line, " in %s page fault%s (estimated)", FORMAT_COUNT(minor_faults),
		 plural(minor_faults));
	add_major_faults(line, disk_faults);
}

/* "waited 212 ms for a CPU (usually none)", or "for CPU 3" if that is known of all of the wait. */
static void add_wait(struct line *line, const struct cause *cause)
{
	const struct fbt_taken *taken = &cause->taken;
	uint64_t most_ns = cause->time_ns - cause->time_ns / 10;

	line_add(line, "waited %s", cause->estimated ? "about " : "");
	add_time(line, cause->time_ns);
	if (taken->header.type == FBT_EVENT_TAKEN && taken->cpu && taken->waited_ns >= most_ns &&
	    !cause_is_of_other(cause))
		line_add(line, " for CPU %" PRIu32, taken->cpu - 1);
	else
		line_add(line, " for a CPU");
	add_usual(line, cause);
}

/*
 * "about 31.0 ms (usually none): thread 7331 "worker" had no CPU, taken by stress-ng (pid 8) 30.9
 * ms, and the step seems …"
 */
static void add_starved(struct line *line, const struct cause *cause, const struct window *window)
{
	add_measured(line, "about", cause);
	line_add(line, ": ");
	look_add_thread(line, cause->waker.tid, window);
	line_add(line, " had no CPU");
	taken_describe(line, &cause->taken);
	line_add(line, ", and the step seems to have spun meanwhile");
}

/* "…: the CPU limit of its cgroup, 2.00 CPUs in each 100 ms, was reached 3 times" */
static void add_cpu_limit(struct line *line, const struct cause *cause, const struct window *window)
{
	const struct fbt_step_limits *limits = &cause->limits;

	if (cause->estimated) {
		add_starved(line, cause, window);
	} else {
		add_wait(line, cause);
		add_worker(line, cause, window);
	}
	line_add(line, cause->estimated ? "; " : ": ");
	if (limits->period_ns)
		line_add(line, "the CPU limit of its cgroup, %.2f CPUs in each %s, was reached ",
			 (double)limits->quota_ns / (double)limits->period_ns,
			 FORMAT_TIME(limits->period_ns));
	else
		line_add(line, "a CPU limit of its cgroups was reached ");
	/* A stretch that is shorter than its period may not have been counted. */
	line_add_times(line, limits->throttled_periods ? limits->throttled_periods : 1);
}

/* "about 31.0 ms in 1,024 page faults …: its cgroup was at its memory limit 512 times" */
static void add_memory_limit(struct line *line, const struct cause *cause,
			     const struct window *window)
{
	add_faults(line, cause, window);
	add_worker(line, cause, window);
	line_add(line, ": its cgroup was at its memory limit ");
	line_add_times(line, cause->limits.memory_hits);
	fault_sites_describe(line, cause, window);
}

/*
 * "stopped 300 ms by a tracer: gdb (pid 4711)"; or "about 300 ms: thread 7331 "worker" was stopped
 * by …, and the step seems to have spun meanwhile".
 */
static void add_stopped(struct line *line, const struct cause *cause, const struct window *window)
{
	add_measured(line, cause->estimated ? "about" : "stopped", cause);
	if (!cause->estimated) {
		stopper_add(line, &cause->stop, &cause->stop_sender);
		add_worker(line, cause, window);
		return;
	}
	line_add(line, ": ");
	look_add_thread(line, cause->waker.tid, window);
	line_add(line, " was stopped");
	stopper_add(line, &cause->stop, &cause->stop_sender);
	line_add(line, ", and the step seems to have spun meanwhile");
}

/*
 * "about 38.0 ms (usually none): thread 7331 "worker" was in read for 40.0 ms, and the step seems
 * …"
 */
static void add_late(struct line *line, const struct cause *cause, const struct window *window)
{
	char buffer[24];

	add_measured(line, "about", cause);
	line_add(line, ": ");
	look_add_thread(line, cause->waker.tid, window);
	line_add(line,
		 " was in calls for %s, longest in %s, and the step seems to have spun meanwhile",
		 FORMAT_TIME(cause->waker.call_ns),
		 syscall_label((enum fbt_arch)window->record.arch, cause->waker.nr, buffer));
}

/* "collected garbage for 412 ms (usually none), 3 collections, the longest 400 ms, generation 2" */
static void add_garbage(struct line *line, const struct cause *cause)
{
	const struct fbt_stalls *stalls = &cause->stalls;

	add_measured(line, "collected garbage for", cause);
	if (stalls->gc_count == 1)
		line_add(line, ", one collection");
	else if (stalls->gc_count)
		line_add(line, ", %s collections, the longest %s", FORMAT_COUNT(stalls->gc_count),
			 FORMAT_TIME(stalls->gc_longest_ns));
	else
		line_add(line, ", in one that has not ended");
	if (stalls->gc_generation < FBT_GENERATION_UNKNOWN)
		line_add(line, " of generation %" PRIu32, stalls->gc_generation);
}

/* The parts of the time that are no calls. */
static void add_hidden(struct line *line, const struct cause *cause, const struct window *window)
{
	switch (cause->kind) {
	case CAUSE_RUN_QUEUE:
		if (cause->estimated) {
			add_starved(line, cause, window);
			break;
		}
		add_wait(line, cause);
		add_worker(line, cause, window);
		taken_describe(line, &cause->taken);
		break;
	case CAUSE_PAGE_FAULTS:
		add_faults(line, cause, window);
		add_worker(line, cause, window);
		fault_sites_describe(line, cause, window);
		break;
	case CAUSE_STOPPED:
		add_stopped(line, cause, window);
		break;
	case CAUSE_OFF_CPU:
		add_measured(line, "off the CPU", cause);
		line_add(line, ": outside of syscalls, not waiting for a CPU");
		add_worker(line, cause, window);
		if (cause->steal_ns > cause->time_ns / 10)
			line_add(line, "; the host of this virtual machine took %s of it (steal)",
				 FORMAT_TIME(cause->steal_ns));
		break;
	case CAUSE_STEAL:
		add_measured(line, "off the CPU", cause);
		line_add(line, ": the host of this virtual machine took its CPU for %s (steal)",
			 FORMAT_TIME(cause->steal_ns));
		break;
	case CAUSE_AWAIT:
		add_measured(line, "awaited", cause);
		line_add(line, ": the future was not polled in that time");
		break;
	case CAUSE_GARBAGE_COLLECTION:
		add_garbage(line, cause);
		break;
	default:
		add_measured(line, "work", cause);
		add_work(line, cause);
		add_worker(line, cause, window);
		add_major_faults(line, cause->major_faults);
		grown_describe(line, cause, window);
	}
}

/* "copies 6.10 ms of 9.80 ms: H2D 1.20 GiB, D2H 4.00 KiB, 2 of 12 use pageable memory" */
static void add_transfer(struct line *line, const struct cause *cause)
{
	const char *const names[] = {"H2D", "D2H", "P2P"}, *separator = ":";
	const uint64_t bytes[] = {cause->h2d_bytes, cause->d2h_bytes, cause->p2p_bytes};

	line_add(line, "copies %s of %s", FORMAT_TIME(cause->time_ns),
		 FORMAT_TIME(cause->total_ns));
	for (int i = 0; i < 3; i++) {
		if (!bytes[i])
			continue;
		line_add(line, "%s %s %s", separator, names[i], FORMAT_BYTES(bytes[i]));
		separator = ",";
	}
	if (cause->pageable)
		line_add(line, ", %s of %s use pageable memory", FORMAT_COUNT(cause->pageable),
			 FORMAT_COUNT(cause->copies));
}

/* Whether the thread that gave the GIL back is the one of libferrum_python.so, by its name. */
static bool is_library(const struct cause *cause, const struct window *window)
{
	const char *name = window__thread_name(window, cause->waker.tid);

	return name && !strcmp(name, FBT_PYTHON_THREAD);
}

/* "waited 38.0 ms (usually none) for the GIL in 9 calls, 36.0 ms of it for thread 7331 "hog", …" */
static void add_gil(struct line *line, const struct cause *cause, const struct window *window)
{
	bool has_collected = cause->waker.flags & FBT_WAKE_GC;
	const char *words;
	uint64_t ns = find_doing(cause, &words);
	char buffer[24];

	words = has_collected ? "collected garbage" : words;
	add_measured(line, "waited", cause);
	line_add(line, " for the GIL");
	if (cause->calls_known)
		line_add(line, " in %s call%s", FORMAT_COUNT(cause->calls), plural(cause->calls));
	if (has_other_holder(cause)) {
		line_add(line, ", held by ");
		look_add_thread(line, cause->holders[0].owner, window);
		add_holders(line, cause, false, window);
	}
	/* The library's thread waited for the GIL too, and got it first: who had it is not known.
	 */
	if (!cause->waker.tid || (!words && is_library(cause, window)))
		return;
	/* The wait was not for that thread alone, which waited for the GIL itself meanwhile. */
	if (has_other_holder(cause)) {
		line_add(line, "; then by ");
		look_add_thread(line, cause->waker.tid, window);
		return;
	}
	line_add(line, ", %s of it for ", FORMAT_TIME(cause->waker.ns));
	look_add_thread(line, cause->waker.tid, window);
	if (!words)
		line_add(
			line, ", which was in %s",
			syscall_label((enum fbt_arch)window->record.arch, cause->waker.nr, buffer));
	else if (ns || has_collected)
		line_add(line, ", which %s", words);
	add_seen(line, cause, !words, window);
}

/* "3,482 sched_yield", "at least 96 calls, most of them epoll_wait" */
static void add_spin_calls(struct line *line, const struct cause *cause,
			   const struct window *window)
{
	char buffer[24];

	line_add(line, "%s%s %s", cause->spin.partial ? "at least " : "",
		 FORMAT_COUNT(cause->spin.calls),
		 syscall_label((enum fbt_arch)window->record.arch, cause->spin.nr, buffer));
}

static bool is_futex(const struct cause *cause, const struct window *window)
{
	return syscall_category((enum fbt_arch)window->record.arch, cause->spin.nr) == FBT_FUTEX;
}

/* A thread that naps, or waits in futex, leaves the CPU to others. */
static const char *spin_verb(const struct cause *cause, const struct window *window)
{
	char buffer[24];

	if (is_futex(cause, window))
		return "waited";
	return strstr(syscall_label((enum fbt_arch)window->record.arch, cause->spin.nr, buffer),
		      "nanosleep")
		       ? "napped"
		       : "spun";
}

/* All or nearly all of the part is waits that spin. */
static bool is_spin(const struct cause *cause)
{
	return cause->spin.calls && cause->spin.ns >= cause->time_ns - cause->time_ns / 10;
}

/* "spun 302 ms (usually 1.20 ms) in 3,482 sched_yield" */
static void add_spin(struct line *line, const struct cause *cause, const struct window *window)
{
	add_measured(line, spin_verb(cause, window), cause);
	line_add(line, " in ");
	add_spin_calls(line, cause, window);
	if (is_futex(cause, window))
		line_add(line, " that timed out");
}

/* ", 250 ms of it spun in 3,482 sched_yield", of a part that has other calls too */
static void add_spun(struct line *line, const struct cause *cause, const struct window *window)
{
	if (!cause->spin.calls || cause->spin.ns < cause->time_ns / 10)
		return;
	line_add(line, ", ");
	add_time(line, cause->spin.ns < cause->time_ns ? cause->spin.ns : cause->time_ns);
	line_add(line, " of it %s in ",
		 is_futex(cause, window) ? "timed out" : spin_verb(cause, window));
	add_spin_calls(line, cause, window);
}

/* "waited 302 ms (usually none) for worker (pid 29118), which was stopped by a signal …" */
static void add_peer(struct line *line, const struct cause *cause, const struct window *window)
{
	static const char *const ways[FBT_PEER_WAY_COUNT] = {
		[FBT_PEER_MEMORY] = "that share memory with it",
		[FBT_PEER_FUTEX] = "that map this memory",
		[FBT_PEER_PIPE] = "that may write to the pipe",
		[FBT_PEER_SOCKET] = "that have the other end of the socket",
	};
	const struct fbt_peer *peer = &cause->peer.record;

	add_measured(line, "waited", cause);
	line_add(line, " for ");
	peer_describe(line, &cause->peer, window);
	if (peer->others)
		line_add(line, "; one of %s processes %s", FORMAT_COUNT(peer->others + 1ull),
			 ways[peer->way % FBT_PEER_WAY_COUNT]);
	line_add(line, "; ");
	if (is_spin(cause)) {
		line_add(line, "%s in ", spin_verb(cause, window));
		add_spin_calls(line, cause, window);
	} else {
		add_waiting_calls(line, cause, window);
	}
	add_file(line, cause, window, "of");
}

static void add_called(struct line *line, const struct cause *cause, const struct window *window)
{
	if (cause->kind == CAUSE_PEER_PROCESS) {
		add_peer(line, cause, window);
		return;
	}
	if (cause->kind == CAUSE_LATE_THREAD && cause->estimated) {
		add_late(line, cause, window);
		return;
	}
	if (is_spin(cause)) {
		add_spin(line, cause, window);
	} else {
		add_head(line, cause, window);
		add_spun(line, cause, window);
	}
	if (cause->kind != CAUSE_LATE_THREAD)
		add_bytes(line, cause);
	if (cause->kind == CAUSE_LATE_THREAD)
		add_file(line, cause, window, "on");
	if (cause->kind == CAUSE_FILE_IO || cause->kind == CAUSE_SOCKET_IO)
		add_file(line, cause, window, "of");
	if (cause->kind == CAUSE_LOCK_CONTENTION && cause->lock)
		line_add(line, ", lock at 0x%" PRIx64, cause->lock);
	if (cause->kind == CAUSE_LOCK_CONTENTION || cause->kind == CAUSE_LATE_THREAD)
		add_waker(line, cause, window);
}

static void add_flaw(struct line *line, const struct cause *cause)
{
	if (cause->kind >= CAUSE_RUN_QUEUE)
		return;
	if (cause->calls_partial)
		line_add(line, "; some calls were lost");
	else if (!cause->calls_known)
		line_add(line, cause->kind == CAUSE_LOCK_CONTENTION
				       ? "; the calls were not recorded: it may have waited for "
					 "threads that computed"
				       : "; the calls were not recorded");
	if (cause->gpu_lost)
		line_add(line, "; GPU records are missing: the GPU may have worked meanwhile");
}

void cause_describe(const struct cause *cause, const struct window *window, char *text, size_t size)
{
	struct line line = {.text = text, .size = size};

	*text = '\0';
	switch (cause->kind) {
	case CAUSE_LOCK_CONTENTION:
	case CAUSE_ALLOCATION_CHURN:
	case CAUSE_FILE_IO:
	case CAUSE_SOCKET_IO:
	case CAUSE_SLEEP:
	case CAUSE_OTHER_CALLS:
	case CAUSE_LATE_THREAD:
	case CAUSE_PEER_PROCESS:
		add_called(&line, cause, window);
		break;
	case CAUSE_GIL:
		add_gil(&line, cause, window);
		break;
	case CAUSE_DRIVER_CALLS:
		add_driver(&line, cause, window);
		break;
	case CAUSE_TINY_WRITES:
		add_tiny_writes(&line, cause, window);
		break;
	case CAUSE_THREAD_CHURN:
		add_threads(&line, cause);
		break;
	case CAUSE_SIGNAL_STORM:
		add_signals(&line, cause, window);
		break;
	case CAUSE_RUN_QUEUE:
	case CAUSE_PAGE_FAULTS:
	case CAUSE_STOPPED:
	case CAUSE_OFF_CPU:
	case CAUSE_STEAL:
	case CAUSE_AWAIT:
	case CAUSE_GARBAGE_COLLECTION:
	case CAUSE_COMPUTE:
		add_hidden(&line, cause, window);
		break;
	case CAUSE_UNKNOWN:
		add_unknown(&line, cause);
		break;
	case CAUSE_CPU_LIMIT:
		add_cpu_limit(&line, cause, window);
		break;
	case CAUSE_MEMORY_LIMIT:
		add_memory_limit(&line, cause, window);
		break;
	case CAUSE_GPU_TRANSFER:
		add_transfer(&line, cause);
		break;
	case CAUSE_COUNT:
		break;
	}
	woken_describe(&line, cause, window);
	add_flaw(&line, cause);
	end_line(&line);
}
